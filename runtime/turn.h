// Notices a session that two threads use at once, or a callback changes.
#ifndef KVC_RUNTIME_TURN_H
#define KVC_RUNTIME_TURN_H

#include "cancellation.h"
#include "session.h"

namespace kvc {

enum class Use { reading, changing };

// While it lives, no other thread's call gets a turn with the session. The thread
// that has one gets another for reading: a callback of kvc_generate can ask the
// session about itself, and can't change it in the middle of the call. It isn't
// cancelled: the turn would never end.
class Turn {
public:
  Turn(const kvc_session *session, Use use);
  // For a call that names a sequence.
  Turn(const kvc_session *session, Use use, int64_t sequence);
  ~Turn();
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

  // KVC_OK; or `session` is none, or is in use, or has no such sequence.
  kvc_status status;

private:
  Uncancelled uncancelled;
  const kvc_session *held = nullptr; // to be let go at the end
};

// Whether a call is using the session. In a forked child that is a call of this
// thread: the others' ended with their threads.
bool isInUse(const kvc_session *session);

} // namespace kvc

#endif
