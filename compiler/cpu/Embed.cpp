// kvc.embed: a task is a row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

// An entry is a lane of a panel.
void kvc::emitEmbed(KernelBuilder &b, Value ids, const Matrix &table,
                    Value output) {
  b.forEachRow(b.rowsOf(output), [&](Value n) {
    Value id =
        b.named("id", b.toIndex(memref::LoadOp::create(b, ids, n)));
    Value group = b.divFloor(id, kLanes), lane = b.rem(id, kLanes);
    b.forLoop("i", b.index(0), b.index(b.widthOf(output)), 1, [&](Value i) {
      Value number;
      if (table.storage->quants)
        number = vector::ExtractOp::create(b, table.lanes(b, group, i),
                                           OpFoldResult(lane));
      else
        number = b.loadScalar(table.view, {group, i, lane});
      b.storeScalar(number, output, {n, i});
    });
  });
}
