// kvc-inline: see Passes.td.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace kvc {
#define GEN_PASS_DEF_INLINE
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {

// Ops that take the place of a function's calls at most, calls inside of calls, and
// ops around a call: what doubles is an error and not a wait, and what nests too
// deep for who recurses is one, too.
constexpr int64_t kMaxOps = 1 << 16;
constexpr int kMaxDepth = 64, kMaxNesting = 256;

class Inliner {
public:
  Inliner(func::FuncOp entry, SymbolTableCollection &symbols)
      : entry(entry), symbols(symbols) {}
  LogicalResult run();

private:
  // A call, and the one whose place the function around it took, if any.
  struct Site {
    func::CallOp call;
    func::FuncOp callee;
    int parent = -1, depth = 0;
  };
  void findCalls(Operation *op, int parent, int depth);
  LogicalResult checkEnds(Site site);
  LogicalResult inlineCall(int number);

  func::FuncOp entry;
  SymbolTableCollection &symbols;
  std::vector<Site> sites;
  int64_t ops = 0;
};

// A function whose blocks branch can't take the place of a call; the verifiers
// say where they need that.
void Inliner::findCalls(Operation *op, int parent, int depth) {
  op->walk([&](func::CallOp call) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (callee && callee.getBody().hasOneBlock() &&
        isa<func::ReturnOp>(callee.getBody().front().getTerminator()))
      sites.push_back({call, callee, parent, depth});
  });
}

LogicalResult Inliner::checkEnds(Site site) {
  bool isRecursive = site.callee == entry;
  for (int i = site.parent; i >= 0; i = sites[i].parent)
    isRecursive |= sites[i].callee == site.callee;
  if (isRecursive)
    return site.call->emitOpError() << "expected a call that can be inlined, but @"
                                    << site.callee.getName() << " calls itself";
  if (site.depth == kMaxDepth)
    return site.call->emitOpError()
           << "expected calls of " << kMaxDepth
           << " functions inside of each other at most, but got more";
  int nesting = 0;
  for (Operation *op = site.call; op != entry; op = op->getParentOp())
    ++nesting;
  if (nesting > kMaxNesting)
    return site.call->emitOpError()
           << "expected a call under " << kMaxNesting
           << " ops at most when those around it are inlined, but got more";
  return success();
}

// The callee's ops take the place of the call; each remembers both places.
LogicalResult Inliner::inlineCall(int number) {
  Site site = sites[number];
  if (failed(checkEnds(site)))
    return failure();
  OpBuilder b(site.call);
  Location place = site.call.getLoc();
  Block &body = site.callee.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), site.call.getOperands());
  for (Operation &op : body.without_terminator()) {
    Operation *copy = b.clone(op, mapping);
    copy->walk([&](Operation *inner) {
      ++ops;
      inner->setLoc(CallSiteLoc::get(inner->getLoc(), place));
      for (Region &region : inner->getRegions())
        for (BlockArgument argument : region.getArguments())
          argument.setLoc(CallSiteLoc::get(argument.getLoc(), place));
    });
    findCalls(copy, number, site.depth + 1);
    if (ops > kMaxOps)
      return site.call.emitOpError()
             << "expected " << kMaxOps << " ops at most in the place of the calls of @"
             << entry.getName() << ", but got more";
  }
  for (auto [result, returned] : llvm::zip_equal(
           site.call.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(returned));
  site.call.erase();
  return success();
}

LogicalResult Inliner::run() {
  findCalls(entry, -1, 0);
  for (size_t i = 0; i != sites.size(); ++i)
    if (failed(inlineCall(i)))
      return failure();
  return success();
}

struct Inline : kvc::impl::InlineBase<Inline> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>(kForward);
    SymbolTableCollection symbols;
    for (auto function : module.getOps<func::FuncOp>()) {
      // @forward is the entry; the other functions are its parts.
      if (forward)
        function.setVisibility(function == forward
                                   ? SymbolTable::Visibility::Public
                                   : SymbolTable::Visibility::Private);
      if (!function.isPrivate() && failed(Inliner(function, symbols).run()))
        return signalPassFailure();
      // What is dispatched together is the fused stage's.
      function.walk([](TogetherOp op) { op.dissolve(); });
    }
  }
};
} // namespace
