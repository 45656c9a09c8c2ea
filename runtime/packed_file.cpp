#include "packed_file.h"

#include "error.h"
#include "file.h"
#include "metadata.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kvc {
namespace {

constexpr int64_t dataAlignment = 64;
constexpr int64_t lengthBytes = 8; // of the header's length
constexpr int digitCount = 2 * KVC_IDENTITY_BYTES;

kvc_status mapFile(PackedFile *packed, const char *path) {
  int file;
  int64_t bytes;
  if (kvc_status status = openFile(path, &file, &bytes))
    return status;
  void *address = MAP_FAILED;
  kvc_status status = KVC_OK;
  if (bytes < lengthBytes)
    status = fail(KVC_IO,
                  "%s: header length: expected at least 8 bytes of file, but "
                  "got %lld",
                  ShownPath(path).text, static_cast<long long>(bytes));
  else if ((address = mmap(nullptr, size_t(bytes), PROT_READ, MAP_PRIVATE, file,
                           0)) == MAP_FAILED)
    status = fail(errno == ENOMEM ? KVC_OUT_OF_MEMORY : KVC_IO,
                  "%s: mapping %lld bytes: %s", ShownPath(path).text,
                  static_cast<long long>(bytes), strerror(errno));
  close(file);
  if (status != KVC_OK)
    return status;
  packed->file = static_cast<char *>(address);
  packed->fileBytes = bytes;
  // Both are wishes, and the program is right without them.
  madvise(address, size_t(bytes), MADV_HUGEPAGE);
  madvise(address, size_t(bytes), MADV_WILLNEED);
  return KVC_OK;
}

kvc_status findData(PackedFile *packed, const char *path) {
  uint64_t headerBytes = 0;
  for (int i = 0; i < lengthBytes; ++i)
    headerBytes |= uint64_t(uint8_t(packed->file[i])) << 8 * i;
  int64_t room = packed->fileBytes - lengthBytes;
  if (headerBytes > uint64_t(room))
    return fail(KVC_IO,
                "%s: header length: expected at most %lld bytes (what the file "
                "has after it), but got %llu",
                path, static_cast<long long>(room),
                static_cast<unsigned long long>(headerBytes));
  int64_t start = lengthBytes + int64_t(headerBytes);
  if (start % dataAlignment)
    return fail(KVC_IO,
                "%s: header length: expected the data section to start at a "
                "multiple of %lld bytes, but got %lld",
                path, static_cast<long long>(dataAlignment),
                static_cast<long long>(start));
  packed->data = packed->file + start;
  packed->dataBytes = packed->fileBytes - start;
  return KVC_OK;
}

void writeDigits(const uint8_t *identity, char (&digits)[digitCount + 1]) {
  for (int i = 0; i < KVC_IDENTITY_BYTES; ++i)
    snprintf(digits + 2 * i, 3, "%02x", unsigned(identity[i]));
}

bool equals(const MetadataField &field, const char *text) {
  return field.text && size_t(field.length) == strlen(text) &&
         memcmp(field.text, text, size_t(field.length)) == 0;
}

// For a message: the field's text, cut to what a line bears.
int shown(const MetadataField &field) {
  return int(field.length < digitCount ? field.length : digitCount);
}

kvc_status checkMetadata(const PackedFile *packed, const kvc_library *library,
                         const char *path) {
  enum { format, abi, identity, count };
  MetadataField fields[count] = {{"format", nullptr, 0},
                                 {"kvc_abi", nullptr, 0},
                                 {"kvc_identity", nullptr, 0}};
  int64_t at = 0;
  const char *header = packed->file + lengthBytes;
  if (const char *expected =
          readMetadata(header, packed->data - header, fields, count, &at))
    return fail(KVC_IO, "%s: header: expected %s at byte %lld", path, expected,
                static_cast<long long>(lengthBytes + at));
  for (const MetadataField &field : fields)
    if (!field.text)
      return fail(KVC_INCOMPATIBLE,
                  "%s: __metadata__.%s: expected a file that kvc-opt packed, "
                  "but the field is absent",
                  path, field.name);

  if (!equals(fields[format], "kvc"))
    return fail(KVC_INCOMPATIBLE,
                "%s: __metadata__.format: expected kvc, but got %.*s", path,
                shown(fields[format]), fields[format].text);

  char version[16];
  snprintf(version, sizeof version, "%d", KVC_ABI_VERSION);
  if (!equals(fields[abi], version))
    return fail(KVC_INCOMPATIBLE,
                "%s: __metadata__.kvc_abi: expected version %s (that of this "
                "runtime), but got %.*s",
                path, version, shown(fields[abi]), fields[abi].text);

  char digits[digitCount + 1];
  writeDigits(library->identity, digits);
  if (!equals(fields[identity], digits)) {
    // Two libraries of one name are told apart by their files.
    Dl_info origin;
    bool known = dladdr(library, &origin) && origin.dli_fname;
    return fail(KVC_INCOMPATIBLE,
                "%s: __metadata__.kvc_identity: expected %.16s... (that of "
                "library %s%s%s), but got %.*s...",
                path, digits, library->name, known ? " in " : "",
                known ? ShownPath(origin.dli_fname).text : "",
                fields[identity].length < 16 ? shown(fields[identity]) : 16,
                fields[identity].text);
  }
  return KVC_OK;
}

kvc_status checkSize(const PackedFile *packed, const kvc_library *library,
                     const char *path) {
  if (packed->dataBytes == library->weights_bytes)
    return KVC_OK;
  return fail(
      KVC_INCOMPATIBLE,
      "%s: data section: expected %lld bytes (those of library %s), but "
      "got %lld",
      path, static_cast<long long>(library->weights_bytes), library->name,
      static_cast<long long>(packed->dataBytes));
}

} // namespace

kvc_status openPackedFile(PackedFile *packed, const kvc_library *library,
                          const char *path) {
  *packed = {};
  ShownPath shown(path);
  kvc_status status = mapFile(packed, path);
  if (status == KVC_OK)
    status = findData(packed, shown.text);
  if (status == KVC_OK)
    status = checkMetadata(packed, library, shown.text);
  if (status == KVC_OK)
    status = checkSize(packed, library, shown.text);
  if (status != KVC_OK)
    closePackedFile(packed);
  return status;
}

void closePackedFile(PackedFile *packed) {
  if (packed->file)
    munmap(packed->file, size_t(packed->fileBytes));
  *packed = {};
}

} // namespace kvc
