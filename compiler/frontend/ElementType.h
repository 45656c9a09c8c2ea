// The types of elements that the compiler reads or writes, in one table, and the
// reading of a file's elements as numbers.
#ifndef KVC_COMPILER_FRONTEND_ELEMENTTYPE_H
#define KVC_COMPILER_FRONTEND_ELEMENTTYPE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstdint>
#include <optional>

namespace kvc {

// The formats of blocks are of files only.
enum class ElementType { F64, F32, F16, BF16, Q8_0, Q4_0, Q4_1 };

struct ElementTypeInfo {
  // As safetensors and GGUF spell it; in small letters it is the name in the
  // IR and on the command line.
  llvm::StringLiteral name;
  // Elements stand in blocks of `elements`, each of `bytes`.
  int64_t elements, bytes;
};

constexpr ElementTypeInfo infoOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return {"F64", 1, 8};
  case ElementType::F32:
    return {"F32", 1, 4};
  case ElementType::F16:
    return {"F16", 1, 2};
  case ElementType::BF16:
    return {"BF16", 1, 2};
  case ElementType::Q8_0:
    return {"Q8_0", 32, 2 + 32};
  case ElementType::Q4_0:
    return {"Q4_0", 32, 2 + 16};
  case ElementType::Q4_1:
    return {"Q4_1", 32, 2 + 2 + 16};
  }
  llvm_unreachable("all types have been named");
}

// The type that a file calls `name`.
std::optional<ElementType> elementTypeNamed(llvm::StringRef name);

// Reads `count` elements (whole blocks) that start at `data`, which need not
// be aligned. Those of block formats are rounded to f32 as their format defines
// them. Of the types, float holds all but F64's numbers exactly.
template <typename Number>
void dequantize(ElementType type, const char *data, int64_t count, Number *out);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_ELEMENTTYPE_H
