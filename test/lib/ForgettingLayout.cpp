// A layout for tests of what such layouts may promise. It stands in memory like
// #kvc.contiguous, and says that it isn't exact.
#include "test/lib/ForgettingLayout.h"
#include "dialect/KVC.h"
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

  int64_t getPositionsPerPage(CacheType cache) const {
    return memory().getPositionsPerPage(cache);
  }
  int64_t getPageBytes(CacheType cache) const {
    return memory().getPageBytes(cache);
  }
  int64_t getPagePadding(CacheType cache) const {
    return memory().getPagePadding(cache);
  }
  Value emitKeyIndex(OpBuilder &builder, Location loc, CacheType cache,
                     Value layer, Value head, Value place,
                     Value element) const {
    return memory().emitKeyIndex(builder, loc, cache, layer, head, place,
                                 element);
  }
  Value emitValueIndex(OpBuilder &builder, Location loc, CacheType cache,
                       Value layer, Value head, Value place,
                       Value element) const {
    return memory().emitValueIndex(builder, loc, cache, layer, head, place,
                                   element);
  }
  bool isExact() const { return false; }

private:
  LayoutAttrInterface memory() const {
    return ContiguousAttr::get(getContext());
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
