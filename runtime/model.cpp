#include "model.h"

#include "cancellation.h"
#include "cpu.h"
#include "error.h"
#include "file.h"
#include "page_layout.h"
#include "params.h"

#include <new>
#include <stddef.h>

namespace kvc {
namespace {

// One group of layers, as abi.h describes it: its arrays stand in the page, behind
// each other, and its pages hold what a token finds.
kvc_status checkGroup(const kvc_library *library, int64_t index) {
  const kvc_group &group = library->groups[index];
  auto number = static_cast<long long>(index);
  const struct {
    const char *name;
    int64_t value, least;
  } fields[] = {
      {"layers", group.layers, 1},
      {"kv_heads", group.kv_heads, 1},
      {"key_width", group.key_width, 1},
      {"value_width", group.value_width, 1},
      {"positions_per_page", group.positions_per_page, 1},
      {"pages_per_sequence", group.pages_per_sequence, 1},
      {"page_bytes", group.page_bytes, 1},
      {"window", group.window, 0},
      {"sections_count", group.sections_count, 1},
  };
  for (const auto &field : fields)
    if (field.value < field.least)
      return fail(KVC_INCOMPATIBLE,
                  "library %s: group %lld: expected %s to be at least %lld, but "
                  "got %lld",
                  library->name, number, field.name,
                  static_cast<long long>(field.least),
                  static_cast<long long>(field.value));
  int type = valueOf(group.type);
  if (type < KVC_TYPE_F64 || type > KVC_TYPE_BF16)
    return fail(KVC_INCOMPATIBLE,
                "library %s: group %lld: expected type to be f64, f32, f16 or "
                "bf16, but got element type %d",
                library->name, number, type);
  int64_t slots, twice;
  int64_t needed = group.window ? group.window : library->capacity;
  if (!multiply(group.positions_per_page, group.pages_per_sequence, &slots) ||
      !multiply(slots, 2, &twice) || slots < needed)
    return fail(KVC_INCOMPATIBLE,
                "library %s: group %lld: expected pages_per_sequence (%lld) pages "
                "of positions_per_page (%lld) to hold %lld positions",
                library->name, number,
                static_cast<long long>(group.pages_per_sequence),
                static_cast<long long>(group.positions_per_page),
                static_cast<long long>(needed));
  int64_t end = 0;
  for (int64_t i = 0; i < group.sections_count; ++i) {
    const kvc_section &section = group.sections[i];
    int64_t row, bytes, behind;
    if (section.rows < 1 || section.pieces < 1 || section.lanes < 1 ||
        section.bytes < 1 || group.positions_per_page % section.lanes != 0 ||
        section.offset < end ||
        !multiply(section.pieces, section.bytes, &row) ||
        !multiply(row, group.positions_per_page, &row) ||
        !multiply(row, section.rows, &bytes) ||
        !add(section.offset, bytes, &behind) || behind > group.page_bytes)
      return fail(KVC_INCOMPATIBLE,
                  "library %s: group %lld: expected page_bytes (%lld) to hold "
                  "section %lld, %lld rows of positions_per_page (%lld) positions "
                  "of %lld times %lld bytes at %lld, behind the one before",
                  library->name, number, static_cast<long long>(group.page_bytes),
                  static_cast<long long>(i), static_cast<long long>(section.rows),
                  static_cast<long long>(group.positions_per_page),
                  static_cast<long long>(section.pieces),
                  static_cast<long long>(section.bytes),
                  static_cast<long long>(section.offset));
    end = behind;
  }
  return KVC_OK;
}

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
      {"capacity", library->capacity, 1},
      {"weights_bytes", library->weights_bytes, 0},
      {"max_tokens", library->max_tokens, 1},
      {"workspace_bytes", library->workspace_bytes, 0},
      {"groups_count", library->groups_count, 1},
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
  if (arithmetic != KVC_TYPE_F64 && arithmetic != KVC_TYPE_F32)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected arithmetic to be f64 or f32, but got "
                "element type %d",
                library->name, arithmetic);
  if (library->exact != 0 && library->exact != 1)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected exact to be 0 or 1, but got %lld",
                library->name, static_cast<long long>(library->exact));
  if (valueOf(library->numerics) > KVC_NUMERICS_TILES)
    return fail(KVC_INCOMPATIBLE,
                "library %s: expected numerics to be fma (0) or tiles (1), but got %d",
                library->name, valueOf(library->numerics));
  *cacheBytesPerPosition = 0;
  for (int64_t i = 0; i < library->groups_count; ++i) {
    if (kvc_status status = checkGroup(library, i))
      return status;
    if (!add(*cacheBytesPerPosition, bytesPerPosition(library->groups[i]),
             cacheBytesPerPosition))
      return fail(KVC_INCOMPATIBLE,
                  "library %s: expected the bytes of a cached position to fit 64 "
                  "bits",
                  library->name);
  }
  return KVC_OK;
}

// Tokens of a sequence in a slice at most: so many that the first one's window isn't
// written over.
int64_t longestSliceOf(const kvc_library *library) {
  int64_t longest = library->max_tokens;
  for (int64_t i = 0; i < library->groups_count; ++i) {
    const kvc_group &group = library->groups[i];
    int64_t most = slotsOf(group) - group.window + 1;
    if (group.window && most < longest)
      longest = most;
  }
  return longest;
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
      kvc_model{kvc_model::modelTag,
                {1},
                allocator,
                library,
                kernels,
                cacheBytesPerPosition,
                longestSliceOf(library),
                weights};
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
  const kvc_group &group = library->groups[0];
  info.layout = group.layout;
  info.cpu_level = model->kernels->level;
  info.vocab = library->vocab;
  info.width = library->width;
  info.layers = library->layers;
  info.heads = library->heads;
  info.kv_heads = group.kv_heads;
  info.key_width = group.key_width;
  info.value_width = group.value_width;
  info.capacity = library->capacity;
  info.max_tokens = library->max_tokens;
  info.arithmetic = library->arithmetic;
  info.cache_type = group.type;
  memcpy(info.identity, library->identity, sizeof info.identity);
  info.weights_bytes = library->weights_bytes;
  info.weights_padding = library->weights_padding;
  info.cache_bytes_per_position = model->cacheBytesPerPosition;
  info.exact = int32_t(library->exact);
  info.numerics = library->numerics;
  info.groups_count = library->groups_count;
  info.groups = library->groups;
  return writeInfo(out_info, info, "kvc_model_info");
}
