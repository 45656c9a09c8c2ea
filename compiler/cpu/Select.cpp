// kvc.select: a task is a row.
#include "compiler/cpu/Kernels.h"

using namespace mlir;
using namespace kvc;

void kvc::emitSelect(KernelBuilder &b, Value input, Value rows, Value output) {
  b.parallel("m", b.rowsOf(output), [&](Value m) {
    Value row =
        b.named("row", b.toIndex(memref::LoadOp::create(b, rows, m)));
    b.forEachRun(b.widthOf(output), [&](Value i, int64_t count) {
      b.storeLanes(b.loadLanes(input, {row, i}, count), output, {m, i}, count);
    });
  });
}
