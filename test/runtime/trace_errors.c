/* Writes the places of trace_errors.h to the file that KVC_ERRORS names. */
#include <stdio.h>
#include <stdlib.h>

void traceError(const char *file, int line) {
  static FILE *out;
  if (!out && !(out = fopen(getenv("KVC_ERRORS"), "a")))
    abort();
  fprintf(out, "%s:%d\n", file, line);
}
