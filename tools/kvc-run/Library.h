// Finds and loads what kvc-opt wrote.
#ifndef KVC_RUN_LIBRARY_H
#define KVC_RUN_LIBRARY_H

#include <kvc/kvc.h>
#include <string>

struct Library {
  const kvc_library *library; // stays loaded until the program ends
  std::string weightsPath;
};

// Loads the one lib<name>.so of a directory; dies when it has none or several.
Library loadLibrary(const std::string &directory);

// Dies with what `path` is, where it is something that people have of a model,
// and what to give instead.
[[noreturn]] void dieNotCompiled(const std::string &path);

#endif
