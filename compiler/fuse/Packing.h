// The shape of a weight in the packed file, for those who write it and those
// who read it.
#ifndef KVC_COMPILER_FUSE_PACKING_H
#define KVC_COMPILER_FUSE_PACKING_H

#include "dialect/KVC.h"

namespace kvc {

// Each weight starts at a multiple of this many bytes: a cache line.
inline constexpr int64_t kPackedAlignment = 64;

// The shape in the packed file, layers first: [rows/P, columns, P] for a matrix
// of floats in panels of P, [n rounded up to P] for a vector, the weight's own
// shape without panels; bytes for blocks, [rows/P, bytes of a panel] and [rows,
// bytes of a row]. The weight has been packed.
llvm::SmallVector<int64_t> packedShape(WeightOp weight);

// Bytes of the whole weight in the packed file.
int64_t packedBytes(WeightOp weight);

} // namespace kvc

#endif // KVC_COMPILER_FUSE_PACKING_H
