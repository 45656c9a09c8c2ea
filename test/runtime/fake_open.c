#include "check.h"
#include "fake_model.h"

kvc_model *fake_model_open(kvc_library *library, const fake_shape *shape,
                           const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/fake.safetensors", folder);
  fake_library_fill(library, shape);
  fake_weights_write(library, path);
  kvc_model *model = NULL;
  CHECK_OK(kvc_model_open(library, path, NULL, &model));
  return model;
}
