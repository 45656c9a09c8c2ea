// Passes for machines without AMX: the instructions on tiles by their definition.
#ifndef KVC_TEST_LIB_MODELTILES_H
#define KVC_TEST_LIB_MODELTILES_H

#include "mlir/Pass/Pass.h"

namespace kvc::test {

// Replaces tiles by memory and each op of the amx dialect by loops that compute what
// Intel's manual says of its instruction. Those for bf16 want an environment in which
// denormals are 0, that of the class tiles.
std::unique_ptr<mlir::Pass> createModelTiles();
void registerModelTiles();

} // namespace kvc::test

#endif // KVC_TEST_LIB_MODELTILES_H
