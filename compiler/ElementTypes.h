// The element types of the IR are some of those in the table of
// frontend/ElementType.h.
#ifndef KVC_COMPILER_ELEMENTTYPES_H
#define KVC_COMPILER_ELEMENTTYPES_H

#include "compiler/frontend/ElementType.h"
#include "mlir/IR/BuiltinTypes.h"

namespace kvc {

// Null for a format of blocks, which the IR doesn't have.
inline mlir::Type typeOf(mlir::MLIRContext *context, ElementType type) {
  switch (type) {
  case ElementType::F64:
    return mlir::Float64Type::get(context);
  case ElementType::F32:
    return mlir::Float32Type::get(context);
  case ElementType::F16:
    return mlir::Float16Type::get(context);
  case ElementType::BF16:
    return mlir::BFloat16Type::get(context);
  case ElementType::Q8_0:
  case ElementType::Q4_0:
  case ElementType::Q4_1:
    return {};
  }
  llvm_unreachable("all types have been named");
}

// `name` as the command line has it: "bf16". Null where no type is called so.
inline mlir::Type typeNamed(mlir::MLIRContext *context, llvm::StringRef name) {
  std::optional<ElementType> type = elementTypeNamed(name.upper());
  return type && name == name.lower() ? typeOf(context, *type) : mlir::Type();
}

// Of a weight, a cache or logits, whose types the dialect has verified.
inline ElementType elementTypeOf(mlir::Type type) {
  for (ElementType element : {ElementType::F64, ElementType::F32,
                              ElementType::F16, ElementType::BF16})
    if (typeOf(type.getContext(), element) == type)
      return element;
  llvm_unreachable("the dialect has four element types");
}

} // namespace kvc

#endif // KVC_COMPILER_ELEMENTTYPES_H
