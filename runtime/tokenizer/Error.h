//===- Error.h - the message of the last failure ----------------*- C++ -*-===//
#ifndef KVC_TOKENIZER_ERROR_H
#define KVC_TOKENIZER_ERROR_H

#include "kvc/kvc.h"

namespace kvc::tokenizer {

/// Sets this thread's message and returns `status`, for `return fail(...)`.
kvc_status fail(kvc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// This thread's message; empty before the first failure.
const char *lastError();

} // namespace kvc::tokenizer

/// Returns from the enclosing function where `expression` fails.
#define KVC_TRY(expression)                                                    \
  do {                                                                         \
    if (kvc_status tryStatus = (expression); tryStatus != KVC_OK)              \
      return tryStatus;                                                        \
  } while (false)

#endif // KVC_TOKENIZER_ERROR_H
