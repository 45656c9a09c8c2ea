// What kvc-opt wrote to a folder, opened: for test programs.
#ifndef KVC_TEST_COMPILED_MODEL_H
#define KVC_TEST_COMPILED_MODEL_H

#include <kvc/kvc.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <glob.h>
#include <string>

[[noreturn]] __attribute__((format(printf, 1, 2))) inline void
die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("error: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

inline void must(kvc_status status) {
  if (status != KVC_OK)
    die("%s: %s", kvc_status_string(status), kvc_last_error());
}

struct CompiledModel {
  std::string name;
  const kvc_library *library;
  kvc_model *model = nullptr; // the caller closes it
  int64_t rowBytes;           // of one row of logits

  explicit CompiledModel(const std::string &folder,
                         const kvc_allocator *allocator = nullptr) {
    glob_t found;
    if (glob((folder + "/lib*.so").c_str(), 0, nullptr, &found) ||
        found.gl_pathc != 1)
      die("%s: expected one lib*.so", folder.c_str());
    std::string path = found.gl_pathv[0];
    globfree(&found);
    size_t start = path.rfind('/') + 4;
    name = path.substr(start, path.size() - 3 - start);
    void *loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void *symbol =
        loaded ? dlsym(loaded, (name + "_library").c_str()) : nullptr;
    if (!symbol)
      die("%s", dlerror());
    library = reinterpret_cast<const kvc_library *(*)()>(symbol)();
    kvc_model_params params;
    kvc_model_params_init(&params);
    params.allocator = allocator;
    must(kvc_model_open(library, (folder + "/" + name + ".safetensors").c_str(),
                        &params, &model));
    rowBytes = library->vocab * (library->arithmetic == KVC_TYPE_F64 ? 8 : 4);
  }
};

#endif
