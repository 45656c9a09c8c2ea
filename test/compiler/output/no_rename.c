/* Preloaded: the first rename to a path that ends with $NO_RENAME fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rename(const char *from, const char *to) {
  static int failed;
  const char *name = getenv("NO_RENAME");
  size_t length = strlen(to), end = strlen(name);
  int is_out = strstr(from, "/.kvc-") && !strstr(to, "/.kvc-");
  if (!failed && is_out && length >= end && !strcmp(to + length - end, name)) {
    failed = 1;
    errno = ENOSPC;
    return -1;
  }
  int (*next)(const char *, const char *) =
      (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
  return next(from, to);
}
