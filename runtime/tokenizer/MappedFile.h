//===- MappedFile.h - a file's bytes, read-only -----------------*- C++ -*-===//
#ifndef KVC_TOKENIZER_MAPPEDFILE_H
#define KVC_TOKENIZER_MAPPEDFILE_H

#include "kvc/kvc.h"

#include <string>
#include <string_view>

namespace kvc::tokenizer {

/// A whole file, mapped while this object lives.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  /// Maps `path`, once per object. KVC_IO names the file and the reason.
  kvc_status open(const std::string &path);

  std::string_view bytes() const { return {data, size}; }

private:
  const char *data = nullptr;
  size_t size = 0;
};

bool fileExists(const std::string &path);
bool isDirectory(const std::string &path);

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_MAPPEDFILE_H
