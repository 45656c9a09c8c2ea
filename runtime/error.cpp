#include "error.h"

#include "params.h"

#include <stdarg.h>
#include <stdio.h>

static thread_local char lastError[768];

kvc_status kvc::fail(kvc_status status, const char *format, ...) {
  char message[sizeof lastError]; // an argument may be the last message
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  memcpy(lastError, message, sizeof message);
  return status;
}

kvc::ShownPath::ShownPath(const char *path) {
  constexpr size_t room = sizeof text - 1;
  size_t length = strlen(path);
  if (length <= room)
    snprintf(text, sizeof text, "%s", path);
  else
    snprintf(text, sizeof text, "...%s", path + length - (room - 3));
}

const char *kvc_last_error(void) { return lastError; }

const char *kvc_status_string(kvc_status status) {
  switch (kvc::valueOf(status)) {
  case KVC_OK:
    return "ok";
  case KVC_INVALID_ARGUMENT:
    return "invalid argument";
  case KVC_OUT_OF_CAPACITY:
    return "out of capacity";
  case KVC_OUT_OF_MEMORY:
    return "out of memory";
  case KVC_IO:
    return "input/output";
  case KVC_INCOMPATIBLE:
    return "incompatible";
  case KVC_BUSY:
    return "busy";
  }
  return "unknown status";
}

const char *kvc_version(void) { return KVC_VERSION; }
