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

} // namespace kvc

#endif
