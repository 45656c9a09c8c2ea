// kvc-assign-packing: see Passes.td.
#include "compiler/Passes.h"
#include "compiler/fuse/Packing.h"
#include "dialect/KVC.h"
#include "mlir/IR/BuiltinOps.h"

namespace kvc {
#define GEN_PASS_DEF_ASSIGNPACKING
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

SmallVector<int64_t> kvc::packedShape(WeightOp weight) {
  SmallVector<int64_t> shape;
  if (weight.isStacked())
    shape.push_back(weight.getLayers());
  ArrayRef<int64_t> one = weight.getLayerShape();
  const Storage &storage = weight.getStorage();
  int64_t panel = weight.getPacking()->getPanel();
  if (storage.quants)
    shape.append({llvm::divideCeilSigned(one[0], std::max<int64_t>(panel, 1)),
                  std::max<int64_t>(panel, 1) * storage.packedRowBytes(one[1])});
  else if (panel == 0)
    llvm::append_range(shape, one);
  else if (one.size() == 2)
    shape.append({llvm::divideCeilSigned(one[0], panel), one[1], panel});
  else
    shape.push_back(llvm::alignTo(one[0], panel));
  return shape;
}

int64_t kvc::packedBytes(WeightOp weight) {
  const Storage &storage = weight.getStorage();
  int64_t bytes = storage.quants ? 1 : storage.bytes;
  for (int64_t size : packedShape(weight))
    bytes *= size;
  return bytes;
}

namespace {
struct AssignPacking : kvc::impl::AssignPackingBase<AssignPacking> {
  using AssignPackingBase::AssignPackingBase;
  void runOnOperation() override {
    int64_t offset = 0;
    for (auto weight : getOperation().getOps<WeightOp>()) {
      offset = llvm::alignTo(offset, kPackedAlignment);
      weight.setPackingAttr(PackingAttr::get(
          &getContext(), offset, panels ? weight.getStorage().panel : 0));
      offset += packedBytes(weight);
      if (offset > kMaxBytes) {
        weight.emitError() << "expected weights of at most 2^56 bytes in all, but "
                              "got more with this one";
        return signalPassFailure();
      }
    }
  }
};
} // namespace
