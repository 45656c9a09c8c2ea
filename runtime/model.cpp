#include "model.h"

#include "cancellation.h"
#include "cpu.h"
#include "error.h"
#include "file.h"
#include "params.h"

#include <new>
#include <stddef.h>

namespace kvc {
namespace {

// What later code relies on; a compiler that keeps the ABI passes.
kvc_status checkLibrary(const kvc_library *library,
                        int64_t *cacheBytesPerPosition) {
  // The two first fields are the same in every version.
  if (library->abi_version != KVC_ABI_VERSION)
    return fail(
        KVC_INCOMPATIBLE,
        "expected a library of ABI version %d (that of runtime %s), but "
        "got version %u",
        KVC_ABI_VERSION, kvc_version(), library->abi_version);
  if (library->struct_size != sizeof(kvc_library))
    return fail(
        KVC_INCOMPATIBLE,
        "expected kvc_library to have %zu bytes (as in runtime %s), but "
        "the library's has %u",
        sizeof(kvc_library), kvc_version(), library->struct_size);

  const struct {
    const char *name;
    int64_t value, least;
  } fields[] = {
      {"vocab", library->vocab, 1},
      {"width", library->width, 1},
      {"layers", library->layers, 1},
      {"heads", library->heads, 1},
      {"kv_heads", library->kv_heads, 1},
      {"key_width", library->key_width, 1},
      {"value_width", library->value_width, 1},
      {"capacity", library->capacity, 1},
      {"positions_per_page", library->positions_per_page, 1},
      {"pages_per_sequence", library->pages_per_sequence, 1},
      {"page_bytes", library->page_bytes, 1},
      {"weights_bytes", library->weights_bytes, 0},
      {"max_tokens", library->max_tokens, 1},
      {"workspace_bytes", library->workspace_bytes, 0},
      {"kernels_count", library->kernels_count, 1},
  };
  for (const auto &field : fields)
    if (field.value < field.least)
      return fail(KVC_INCOMPATIBLE,
                  "library %s: expected %s to be at least %lld, but got %lld",
                  library->name, field.name,
                  static_cast<long long>(field.least),
                  static_cast<long long>(field.value));
  if (library->vocab > INT32_MAX)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected vocab to fit 32 bits, but got %lld",
                library->name, static_cast<long long>(library->vocab));
  int arithmetic = valueOf(library->arithmetic);
  int cacheType = valueOf(library->cache_type);
  if (arithmetic != KVC_TYPE_F64 && arithmetic != KVC_TYPE_F32)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected arithmetic to be f64 or f32, but got "
                "element type %d",
                library->name, arithmetic);
  if (cacheType < KVC_TYPE_F64 || cacheType > KVC_TYPE_BF16)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected cache_type to be f64, f32, f16 or bf16, "
                "but got element type %d",
                library->name, cacheType);
  if (library->exact != 0 && library->exact != 1)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected exact to be 0 or 1, but got %lld",
                library->name, static_cast<long long>(library->exact));
  int64_t positions;
  if (!multiply(library->positions_per_page, library->pages_per_sequence,
                &positions) ||
      positions < library->capacity)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected pages_per_sequence (%lld) pages of "
                "positions_per_page (%lld) to hold the capacity (%lld)",
                library->name,
                static_cast<long long>(library->pages_per_sequence),
                static_cast<long long>(library->positions_per_page),
                static_cast<long long>(library->capacity));

  int64_t heads, widths, elements;
  if (!multiply(library->layers, library->kv_heads, &heads) ||
      !add(library->key_width, library->value_width, &widths) ||
      !multiply(heads, widths, &elements) ||
      !multiply(elements, bytesOf(library->cache_type), cacheBytesPerPosition))
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected the bytes of a cached position to fit 64 "
                "bits",
                library->name);
  int64_t held;
  if (!multiply(library->positions_per_page, *cacheBytesPerPosition, &held) ||
      held > library->page_bytes)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected page_bytes (%lld) to hold "
                "positions_per_page (%lld) positions of %lld bytes",
                library->name, static_cast<long long>(library->page_bytes),
                static_cast<long long>(library->positions_per_page),
                static_cast<long long>(*cacheBytesPerPosition));
  return KVC_OK;
}

} // namespace

kvc_status checkModel(const kvc_model *model) {
  if (!model)
    return failNull("model");
  if (model->tag != kvc_model::modelTag)
    return fail(KVC_INVALID_ARGUMENT,
                "expected model to be an open model, but got %s",
                model->tag == kvc_model::closedTag ? "a closed one"
                                                   : "another thing");
  return KVC_OK;
}

void retainModel(const kvc_model *model) {
  const_cast<kvc_model *>(model)->references.fetch_add(
      1, std::memory_order_relaxed);
}

void releaseModel(const kvc_model *shared) {
  auto *model = const_cast<kvc_model *>(shared);
  if (model->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  closePackedFile(&model->weights);
  model->tag = 0;
  deallocate(model->allocator, model);
}

} // namespace kvc

using namespace kvc;

kvc_status kvc_model_open(const kvc_library *library, const char *weights_path,
                          const kvc_model_params *params,
                          kvc_model **out_model) {
  Uncancelled uncancelled;
  if (!library)
    return failNull("library");
  if (kvc_status status = checkPath(weights_path, "weights_path"))
    return status;
  if (!out_model)
    return failNull("out_model");
  kvc_model_params values;
  if (kvc_status status = readParams(&values, params, "kvc_model_params"))
    return status;
  Allocator allocator;
  if (kvc_status status = readAllocator(&allocator, values.allocator, {}))
    return status;
  int64_t cacheBytesPerPosition = 0;
  if (kvc_status status = checkLibrary(library, &cacheBytesPerPosition))
    return status;
  const kvc_kernels *kernels = bestKernels(library);
  if (!kernels)
    return KVC_INCOMPATIBLE;

  PackedFile weights;
  if (kvc_status status = openPackedFile(&weights, library, weights_path))
    return status;
  void *memory = allocateBytes(allocator, sizeof(kvc_model));
  if (!memory) {
    closePackedFile(&weights);
    return fail(KVC_OUT_OF_MEMORY, "no memory for a model");
  }
  *out_model = new (memory)
      kvc_model{kvc_model::modelTag, {1},     allocator, library,
                kernels, cacheBytesPerPosition, weights};
  return KVC_OK;
}

void kvc_model_close(kvc_model *model) {
  if (!model || model->tag != kvc_model::modelTag)
    return;
  model->tag = kvc_model::closedTag;
  releaseModel(model);
}

kvc_status kvc_model_query(const kvc_model *model, kvc_model_info *out_info) {
  if (kvc_status status = checkModel(model))
    return status;
  if (!out_info)
    return failNull("out_info");
  const kvc_library *library = model->library;
  kvc_model_info info;
  kvc_model_info_init(&info);
  info.name = library->name;
  info.layout = library->layout;
  info.cpu_level = model->kernels->level;
  info.vocab = library->vocab;
  info.width = library->width;
  info.layers = library->layers;
  info.heads = library->heads;
  info.kv_heads = library->kv_heads;
  info.key_width = library->key_width;
  info.value_width = library->value_width;
  info.capacity = library->capacity;
  info.max_tokens = library->max_tokens;
  info.arithmetic = library->arithmetic;
  info.cache_type = library->cache_type;
  memcpy(info.identity, library->identity, sizeof info.identity);
  info.weights_bytes = library->weights_bytes;
  info.weights_padding = library->weights_padding;
  info.cache_bytes_per_position = model->cacheBytesPerPosition;
  info.exact = int32_t(library->exact);
  return writeInfo(out_info, info, "kvc_model_info");
}
