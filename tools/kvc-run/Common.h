// What the parts of kvc-run and kvc-bench share: errors that end the program.
#ifndef KVC_RUN_COMMON_H
#define KVC_RUN_COMMON_H

#include <kvc/kvc.h>

// Prints "error: " and the message, and exits with 1.
[[noreturn]] __attribute__((format(printf, 1, 2))) void die(const char *format,
                                                            ...);

// Dies with the runtime's message unless all went well.
inline void must(kvc_status status) {
  if (status != KVC_OK)
    die("%s", kvc_last_error());
}

// Seconds of a clock that only goes forward.
double now();

#endif
