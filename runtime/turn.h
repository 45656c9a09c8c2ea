// Notices a session that two threads use at once.
#ifndef KVC_RUNTIME_TURN_H
#define KVC_RUNTIME_TURN_H

#include "session.h"

namespace kvc {

// While it lives, no other thread's call gets a turn with the session. A thread
// that has one gets another: callbacks can ask a session about itself.
class Turn {
public:
  explicit Turn(const kvc_session *session);
  ~Turn();
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

  // KVC_OK; or `session` is none, or another thread is using it.
  kvc_status status;

private:
  const kvc_session *held = nullptr; // to be let go at the end
};

} // namespace kvc

#endif
