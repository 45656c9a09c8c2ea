// The kvc dialect: types, attributes, operations.
#ifndef KVC_DIALECT_KVC_H
#define KVC_DIALECT_KVC_H

#include "dialect/storage/Storage.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>

namespace kvc {
class LayoutAttrInterface; // named by CacheType, defined below
class WeightOp;            // named by NamedWeight

// Virtual lanes of every reduction and the width of a weight panel: part of the
// order in which numbers are added, so a constant of the program and never of
// the machine.
inline constexpr int64_t kLanes = 16;

// Elements of a row whose products are summed apart and then added as one: the
// same for every machine, as docs/pipeline.md says why.
inline constexpr int64_t kProductBlock = 256;

// The largest memory that a type may ask for, with room for rounding up in 64 bits.
inline constexpr int64_t kMaxBytes = int64_t(1) << 56;

// The module attribute that says where weights come from: a path, or
// "random:<seed>".
inline constexpr llvm::StringLiteral kWeightsAttr = "kvc.weights";

// The module attribute that says in which class of numerics it computes, "fma" or
// "tiles": see docs/pipeline.md. Without one, in the first.
inline constexpr llvm::StringLiteral kNumericsAttr = "kvc.numerics";

// A weight that an op reads: what it is to the op ("gate bias"), its symbol, and
// the shape that one layer of it has to have.
struct WeightUse {
  llvm::StringRef role;
  mlir::FlatSymbolRefAttr symbol;
  llvm::SmallVector<int64_t, 2> shape;
};

// Whether the module of `op`, or `op` itself, computes in the class "tiles".
bool isTiles(mlir::Operation *op);

// The element type of weights in `storage`.
mlir::Type typeOf(mlir::MLIRContext *context, const Storage &storage);
// The storage of an element type of weights, caches or activations; null for
// other types.
const Storage *storageOf(mlir::Type type);

// Whether a number is above 0 and finite, also when it is rounded to f32.
inline bool isPositive(double number) {
  return float(number) > 0 && std::isfinite(float(number));
}
} // namespace kvc

#include "dialect/KVCDialect.h.inc"
#include "dialect/KVCEnums.h.inc"
#include "dialect/KVCTypeInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/KVCTypes.h.inc"
#include "dialect/KVCInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/KVCAttributes.h.inc"
#include "dialect/KVCOpInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialect/KVCOps.h.inc"

#endif // KVC_DIALECT_KVC_H
