// What to do with a path that is no compiled model.
#ifndef KVC_RUN_NOTCOMPILED_H
#define KVC_RUN_NOTCOMPILED_H

#include <string>

// Dies with what `path` is, where it is something that people have of a model,
// and what to give instead.
[[noreturn]] void dieNotCompiled(const std::string &path);

#endif
