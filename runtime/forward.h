// A forward call within another call.
#ifndef KVC_RUNTIME_FORWARD_H
#define KVC_RUNTIME_FORWARD_H

#include "session.h"

namespace kvc {

// kvc_forward by a call that has the session's turn.
kvc_status forward(kvc_session *session, const kvc_chunk *chunks,
                   int64_t chunkCount, void *logits, int64_t logitsRows);

} // namespace kvc

#endif
