// kvc-opt with what only tests use: a dialect whose layout forgets, a pass that
// makes the classic mistake, and flags that compile what kvc-opt refuses.
#include "test/lib/ForgettingLayout.h"
#include "test/lib/ModelTiles.h"
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

static cl::opt<bool>
    modelTiles("model-tiles", cl::cat(compilationOptions),
               cl::desc("levels with AVX-512 BF16 and AMX run on any machine with "
                        "x86-64-v3: their instructions by definition"));

static cl::opt<std::string>
    features("features", cl::cat(compilationOptions),
             cl::desc("what LLVM may use beyond a level's CPU, in place of what the "
                      "level has"));

// Code for tiles and pairs, by the features of x86-64-v3.
static llvm::Error modelLevels(kvc::CompileOptions &options) {
  auto lowest = kvc::parseCpuTargets("cpu:x86-64-v3");
  if (!lowest)
    return lowest.takeError();
  for (kvc::TargetDescription &target : options.targets.cpus)
    if (target.linear.hasPairDot) {
      kvc::TargetDescription model = lowest->front();
      model.level = target.level;
      model.linear.hasPairDot = true;
      model.linear.hasTiles = target.linear.hasTiles;
      if (target.linear.hasTiles)
        model.linear.integers.many = target.linear.integers.many;
      target = model;
    }
  options.afterKernels = [](mlir::OpPassManager &pm) {
    pm.addPass(kvc::test::createModelTiles());
  };
  return llvm::Error::success();
}

static llvm::Error adjust(kvc::CompileOptions &options) {
  options.skipCacheContract = skipCacheContract;
  options.skipForward = skipForward;
  options.numericsVersion = numericsVersion;
  if (modelTiles)
    if (llvm::Error error = modelLevels(options))
      return error;
  if (features.getNumOccurrences())
    for (kvc::TargetDescription &target : options.targets.cpus)
      target.llvmFeatures = features;
  if (tile.empty())
    return llvm::Error::success();
  kvc::TileShape shape;
  auto [rows, groups] = llvm::StringRef(tile).split('x');
  if (rows.getAsInteger(10, shape.rows) || shape.rows < 1 ||
      groups.getAsInteger(10, shape.groups) || shape.groups < 1)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "--tile: expected ROWSxGROUPS, but got " +
                                       tile);
  for (kvc::TargetDescription &target : options.targets.cpus) {
    target.linear.tile = shape;
    target.linear.floats = target.linear.integers = {shape, shape};
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  kvc::test::registerForgettingLayout(registry);
  kvc::test::registerModelTiles();
  kvc::test::registerRestartPositions();
  return kvc::runDriver(argc, argv, registry, adjust);
}
