#include "turn.h"

#include "error.h"

namespace kvc {

static thread_local char self; // its address stands for the thread

bool isInUse(const kvc_session *session) {
  const void *owner = session->owner.load(std::memory_order_relaxed);
  return owner && (owner == &self || !isInherited(session));
}

Turn::Turn(const kvc_session *session, Use use)
    : status(checkSession(session)) {
  if (status != KVC_OK)
    return;
  const void *owner = nullptr;
  if (session->owner.compare_exchange_strong(owner, &self,
                                             std::memory_order_acquire,
                                             std::memory_order_relaxed))
    held = session;
  else if (owner != &self)
    status = fail(KVC_BUSY, "expected one thread at a time to use a session, "
                            "but another one is using it");
  else if (use == Use::changing)
    status = fail(KVC_BUSY, "expected no change of a session by a callback of "
                            "kvc_generate that is using it");
}

Turn::Turn(const kvc_session *session, Use use, int64_t sequence)
    : Turn(session, use) {
  if (status == KVC_OK)
    status = checkSequence(session, sequence);
}

Turn::~Turn() {
  if (held)
    held->owner.store(nullptr, std::memory_order_release);
}

} // namespace kvc
