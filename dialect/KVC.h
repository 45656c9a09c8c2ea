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
class LayoutAttrInterface; // named by Group, defined below
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

// Numbers of a page that stand in one array, as kvc_section of
// runtime/include/kvc/abi.h: [rows, positions / lanes, pieces, lanes, bytes].
struct Section {
  int64_t offset, rows, pieces, lanes, bytes;
};

// The keys and values of some layers in a cache: what is stored of a position, and how.
struct Group {
  int64_t layers, kvHeads, capacity, keyWidth, valueWidth;
  mlir::Type elementType; // of the numbers
  mlir::Attribute layout;

  LayoutAttrInterface getLayout() const;
  int64_t getPositionsPerPage() const;
  int64_t getPagesPerSequence() const;
  // Whether positions are written over older ones before the capacity is reached.
  bool wraps() const { return getPositionsPerPage() * getPagesPerSequence() < capacity; }
  int64_t getElementBytes() const;
  // Bytes of the keys and values of one position in all layers: layers * kv_heads *
  // (key + value) * element, where the layout stores these.
  int64_t getBytesPerPosition() const;
  // Bytes of a page, and of these such as no position can stand in.
  int64_t getPageBytes() const;
  int64_t getPagePadding() const;
  // Whether a token finds every position that it sees with this window, if any.
  bool keeps(std::optional<int64_t> window) const;

  auto fields() const {
    return std::tuple(layers, kvHeads, capacity, keyWidth, valueWidth, elementType,
                      layout);
  }
  bool operator==(const Group &other) const { return fields() == other.fields(); }
  friend llvm::hash_code hash_value(const Group &group) {
    return llvm::hash_value(group.fields());
  }
};

// A position of a page, for one layer and KV head. All are of type index but the
// page, memref<bytes x i8>.
struct CacheCell {
  mlir::Value page;
  mlir::Value row;    // layer * kv_heads + head
  mlir::Value inPage; // from 0
};

// Numbers that are stored, emitted where they are asked for.
using NumbersOf =
    llvm::function_ref<mlir::Value(mlir::Value element, int64_t count)>;

// What a layout does that doesn't say otherwise: see LayoutAttrInterface.
llvm::SmallVector<Section> sectionsOf(const Group &group);
mlir::Value loadKeys(mlir::OpBuilder &b, mlir::Location loc, const Group &group,
                     const CacheCell &cell, mlir::Value element, int64_t count);
mlir::Value loadValue(mlir::OpBuilder &b, mlir::Location loc, const Group &group,
                      const CacheCell &cell, mlir::Value element, int64_t count);
void storeKey(mlir::OpBuilder &b, mlir::Location loc, const Group &group,
              const CacheCell &cell, NumbersOf numbers);
void storeValue(mlir::OpBuilder &b, mlir::Location loc, const Group &group,
                const CacheCell &cell, NumbersOf numbers, int64_t most);
void prefetch(mlir::OpBuilder &b, mlir::Location loc, const Group &group,
              const CacheCell &cell, bool keys, mlir::Value number, int64_t count);

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
