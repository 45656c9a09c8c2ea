// Everything that can fail in a forward call.
#ifndef KVC_RUNTIME_PLAN_H
#define KVC_RUNTIME_PLAN_H

#include "session.h"

namespace kvc {

// What a batch of chunks takes.
struct Plan {
  int64_t tokens;
  int64_t rows; // of logits
  int64_t newPages;
  int64_t copiedPages; // of the new ones, copies of shared pages
};

// Checks chunks, capacity and pages. Changes nothing that a call sees.
kvc_status planChunks(kvc_session *session, const kvc_chunk *chunks,
                      int64_t chunkCount, Plan *plan);

} // namespace kvc

#endif
