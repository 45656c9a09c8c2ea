// The forward call of a session that is the caller's turn.
#ifndef KVC_RUNTIME_FORWARD_H
#define KVC_RUNTIME_FORWARD_H

#include "session.h"

namespace kvc {

// kvc_forward for whoever has the turn.
kvc_status forward(kvc_session *session, const kvc_chunk *chunks,
                   int64_t chunkCount, void *logits, int64_t logitsRows);

} // namespace kvc

#endif
