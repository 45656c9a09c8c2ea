// A layout for tests of what such layouts may promise: one page of 16 positions,
// each written over the one 16 before it. A token is sure to find itself alone.
// Attention that sees more reads newer positions in the place of those forgotten.
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

  int64_t getPositionsPerPage(const Group &) const { return kLanes; }
  int64_t getPagesPerSequence(const Group &) const { return 1; }
  int64_t getWindow(const Group &) const { return 1; }
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
