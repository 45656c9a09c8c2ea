// Layouts of a cache in memory: see LayoutAttrInterface.
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace kvc;

#include "dialect/KVCInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// A group of layers
//===----------------------------------------------------------------------===//

LayoutAttrInterface Group::getLayout() const {
  return cast<LayoutAttrInterface>(layout);
}

int64_t Group::getPositionsPerPage() const {
  return getLayout().getPositionsPerPage(*this);
}

int64_t Group::getPagesPerSequence() const {
  return getLayout().getPagesPerSequence(*this);
}

int64_t Group::getElementBytes() const {
  return elementType.getIntOrFloatBitWidth() / 8;
}

int64_t Group::getBytesPerPosition() const {
  int64_t bytes = 0;
  for (const Section &section : getLayout().getSections(*this))
    bytes += section.rows * section.pieces * section.bytes;
  return bytes;
}

int64_t Group::getPageBytes() const {
  Section last = getLayout().getSections(*this).back();
  return last.offset +
         last.rows * getPositionsPerPage() * last.pieces * last.bytes;
}

int64_t Group::getPagePadding() const {
  int64_t positions = std::min(getPositionsPerPage(), capacity);
  return getPageBytes() - positions * getBytesPerPosition();
}

bool Group::keeps(std::optional<int64_t> window) const {
  int64_t kept = getLayout().getWindow(*this);
  return kept == 0 || (window && *window <= kept);
}

//===----------------------------------------------------------------------===//
// Numbers of the element type: keys interleaved, and values behind them
//===----------------------------------------------------------------------===//

namespace {
// The two arrays of a page.
struct Arrays {
  ImplicitLocOpBuilder b;
  const Group &group;
  const CacheCell &cell;
  int64_t positions = group.getPositionsPerPage();
  int64_t rows = group.layers * group.kvHeads;

  Arrays(OpBuilder &builder, Location loc, const Group &group, const CacheCell &cell)
      : b(loc, builder), group(group), cell(cell) {}

  int64_t keyBytes() const {
    return rows * positions * group.keyWidth * group.getElementBytes();
  }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value view(StringRef name, int64_t offset, ArrayRef<int64_t> shape) {
    auto type = MemRefType::get(shape, group.elementType);
    Value array = memref::ViewOp::create(b, type, cell.page, index(offset), ValueRange());
    array.setLoc(NameLoc::get(b.getStringAttr(name), b.getLoc()));
    return array;
  }
  // [rows, positions / 16, key, 16]
  Value keys() {
    return view("keys", 0, {rows, positions / kLanes, group.keyWidth, kLanes});
  }
  // [rows, positions, value]
  Value values() { return view("values", keyBytes(), {rows, positions, group.valueWidth}); }
  // Which 16 keys are the cell's.
  Value keyGroup() {
    return arith::DivUIOp::create(b, cell.inPage, index(kLanes));
  }
  Value lane() { return arith::RemUIOp::create(b, cell.inPage, index(kLanes)); }

  Value load(Value array, ValueRange at, int64_t count) {
    if (count == 1)
      return memref::LoadOp::create(b, array, at);
    return vector::LoadOp::create(b, VectorType::get({count}, group.elementType),
                                  array, at);
  }
  void store(Value number, Value array, ValueRange at) {
    if (isa<VectorType>(number.getType()))
      vector::StoreOp::create(b, number, array, at);
    else
      memref::StoreOp::create(b, number, array, at);
  }
};

// Calls body(element) for element 0, step, ... below `end`, in a loop.
void forEachElement(OpBuilder &b, Location loc, int64_t end, int64_t step,
                    function_ref<void(Value)> body) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop =
      scf::ForOp::create(b, loc, constant(0), constant(end), constant(step));
  loop.getInductionVar().setLoc(NameLoc::get(b.getStringAttr("e"), loc));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}
} // namespace

// A key's elements stand apart, those of 16 keys together.
SmallVector<Section> kvc::sectionsOf(const Group &group) {
  int64_t rows = group.layers * group.kvHeads, bytes = group.getElementBytes();
  Section keys{0, rows, group.keyWidth, kLanes, bytes};
  int64_t behind = rows * group.getPositionsPerPage() * group.keyWidth * bytes;
  return {keys, {behind, rows, 1, 1, group.valueWidth * bytes}};
}

Value kvc::loadKeys(OpBuilder &b, Location loc, const Group &group,
                    const CacheCell &cell, Value element, int64_t count) {
  Arrays page(b, loc, group, cell);
  Value lane = count == 1 ? page.lane() : page.index(0);
  return page.load(page.keys(), {cell.row, page.keyGroup(), element, lane}, count);
}

Value kvc::loadValue(OpBuilder &b, Location loc, const Group &group,
                     const CacheCell &cell, Value element, int64_t count) {
  Arrays page(b, loc, group, cell);
  return page.load(page.values(), {cell.row, cell.inPage, element}, count);
}

void kvc::storeKey(OpBuilder &b, Location loc, const Group &group,
                   const CacheCell &cell, NumbersOf numbers) {
  forEachElement(b, loc, group.keyWidth, 1, [&](Value e) {
    Value number = numbers(e, 1);
    Arrays page(b, loc, group, cell);
    page.store(number, page.keys(), {cell.row, page.keyGroup(), e, page.lane()});
  });
}

void kvc::storeValue(OpBuilder &b, Location loc, const Group &group,
                     const CacheCell &cell, NumbersOf numbers, int64_t most) {
  auto store = [&](Value e, int64_t count) {
    Value number = numbers(e, count);
    Arrays page(b, loc, group, cell);
    page.store(number, page.values(), {cell.row, cell.inPage, e});
  };
  int64_t whole = group.valueWidth / most * most;
  if (whole)
    forEachElement(b, loc, whole, most, [&](Value e) { store(e, most); });
  // The rest in powers of two.
  for (int64_t at = whole, count = most / 2; at != group.valueWidth; count /= 2)
    if (at + count <= group.valueWidth) {
      store(arith::ConstantIndexOp::create(b, loc, at), count);
      at += count;
    }
}

void kvc::prefetch(OpBuilder &b, Location loc, const Group &group,
                   const CacheCell &cell, bool keys, Value number, int64_t count) {
  constexpr int64_t kLine = 64; // bytes
  Arrays page(b, loc, group, cell);
  int64_t width = keys ? group.keyWidth : group.valueWidth;
  int64_t numbers = group.getPageBytes() / group.getElementBytes();
  Value all = page.view("numbers", 0, numbers);
  // Keys of whole 16 positions take as many numbers as so many values.
  auto times = [&](Value x, int64_t y) -> Value {
    return arith::MulIOp::create(page.b, x, page.index(y));
  };
  auto plus = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(page.b, x, y);
  };
  Value at = plus(times(cell.row, page.positions * width),
                  times(cell.inPage, width));
  at = plus(plus(at, number),
            page.index(keys ? 0 : page.keyBytes() / group.getElementBytes()));
  for (int64_t e = 0; e < count; e += kLine / group.getElementBytes())
    memref::PrefetchOp::create(page.b, all, plus(at, page.index(e)),
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
}

//===----------------------------------------------------------------------===//
// contiguous: one page, of the capacity rounded up to whole groups of lanes
//===----------------------------------------------------------------------===//

int64_t ContiguousAttr::getPositionsPerPage(const Group &group) const {
  return llvm::alignTo(group.capacity, kLanes);
}

//===----------------------------------------------------------------------===//
// paged
//===----------------------------------------------------------------------===//

LogicalResult PagedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t positions) {
  // C1: whole groups of lanes.
  if (positions <= 0 || positions % kLanes != 0)
    return emitError() << "expected a page to have a positive multiple of "
                       << kLanes << " positions, but got " << positions;
  return success();
}

int64_t PagedAttr::getPositionsPerPage(const Group &) const {
  return getPositions();
}

//===----------------------------------------------------------------------===//
// ring: pages that are written round and round
//===----------------------------------------------------------------------===//

LogicalResult RingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t window, int64_t slice) {
  // C1: positive.
  if (window <= 0 || slice <= 0 || window > kMaxBytes - slice)
    return emitError() << "expected the window and the slice of a ring to be above 0 "
                          "and their sum at most 2^56, but got "
                       << window << " and " << slice;
  return success();
}

int64_t RingAttr::getPositionsPerPage(const Group &) const { return kLanes; }

int64_t RingAttr::getPagesPerSequence(const Group &group) const {
  return llvm::divideCeil(std::min(getWindow() + getSlice() - 1, group.capacity),
                          kLanes);
}

// What holds the capacity is never written over.
int64_t RingAttr::getWindow(const Group &group) const {
  return group.wraps() ? getWindow() : 0;
}
