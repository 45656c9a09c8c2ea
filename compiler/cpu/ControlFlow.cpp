// Loops and branches of @forward. Rows stay in buffers and a cache in its pages, so
// that loops and branches of the code hand on nothing.
#include "compiler/ModuleText.h"
#include "compiler/cpu/ForwardLowering.h"

using namespace mlir;
using namespace kvc;

void ForwardLowering::copyRows(KernelBuilder &b, Value from, Value to) {
  if (!target.isDevice()) {
    memref::CopyOp::create(b, from, to);
    return;
  }
  std::string name = std::exchange(b.kernel, "copy");
  emitElementwise(b, {from}, to, [](ValueRange x) { return x[0]; });
  b.kernel = name;
}

// What a loop carries stays in the buffer it came in.
LogicalResult ForwardLowering::lowerFor(KernelBuilder &b, scf::ForOp loop) {
  Location loc = b.getLoc();
  for (auto [initial, argument] :
       llvm::zip_equal(loop.getInits(), loop.getRegionIterArgs())) {
    if (!isa<RankedTensorType>(argument.getType()))
      continue;
    Value mine = buffer(initial);
    if (!diesAt(initial, loop)) {
      mine = allocate(b, argument, initial);
      copyRows(b, buffer(initial), mine);
    }
    buffers[argument] = mine;
    rowCounts[argument] = rowCounts.lookup(initial);
  }
  auto lowered =
      scf::ForOp::create(b, scalar(loop.getLowerBound()),
                         scalar(loop.getUpperBound()), scalar(loop.getStep()));
  scalars.map(loop.getInductionVar(),
              b.named(textName(loop.getInductionVar()),
                      lowered.getInductionVar()));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(lowered.getBody());
    if (failed(lowerBlock(b, *loop.getBody())))
      return failure();
    b.setLoc(loc);
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    SmallVector<std::pair<Value, Value>> copies; // from, to
    for (auto [yielded, argument] :
         llvm::zip_equal(yield.getResults(), loop.getRegionIterArgs()))
      if (isa<RankedTensorType>(argument.getType()) &&
          buffer(yielded) != buffer(argument))
        copies.push_back({buffer(yielded), buffer(argument)});
    // They happen at once: what another of them writes over is set aside first.
    for (auto &[from, to] : copies)
      if (llvm::is_contained(llvm::make_second_range(copies), from)) {
        Value rows = memref::DimOp::create(b, from, b.index(0));
        Value aside = memref::AllocOp::create(
            b, cast<MemRefType>(from.getType()), ValueRange{rows});
        copyRows(b, from, aside);
        from = aside;
      }
    for (auto [from, to] : copies)
      copyRows(b, from, to);
  }
  for (auto [argument, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults()))
    if (isa<RankedTensorType>(result.getType())) {
      buffers[result] = buffer(argument);
      rowCounts[result] = rowCounts.lookup(argument);
    }
  return success();
}

// The rows that a branch gives are copied into a buffer that both share.
LogicalResult ForwardLowering::lowerIf(KernelBuilder &b, scf::IfOp choice) {
  Location loc = b.getLoc();
  auto lowered = scf::IfOp::create(b, scalar(choice.getCondition()),
                                   /*withElseRegion=*/bool(choice.elseBlock()));
  OpBuilder::InsertionGuard guard(b);
  for (auto [region, loweredRegion] :
       llvm::zip_equal(choice->getRegions(), lowered->getRegions())) {
    if (region.empty())
      continue;
    b.setInsertionPointToStart(&loweredRegion.front());
    if (failed(lowerBlock(b, region.front())))
      return failure();
  }
  b.setLoc(loc);
  for (OpResult result : choice.getResults()) {
    if (!isa<RankedTensorType>(result.getType()))
      continue;
    for (auto [region, loweredRegion] :
         llvm::zip_equal(choice->getRegions(), lowered->getRegions())) {
      Value yielded = region.front().getTerminator()->getOperand(
          result.getResultNumber());
      if (!buffer(result)) {
        b.setInsertionPoint(lowered);
        allocate(b, result, yielded);
      }
      b.setInsertionPoint(loweredRegion.front().getTerminator());
      copyRows(b, buffer(yielded), buffer(result));
    }
  }
  return success();
}
