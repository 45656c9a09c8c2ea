#include "Library.h"

#include "Common.h"

#include <algorithm>
#include <dirent.h>
#include <dlfcn.h>
#include <vector>

// Names N of the files libN.so.
static std::vector<std::string> libraryNames(const std::string &directory) {
  std::vector<std::string> names;
  DIR *folder = opendir(directory.c_str());
  if (!folder)
    return names;
  while (const dirent *entry = readdir(folder)) {
    std::string file = entry->d_name;
    if (file.size() > 6 && file.compare(0, 3, "lib") == 0 &&
        file.compare(file.size() - 3, 3, ".so") == 0)
      names.push_back(file.substr(3, file.size() - 6));
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

Library loadLibrary(const std::string &directory) {
  std::vector<std::string> names = libraryNames(directory);
  if (names.empty())
    dieNotCompiled(directory);
  if (names.size() > 1)
    die("%s: expected one file lib<model>.so, but it has lib%s.so and lib%s.so",
        directory.c_str(), names[0].c_str(), names[1].c_str());
  std::string stem = directory + "/"; // without '/' dlopen searches elsewhere
  std::string path = stem + "lib" + names[0] + ".so";
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    die("%s", dlerror());
  std::string symbol = names[0] + "_library";
  auto accessor =
      reinterpret_cast<const kvc_library *(*)()>(dlsym(handle, symbol.c_str()));
  if (!accessor)
    die("%s: expected it to export %s", path.c_str(), symbol.c_str());
  return {accessor(), stem + names[0] + ".safetensors"};
}
