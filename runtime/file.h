// Files that callers name.
#ifndef KVC_RUNTIME_FILE_H
#define KVC_RUNTIME_FILE_H

#include "kvc/kvc.h"

namespace kvc {

// Error unless `path`, the argument of that name, can name a file.
kvc_status checkPath(const char *path, const char *argument);

// Opens a regular file for reading, and says how long it is.
kvc_status openFile(const char *path, int *file, int64_t *bytes);

// Error unless nothing stands at `path`, or a regular file, or links to one of
// the two.
kvc_status checkReplaceable(const char *path);

} // namespace kvc

#endif
