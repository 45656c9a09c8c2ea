#include "MappedFile.h"

#include "Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kvc::tokenizer;

MappedFile::~MappedFile() {
  if (data)
    munmap(const_cast<char *>(data), size);
}

kvc_status MappedFile::open(const std::string &path) {
  // A FIFO would wait for its writer until we can see that it is one.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return fail(KVC_IO, "%s: cannot open the file: %s", path.c_str(),
                strerror(errno));
  struct stat status = {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    return fail(KVC_IO, "%s: expected a regular file, but got %s", path.c_str(),
                S_ISDIR(status.st_mode) ? "a folder" : "something else");
  }
  size = static_cast<size_t>(status.st_size);
  void *mapping = nullptr; // an empty file can't be mapped and needs no mapping
  if (size != 0)
    mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  int reason = errno;
  ::close(file);
  if (mapping == MAP_FAILED) {
    size = 0;
    return fail(KVC_IO, "%s: cannot map the file: %s", path.c_str(),
                strerror(reason));
  }
  data = static_cast<const char *>(mapping);
  return KVC_OK;
}

bool kvc::tokenizer::fileExists(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

bool kvc::tokenizer::isDirectory(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}
