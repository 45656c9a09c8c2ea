// kvc-verify-cache-contract: see Passes.td and docs/cache-contract.md.
#include "compiler/Passes.h"
#include "compiler/verify/Contract.h"

namespace kvc {
#define GEN_PASS_DEF_VERIFYCACHECONTRACT
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

namespace {
struct VerifyCacheContract
    : kvc::impl::VerifyCacheContractBase<VerifyCacheContract> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Calls calls(module);
    bool isNewest = succeeded(checkCacheVersions(module, calls));
    bool isPositioned = succeeded(checkPositionOrigin(module, calls));
    bool isExact = succeeded(checkExactness(module));
    // Steps are told by the newest values and by positions.
    if (!isNewest || !isPositioned || !isExact ||
        failed(checkSteps(module, calls)))
      signalPassFailure();
  }
};
} // namespace
