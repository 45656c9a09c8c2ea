#include "Error.h"

#include <cstdarg>
#include <cstdio>

static thread_local char message[1024];

kvc_status kvc::tokenizer::fail(kvc_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return status;
}

const char *kvc::tokenizer::lastError() { return message; }
