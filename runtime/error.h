// The thread's last error.
#ifndef KVC_RUNTIME_ERROR_H
#define KVC_RUNTIME_ERROR_H

#include "kvc/kvc.h"

namespace kvc {

// Formats the thread's last error and returns `status`, so that a check reads
// `return fail(KVC_..., "expected ..., but got ...", ...)`.
__attribute__((format(printf, 2, 3))) kvc_status fail(kvc_status status,
                                                      const char *format, ...);

inline kvc_status failNull(const char *argument) {
  return fail(KVC_INVALID_ARGUMENT, "expected %s to be given, but got NULL",
              argument);
}

// A path for messages: its end, where the whole would leave no room for the
// reason.
struct ShownPath {
  char text[500];
  explicit ShownPath(const char *path);
};

// What can't be done with a file, and why.
inline kvc_status failFile(const char *path, const char *verb,
                           const char *reason) {
  return fail(KVC_IO, "%s: can't %s: %s", ShownPath(path).text, verb, reason);
}

} // namespace kvc

#endif
