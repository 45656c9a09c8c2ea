// kvc-opt with what only tests use: a dialect whose layout forgets, a pass that
// makes the classic mistake, and flags that compile what kvc-opt refuses.
#include "test/lib/ForgettingLayout.h"
#include "test/lib/RestartPositions.h"
#include "tools/kvc-opt/Driver.h"

namespace cl = llvm::cl;
using kvc::compilationOptions;

static cl::opt<bool> skipCacheContract(
    "skip-cache-contract", cl::cat(compilationOptions),
    cl::desc("compile what kvc-verify-cache-contract rejects"));
static cl::opt<bool>
    skipForward("skip-forward", cl::cat(compilationOptions),
                cl::desc("compile what kvc-verify-forward rejects"));
static cl::opt<int>
    numericsVersion("numerics-version", cl::cat(compilationOptions),
                    cl::init(kvc::kNumericsVersion),
                    cl::desc("another version in the model's identity"));
static cl::opt<std::string> tile(
    "tile", cl::cat(compilationOptions),
    cl::desc("ROWSxGROUPS: register tile of matrix products, for all targets"));

static llvm::Error adjust(kvc::CompileOptions &options) {
  options.skipCacheContract = skipCacheContract;
  options.skipForward = skipForward;
  options.numericsVersion = numericsVersion;
  if (tile.empty())
    return llvm::Error::success();
  kvc::TileShape shape;
  auto [rows, groups] = llvm::StringRef(tile).split('x');
  if (rows.getAsInteger(10, shape.rows) || shape.rows < 1 ||
      groups.getAsInteger(10, shape.groups) || shape.groups < 1)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "--tile: expected ROWSxGROUPS, but got " +
                                       tile);
  for (kvc::TargetDescription &target : options.targets) {
    target.linear.tile = shape;
    target.linear.floats = target.linear.integers = {shape, shape};
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  kvc::test::registerForgettingLayout(registry);
  kvc::test::registerRestartPositions();
  return kvc::runDriver(argc, argv, registry, adjust);
}
