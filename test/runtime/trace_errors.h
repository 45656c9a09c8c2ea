// Included before each file of the runtime that kvc-runtime-errors is made of:
// what makes an error writes down its place first.
#include "error.h"

extern "C" void traceError(const char *file, int line);

#define fail(...) (::traceError(__FILE__, __LINE__), fail(__VA_ARGS__))
#define failNull(...)                                                          \
  (::traceError(__FILE__, __LINE__), failNull(__VA_ARGS__))
#define failFile(...)                                                          \
  (::traceError(__FILE__, __LINE__), failFile(__VA_ARGS__))
