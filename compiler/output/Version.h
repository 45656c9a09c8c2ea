// Versions that a library carries and its identity covers.
#ifndef KVC_COMPILER_OUTPUT_VERSION_H
#define KVC_COMPILER_OUTPUT_VERSION_H

#include "llvm/ADT/StringRef.h"

namespace kvc {

inline constexpr llvm::StringLiteral kCompilerVersion =
    "kvc " KVC_VERSION; // the project's

// Changes whenever the bits of a result may: the order of a reduction, a
// polynomial, the tile of attention. test/end-to-end/golden.txt has digests of them.
inline constexpr int kNumericsVersion = 2;

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_VERSION_H
