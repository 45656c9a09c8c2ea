// Declarations of the passes of Passes.td.
#ifndef KVC_COMPILER_PASSES_H
#define KVC_COMPILER_PASSES_H

#include "mlir/Pass/Pass.h"

namespace kvc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Passes.h.inc"
} // namespace kvc

#endif // KVC_COMPILER_PASSES_H
