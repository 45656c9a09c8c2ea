// kvc-plan-workspace: see Passes.td.
#include "compiler/ForwardSignature.h"
#include "compiler/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace kvc {
#define GEN_PASS_DEF_PLANWORKSPACE
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {
constexpr int64_t kAlignment = 64; // bytes: a cache line

// A buffer with its life, as a range of op numbers, and its offset.
struct Buffer {
  memref::AllocOp op;
  int64_t bytes;
  int64_t first, last;
  int64_t offset = 0;
  bool overlaps(const Buffer &other) const {
    return first <= other.last && other.first <= last;
  }
};

struct PlanWorkspace : kvc::impl::PlanWorkspaceBase<PlanWorkspace> {
  using PlanWorkspaceBase::PlanWorkspaceBase;
  void runOnOperation() override;

private:
  // Numbers every op in the order of the text; `last` covers nested ops.
  void number(func::FuncOp function);
  int64_t lastUse(Value buffer, Block *block);

  DenseMap<Operation *, std::pair<int64_t, int64_t>> numbers;
};

void PlanWorkspace::number(func::FuncOp function) {
  int64_t next = 0;
  function.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { numbers[op] = {next++, 0}; });
  function.walk<WalkOrder::PostOrder>([&](Operation *op) {
    int64_t last = numbers[op].first;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &nested : block)
          last = std::max(last, numbers[&nested].second);
    numbers[op].second = last;
  });
}

// The number of the last op in `block` (nested ones included) that uses the
// buffer or a view of it.
int64_t PlanWorkspace::lastUse(Value buffer, Block *block) {
  int64_t last = numbers[block->findAncestorOpInBlock(
                             *buffer.getDefiningOp())].second;
  for (Operation *user : buffer.getUsers()) {
    last = std::max(last, numbers[block->findAncestorOpInBlock(*user)].second);
    if (isa<ViewLikeOpInterface>(user))
      last = std::max(last, lastUse(user->getResult(0), block));
  }
  return last;
}

void PlanWorkspace::runOnOperation() {
  func::FuncOp function = lookupForward(getOperation());
  if (!function)
    return;
  if (failed(verifyAbiForward(function)))
    return signalPassFailure();
  number(function);

  SmallVector<Buffer> buffers;
  function.walk([&](memref::AllocOp op) {
    MemRefType type = op.getType();
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    for (int64_t size : type.getShape())
      bytes *= ShapedType::isDynamic(size) ? maxTokens : size;
    buffers.push_back({op, bytes, numbers[op].first,
                       lastUse(op.getMemref(), op->getBlock())});
  });
  // Large ones first, so that small ones leave no holes that these don't fit in.
  llvm::stable_sort(buffers, [](const Buffer &a, const Buffer &b) {
    return a.bytes > b.bytes;
  });
  SmallVector<Buffer> planned;
  int64_t total = 0;
  for (Buffer buffer : buffers) {
    // First fit: the lowest offset at which no living buffer stands.
    for (bool moved = true; moved;) {
      moved = false;
      for (const Buffer &other : planned)
        if (buffer.overlaps(other) &&
            buffer.offset < other.offset + other.bytes &&
            other.offset < buffer.offset + buffer.bytes) {
          buffer.offset =
              llvm::alignTo(other.offset + other.bytes, kAlignment);
          moved = true;
        }
    }
    total = std::max(total, buffer.offset + buffer.bytes);
    planned.push_back(buffer);
  }

  Value workspace = function.getArgument(AbiArgument::Workspace);
  for (Buffer &buffer : planned) {
    OpBuilder b(buffer.op);
    Value offset = arith::ConstantIndexOp::create(b, function.getLoc(),
                                                  buffer.offset);
    Value view = memref::ViewOp::create(b, buffer.op.getLoc(),
                                        buffer.op.getType(), workspace, offset,
                                        buffer.op.getDynamicSizes());
    buffer.op.replaceAllUsesWith(view);
    buffer.op.erase();
  }
  OpBuilder b(&getContext());
  function->setAttr(kWorkspaceBytesAttr,
                    b.getI64IntegerAttr(llvm::alignTo(total, kAlignment)));
}
} // namespace
