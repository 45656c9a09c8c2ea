// The layout of what a generated library and the runtime pass to each other, field
// by field: who changes it here and in abi.h changes KVC_ABI_VERSION, too.
#include "kvc/abi.h"

#include <stddef.h>

#define FIELD(type, field, offset, bytes)                                      \
  static_assert(offsetof(type, field) == offset &&                             \
                    sizeof(type::field) == bytes,                              \
                #type "." #field ": expected " #bytes " bytes at " #offset)

static_assert(KVC_ABI_VERSION == 4, "expected the version of this layout");

static_assert(sizeof(kvc_type) == 4 && KVC_TYPE_F64 == 0 && KVC_TYPE_F32 == 1 &&
                  KVC_TYPE_F16 == 2 && KVC_TYPE_BF16 == 3,
              "kvc_type: expected the values of every version");
static_assert(sizeof(kvc_numerics) == 4 && KVC_NUMERICS_FMA == 0 &&
                  KVC_NUMERICS_TILES == 1,
              "kvc_numerics: expected the values of every version");

FIELD(kvc_buffer, allocated, 0, 8);
FIELD(kvc_buffer, aligned, 8, 8);
FIELD(kvc_buffer, offset, 16, 8);
FIELD(kvc_buffer, size, 24, 8);
FIELD(kvc_buffer, stride, 32, 8);
static_assert(sizeof(kvc_buffer) == 40, "kvc_buffer: expected 40 bytes");

FIELD(kvc_executor, parallel_for, 0, 8);
static_assert(sizeof(kvc_executor) == 8, "kvc_executor: expected 8 bytes");

FIELD(kvc_kernels, level, 0, 8);
FIELD(kvc_kernels, features, 8, 8);
FIELD(kvc_kernels, forward, 16, 8);
static_assert(sizeof(kvc_kernels) == 24, "kvc_kernels: expected 24 bytes");

FIELD(kvc_launcher, launch, 0, 8);
static_assert(sizeof(kvc_launcher) == 8, "kvc_launcher: expected 8 bytes");

FIELD(kvc_device_kernel, name, 0, 8);
FIELD(kvc_device_kernel, threads, 8, 8);
static_assert(sizeof(kvc_device_kernel) == 16, "kvc_device_kernel: expected 16 bytes");

FIELD(kvc_device_code, device, 0, 8);
FIELD(kvc_device_code, level, 8, 8);
FIELD(kvc_device_code, code, 16, 8);
FIELD(kvc_device_code, code_bytes, 24, 8);
FIELD(kvc_device_code, workspace_bytes, 32, 8);
FIELD(kvc_device_code, kernels_count, 40, 8);
FIELD(kvc_device_code, kernels, 48, 8);
FIELD(kvc_device_code, forward, 56, 8);
static_assert(sizeof(kvc_device_code) == 64, "kvc_device_code: expected 64 bytes");

FIELD(kvc_section, offset, 0, 8);
FIELD(kvc_section, rows, 8, 8);
FIELD(kvc_section, pieces, 16, 8);
FIELD(kvc_section, lanes, 24, 8);
FIELD(kvc_section, bytes, 32, 8);
static_assert(sizeof(kvc_section) == 40, "kvc_section: expected 40 bytes");

FIELD(kvc_group, layers, 0, 8);
FIELD(kvc_group, kv_heads, 8, 8);
FIELD(kvc_group, key_width, 16, 8);
FIELD(kvc_group, value_width, 24, 8);
FIELD(kvc_group, type, 32, 4);
FIELD(kvc_group, layout, 40, 8);
FIELD(kvc_group, positions_per_page, 48, 8);
FIELD(kvc_group, pages_per_sequence, 56, 8);
FIELD(kvc_group, page_bytes, 64, 8);
FIELD(kvc_group, page_padding, 72, 8);
FIELD(kvc_group, window, 80, 8);
FIELD(kvc_group, sections_count, 88, 8);
FIELD(kvc_group, sections, 96, 8);
static_assert(sizeof(kvc_group) == 104, "kvc_group: expected 104 bytes");

FIELD(kvc_library, abi_version, 0, 4);
FIELD(kvc_library, struct_size, 4, 4);
FIELD(kvc_library, name, 8, 8);
FIELD(kvc_library, compiler, 16, 8);
FIELD(kvc_library, identity, 24, 32);
FIELD(kvc_library, vocab, 56, 8);
FIELD(kvc_library, width, 64, 8);
FIELD(kvc_library, layers, 72, 8);
FIELD(kvc_library, heads, 80, 8);
FIELD(kvc_library, capacity, 88, 8);
FIELD(kvc_library, arithmetic, 96, 4);
FIELD(kvc_library, numerics, 100, 4);
FIELD(kvc_library, exact, 104, 8);
FIELD(kvc_library, weights_bytes, 112, 8);
FIELD(kvc_library, weights_padding, 120, 8);
FIELD(kvc_library, max_tokens, 128, 8);
FIELD(kvc_library, workspace_bytes, 136, 8);
FIELD(kvc_library, groups_count, 144, 8);
FIELD(kvc_library, groups, 152, 8);
FIELD(kvc_library, kernels_count, 160, 8);
FIELD(kvc_library, kernels, 168, 8);
FIELD(kvc_library, device_codes_count, 176, 8);
FIELD(kvc_library, device_codes, 184, 8);
static_assert(sizeof(kvc_library) == 192, "kvc_library: expected 192 bytes");
