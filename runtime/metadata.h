// Reads the string fields of a safetensors header's __metadata__.
#ifndef KVC_RUNTIME_METADATA_H
#define KVC_RUNTIME_METADATA_H

#include <stdint.h>

namespace kvc {

// One field that is looked for. `text` points into the header, between the
// quotes and with its escapes as they stand; NULL when the field is absent.
struct MetadataField {
  const char *name;
  const char *text;
  int64_t length;
};

// Fills `fields` from the object __metadata__ of the JSON object in
// header[0..bytes). Returns NULL, or what was expected where the header is
// malformed, with its offset in *at. Reads nothing outside the header.
const char *readMetadata(const char *header, int64_t bytes,
                         MetadataField *fields, int fieldCount, int64_t *at);

} // namespace kvc

#endif
