// kvc.embed: a task is a row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

// table: [entries/16, width, 16], so an entry is a lane of a panel.
void kvc::emitEmbed(KernelBuilder &b, Value ids, Value table, Value output) {
  b.parallel("n", b.rowsOf(output), [&](Value n) {
    Value id =
        b.named("id", b.toIndex(memref::LoadOp::create(b, ids, n)));
    Value panel = b.divFloor(id, kLanes), lane = b.rem(id, kLanes);
    b.forLoop("i", b.index(0), b.index(b.widthOf(output)), 1, [&](Value i) {
      b.storeScalar(b.loadScalar(table, {panel, i, lane}), output, {n, i});
    });
  });
}
