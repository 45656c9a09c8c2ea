// The packed weight file: a safetensors container that the compiler wrote.
#ifndef KVC_RUNTIME_PACKED_FILE_H
#define KVC_RUNTIME_PACKED_FILE_H

#include "kvc/kvc.h"

namespace kvc {

// A mapped file. Layout: u64 little-endian length of the header; the header, a
// JSON object padded with blanks; the data section, which reaches to the end of
// the file and starts at a multiple of 64 bytes.
struct PackedFile {
  char *file;
  int64_t fileBytes;
  char *data; // i8[dataBytes], within the mapping
  int64_t dataBytes;
};

// Maps the file read-only and checks that it was packed for `library`: the
// header's __metadata__ holds "format": "kvc", "kvc_abi" and "kvc_identity".
kvc_status openPackedFile(PackedFile *packed, const kvc_library *library,
                          const char *path);
void closePackedFile(PackedFile *packed);

} // namespace kvc

#endif
