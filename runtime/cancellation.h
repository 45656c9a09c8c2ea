// Calls that a thread's cancellation doesn't cut short.
#ifndef KVC_RUNTIME_CANCELLATION_H
#define KVC_RUNTIME_CANCELLATION_H

#include <pthread.h>

namespace kvc {

// While it lives, a request to cancel its thread waits: the call ends as it would
// have, since without exceptions nothing would run that sets things right.
class Uncancelled {
  int saved;

public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved); }
  ~Uncancelled() { pthread_setcancelstate(saved, nullptr); }
  Uncancelled(const Uncancelled &) = delete;
  Uncancelled &operator=(const Uncancelled &) = delete;
};

} // namespace kvc

#endif
