// Tiles of AMX: registers of 16 rows of 64 bytes.
//
// A product of tiles takes a row of the first by words of the second, whose rows are
// words (four bytes, or two bf16) that follow each other in the first's row.
#ifndef KVC_COMPILER_CPU_TILEOPS_H
#define KVC_COMPILER_CPU_TILEOPS_H

#include "compiler/cpu/KernelBuilder.h"
#include "mlir/Dialect/AMX/AMXDialect.h"

namespace kvc {

inline constexpr int64_t kTileRows = 16;

inline mlir::Value zeroTile(KernelBuilder &b, int64_t rows, mlir::Type element) {
  return mlir::amx::TileZeroOp::create(
      b, mlir::amx::TileType::get({rows, kLanes}, element));
}

// `rows` rows of `columns` elements, the first at `at`, each `stride` elements of the
// memref, whatever they are, behind the one before.
inline mlir::Value loadTile(KernelBuilder &b, int64_t rows, int64_t columns,
                            mlir::Type element, mlir::Value memref,
                            mlir::ValueRange at, int64_t stride) {
  return mlir::amx::TileLoadOp::create(
      b, mlir::amx::TileType::get({rows, columns}, element), memref, at,
      b.index(stride));
}

inline void storeTile(KernelBuilder &b, mlir::Value tile, mlir::Value memref,
                      mlir::ValueRange at, int64_t stride) {
  mlir::amx::TileStoreOp::create(b, memref, at, tile, b.index(stride));
}

} // namespace kvc

#endif // KVC_COMPILER_CPU_TILEOPS_H
