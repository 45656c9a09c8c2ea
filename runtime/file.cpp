#include "file.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kvc {

kvc_status checkPath(const char *path, const char *argument) {
  if (!path)
    return failNull(argument);
  if (!*path)
    return fail(KVC_INVALID_ARGUMENT,
                "expected %s to name a file, but got \"\"", argument);
  return KVC_OK;
}

static kvc_status checkRegular(const char *path, mode_t mode) {
  if (S_ISREG(mode))
    return KVC_OK;
  const char *kind = S_ISDIR(mode)    ? "a folder"
                     : S_ISFIFO(mode) ? "a pipe"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device";
  return fail(KVC_IO, "%s: expected a regular file, but got %s",
              ShownPath(path).text, kind);
}

kvc_status openFile(const char *path, int *file, int64_t *bytes) {
  // A FIFO would wait for its writer until we can see that it is one.
  *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (*file < 0)
    return failFile(path, "open it", strerror(errno));
  struct stat status;
  kvc_status result = KVC_OK;
  if (fstat(*file, &status) != 0)
    result = failFile(path, "read it", strerror(errno));
  else
    result = checkRegular(path, status.st_mode);
  if (result != KVC_OK)
    close(*file);
  else
    *bytes = status.st_size;
  return result;
}

kvc_status checkReplaceable(const char *path) {
  struct stat status;
  if (stat(path, &status) == 0)
    return checkRegular(path, status.st_mode);
  return errno == ENOENT ? KVC_OK
                         : failFile(path, "look at it", strerror(errno));
}

} // namespace kvc
