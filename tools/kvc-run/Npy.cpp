#include "Npy.h"

#include "Common.h"

#include <cerrno>
#include <cstring>

// Format 1.0, as NumPy documents it (numpy.lib.format): magic, version, u16
// length of the header, and the header, a Python literal padded with blanks so
// that the data starts at a multiple of 64 bytes, and ended by a newline.
NpyWriter::NpyWriter(const std::string &path, kvc_type type, int64_t rows,
                     int64_t columns)
    : path(path), file(fopen(path.c_str(), "wb")),
      rowBytes(size_t(columns) * (type == KVC_TYPE_F64 ? 8 : 4)) {
  if (!file)
    die("%s: %s", path.c_str(), strerror(errno));
  std::string header =
      std::string("{'descr': '") + (type == KVC_TYPE_F64 ? "<f8" : "<f4") +
      "', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
      std::to_string(columns) + "), }";
  constexpr size_t before = 10; // bytes ahead of the header
  header.append(63 - (before + header.size()) % 64, ' ').append("\n");
  const char start[before + 1] = {'\x93',
                                  'N',
                                  'U',
                                  'M',
                                  'P',
                                  'Y',
                                  1,
                                  0,
                                  char(header.size() & 0xff),
                                  char(header.size() >> 8)};
  fwrite(start, 1, before, file);
  fwrite(header.data(), 1, header.size(), file);
}

void NpyWriter::write(const void *elements, int64_t rows) {
  fwrite(elements, rowBytes, size_t(rows), file);
}

void NpyWriter::close() {
  bool failed = ferror(file);
  if (fclose(file) != 0 || failed)
    die("%s: expected to write all of it, but got: %s", path.c_str(),
        strerror(errno));
}
