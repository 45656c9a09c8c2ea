// A layout for tests of what such layouts may promise: a ring. Of the memory of
// #kvc.contiguous it uses the first 16 positions, and each position is written
// over the one 16 before it. Attention still reads all positions up to a token's
// own; for those that are forgotten it finds newer ones.
#include "test/lib/ForgettingLayout.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace kvc;

namespace {

class ForgettingAttr
    : public Attribute::AttrBase<ForgettingAttr, Attribute, AttributeStorage,
                                 LayoutAttrInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ForgettingAttr)
  using Base::Base;
  static constexpr StringLiteral name = "kvc_test.forgetting";

  int64_t getPositionsPerPage(int64_t capacity) const {
    return layout().getPositionsPerPage(capacity);
  }
  int64_t getPageBytes(CacheType cache) const {
    return layout().getPageBytes(cache);
  }
  int64_t getPagePadding(CacheType cache) const {
    return layout().getPagePadding(cache);
  }
  Value emitKeyIndex(OpBuilder &builder, Location loc, CacheType cache,
                     Value layer, Value head, Value inPage,
                     Value element) const {
    return layout().emitKeyIndex(builder, loc, cache, layer, head,
                                 keptIn(builder, loc, inPage), element);
  }
  Value emitValueIndex(OpBuilder &builder, Location loc, CacheType cache,
                       Value layer, Value head, Value inPage,
                       Value element) const {
    return layout().emitValueIndex(builder, loc, cache, layer, head,
                                   keptIn(builder, loc, inPage), element);
  }
  bool isExact() const { return false; }

private:
  // One group of lanes, so that what the interface promises of groups holds.
  static constexpr int64_t kKept = kLanes;

  LayoutAttrInterface layout() const {
    return ContiguousAttr::get(getContext());
  }
  static Value keptIn(OpBuilder &builder, Location loc, Value inPage) {
    Value kept = arith::ConstantIndexOp::create(builder, loc, kKept);
    return arith::RemUIOp::create(builder, loc, inPage, kept);
  }
};

class TestDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestDialect)
  explicit TestDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<TestDialect>()) {
    addAttributes<ForgettingAttr>();
  }
  static constexpr StringLiteral getDialectNamespace() {
    return StringLiteral("kvc_test");
  }
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    if (parser.parseKeyword("forgetting"))
      return {};
    return ForgettingAttr::get(getContext());
  }
  void printAttribute(Attribute, DialectAsmPrinter &printer) const override {
    printer << "forgetting";
  }
};
} // namespace

void kvc::test::registerForgettingLayout(DialectRegistry &registry) {
  registry.insert<TestDialect>();
}
