#include "Library.h"

#include "Common.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <sys/stat.h>
#include <vector>

static bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

static bool beginsWith(const std::string &text, const std::string &begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

// "." for a file of the current directory.
static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

[[noreturn]] static void reject(const std::string &path, const char *what,
                                const std::string &advice) {
  die("%s: expected a directory that kvc-opt wrote, but got %s: %s",
      path.c_str(), what, advice.c_str());
}

static std::string compile(const std::string &path) {
  return "compile " + path + " with kvc-opt " + path + " -o DIR";
}

static const char convert[] =
    "save the model as safetensors beside its config.json, and compile that "
    "directory with kvc-opt";

[[noreturn]] static void rejectFile(const std::string &path) {
  std::string begin;
  char bytes[512];
  if (FILE *file = fopen(path.c_str(), "rb")) {
    begin.assign(bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
  }
  std::string name = path.substr(path.rfind('/') + 1), folder = folderOf(path);
  if (beginsWith(begin, "GGUF"))
    reject(path, "a GGUF file", compile(path));
  if (endsWith(name, ".mlir") || endsWith(name, ".mlirbc"))
    reject(path, "MLIR", compile(path));
  if (begin.find("\"kvc_spec\"") != begin.npos)
    reject(path, "a spec", compile(path));
  if (name == "config.json")
    reject(path, "a model's configuration", compile(folder));
  if (endsWith(name, ".safetensors") || endsWith(name, ".index.json"))
    reject(path, "a model's weights",
           "give " + folder + " where kvc-opt wrote it, or else " +
               compile(folder));
  // A zip archive, or a pickle.
  if (beginsWith(begin, "PK\3\4") || beginsWith(begin, "\x80\x02"))
    reject(path, "PyTorch's weights", convert);
  if (name.find(".so") != name.npos || endsWith(name, ".a"))
    reject(path, "a library", "give " + folder);
  reject(path, "a file", "see kvc-run --help");
}

[[noreturn]] static void
rejectDirectory(const std::string &path,
                const std::vector<std::string> &names) {
  auto has = [&](auto holds) {
    return std::find_if(names.begin(), names.end(), holds) != names.end();
  };
  auto ending = [&](const char *end) {
    return has([&](const std::string &name) { return endsWith(name, end); });
  };
  if (names.empty())
    reject(path, "an empty one",
           "compile a model to it with kvc-opt MODEL -o " + path);
  bool config = has([](const std::string &n) { return n == "config.json"; });
  if (config && ending(".safetensors"))
    reject(path, "a model's", compile(path));
  if (ending(".bin") || ending(".pt") || ending(".pth"))
    reject(path, "one with PyTorch's weights", convert);
  if (config)
    reject(path, "a model's without its weights",
           "put its safetensors there and " + compile(path));
  for (const std::string &name : names)
    if (endsWith(name, ".gguf"))
      reject(path, "one of GGUF files", compile(path + "/" + name));
  die("%s: expected a file lib<model>.so, written by kvc-opt, but it has none",
      path.c_str());
}

void dieNotCompiled(const std::string &path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    int reason = errno;
    // The hub's names are owner/model.
    size_t slash = path.find('/');
    bool hub = reason == ENOENT && slash != 0 && slash + 1 < path.size() &&
               path[0] != '.' && path[0] != '~' &&
               path.find('/', slash + 1) == path.npos &&
               stat(folderOf(path).c_str(), &status) != 0;
    if (hub)
      reject(path, "a name that no file here has",
             "a model of a hub has to be downloaded first, and its directory "
             "compiled with kvc-opt");
    die("%s: %s", path.c_str(), strerror(reason));
  }
  if (S_ISREG(status.st_mode))
    rejectFile(path);
  DIR *folder = opendir(path.c_str());
  if (!folder)
    die("%s: %s", path.c_str(), strerror(errno));
  std::vector<std::string> names;
  while (const dirent *entry = readdir(folder))
    if (entry->d_name[0] != '.')
      names.push_back(entry->d_name);
  closedir(folder);
  std::sort(names.begin(), names.end());
  rejectDirectory(path, names);
}
