// kvc-expand-math: see Passes.td.
//
// Every function is a reduction of the argument, one polynomial, and a scaling,
// in a fixed order of operations that round the same everywhere. The
// coefficients of exp, sin and cos are those of their Taylor series, which on
// the reduced interval end below the last digit.
#include "compiler/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace kvc {
#define GEN_PASS_DEF_EXPANDMATH
#include "compiler/Passes.h.inc"
} // namespace kvc

using namespace mlir;
using namespace kvc;

namespace {
#include "compiler/cpu/ExpandErfc.inc"

// Arithmetic on scalars or vectors like `example`, of f32 or f64.
struct FloatBuilder : ImplicitLocOpBuilder {
  FloatBuilder(Location loc, OpBuilder &builder, Type type)
      : ImplicitLocOpBuilder(loc, builder), type(type),
        wide(getElementTypeOrSelf(type).isF64()) {}

  const Type type;
  const bool wide; // f64

  Type integerType() {
    Type element = wide ? getI64Type() : getI32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      return VectorType::get(vector.getShape(), element);
    return element;
  }
  Value splat(Type like, TypedAttr element) {
    if (auto vector = dyn_cast<VectorType>(like))
      return arith::ConstantOp::create(*this,
                                       DenseElementsAttr::get(vector, element));
    return arith::ConstantOp::create(*this, element);
  }
  Value number(double value) {
    return splat(type, getFloatAttr(getElementTypeOrSelf(type), value));
  }
  Value integer(int64_t value) {
    Type like = integerType();
    return splat(like, getIntegerAttr(getElementTypeOrSelf(like), value));
  }
  Value add(Value a, Value b) { return arith::AddFOp::create(*this, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(*this, a, b); }
  // a * b + c
  Value fma(Value a, Value b, Value c) {
    return math::FmaOp::create(*this, a, b, c);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(*this, condition, a, b);
  }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(*this, predicate, a, b);
  }
  Value bits(Value x) {
    return arith::BitcastOp::create(*this, integerType(), x);
  }
  Value fromBits(Value x) { return arith::BitcastOp::create(*this, type, x); }

  // Horner's rule; coefficients from the constant up.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = number(coefficients.back());
    for (double c : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, number(c));
    return sum;
  }

  // The nearest integer to x as a float and as an integer, for |x| < 2^22 or
  // 2^51: adding 1.5 * 2^(bits of the mantissa) leaves it in the last bits.
  std::pair<Value, Value> nearest(Value x) {
    double magic = wide ? 0x1.8p52 : 0x1.8p23;
    Value shifted = add(x, number(magic));
    Value rounded = sub(shifted, number(magic));
    Value asInteger =
        arith::SubIOp::create(*this, bits(shifted), bits(number(magic)));
    return {rounded, asInteger};
  }

  // 2^n for integers n of normal results.
  Value powerOfTwo(Value n) {
    Value biased =
        arith::AddIOp::create(*this, n, integer(wide ? 1023 : 127));
    return fromBits(
        arith::ShLIOp::create(*this, biased, integer(wide ? 52 : 23)));
  }
};

// Taylor coefficients of exp: 1/0!, 1/1!, ..., 1/degree!.
SmallVector<double> inverseFactorials(int degree) {
  SmallVector<double> result{1.0};
  for (int i = 1; i <= degree; ++i)
    result.push_back(result.back() / i);
  return result;
}

// exp(x) = 2^n exp(r) with n the nearest integer to x / ln 2 and
// |r| <= (ln 2) / 2, where the series ends after r^7 (f32) or r^13 (f64). The
// power is applied in two halves, so that results are right down to the
// denormals and up to infinity.
Value expandExp(FloatBuilder &b, Value x) {
  // Beyond these the result is 0 or infinity all the same.
  Value low = b.number(b.wide ? -746.0 : -104.0);
  Value high = b.number(b.wide ? 710.0 : 89.0);
  Value in = b.select(b.compare(arith::CmpFPredicate::OGT, x, low), x, low);
  in = b.select(b.compare(arith::CmpFPredicate::OLT, in, high), in, high);

  auto [n, integer] = b.nearest(b.mul(in, b.number(1.4426950408889634074)));
  // ln 2 in two parts, the first with few enough digits that n times it is
  // exact.
  double ln2High = b.wide ? 0x1.62e42fefa38p-1 : 0x1.62e4p-1;
  double ln2Low = b.wide ? 0x1.ef35793c7673p-45 : 0x1.7f7d1cf79abcap-20;
  Value minusN = arith::NegFOp::create(b, n);
  Value r = b.fma(minusN, b.number(ln2High), in);
  r = b.fma(minusN, b.number(ln2Low), r);
  Value p = b.polynomial(r, inverseFactorials(b.wide ? 13 : 7));

  Value half = arith::ShRSIOp::create(b, integer, b.integer(1));
  Value rest = arith::SubIOp::create(b, integer, half);
  Value result = b.mul(b.mul(p, b.powerOfTwo(half)), b.powerOfTwo(rest));
  return b.select(b.compare(arith::CmpFPredicate::UNO, x, x), x, result);
}

// erfc(z) = exp(-z^2) t Q(2t - 1) with t = 2 / (2 + z) for z >= 0, and
// erfc(-z) = 2 - erfc(z).
Value expandErfc(FloatBuilder &b, Value x) {
  Value z = math::AbsFOp::create(b, x);
  Value two = b.number(2.0);
  Value t = arith::DivFOp::create(b, two, b.add(two, z));
  Value u = b.fma(t, two, b.number(-1.0));
  Value q = b.polynomial(u, b.wide ? ArrayRef(kErfcF64) : ArrayRef(kErfcF32));
  Value e = expandExp(b, arith::NegFOp::create(b, b.mul(z, z)));
  Value positive = b.mul(e, b.mul(t, q));
  Value negative =
      b.compare(arith::CmpFPredicate::OLT, x, b.number(0.0));
  return b.select(negative, b.sub(two, positive), positive);
}

// sin and cos of f64: x = q pi/2 + r, |r| <= pi/4, with pi/2 in three parts;
// good to the last digits for |x| < 2^30. The quadrant q mod 4 chooses series
// and sign; cos(x) = sin(x + pi/2).
Value expandSine(FloatBuilder &b, Value x, bool cosine) {
  auto [q, quadrant] = b.nearest(b.mul(x, b.number(0.63661977236758134308)));
  Value minusQ = arith::NegFOp::create(b, q);
  Value r = b.fma(minusQ, b.number(0x1.921fb54442d18p+0), x);
  r = b.fma(minusQ, b.number(0x1.1a62633145c07p-54), r);
  r = b.fma(minusQ, b.number(-0x1.f1976b7ed8fbcp-110), r);
  Value square = b.mul(r, r);

  // sin r = r + r^3 (-1/3! + r^2/5! - ...), cos r = 1 - r^2/2! + ...
  SmallVector<double> sineTerms, cosineTerms;
  double factorial = 1.0;
  for (int i = 0; i <= 17; ++i) {
    factorial *= i ? i : 1;
    double term = (i / 2 % 2 ? -1.0 : 1.0) / factorial;
    (i % 2 ? sineTerms : cosineTerms).push_back(term);
  }
  Value tail = b.polynomial(square, ArrayRef(sineTerms).drop_front());
  Value sine = b.fma(b.mul(r, square), tail, r);
  Value cos = b.polynomial(square, cosineTerms);

  if (cosine)
    quadrant = arith::AddIOp::create(b, quadrant, b.integer(1));
  Value odd = arith::CmpIOp::create(
      b, arith::CmpIPredicate::ne,
      arith::AndIOp::create(b, quadrant, b.integer(1)), b.integer(0));
  Value chosen = b.select(odd, cos, sine);
  Value sign = arith::ShLIOp::create(
      b, arith::AndIOp::create(b, quadrant, b.integer(2)), b.integer(62));
  return b.fromBits(arith::XOrIOp::create(b, b.bits(chosen), sign));
}

// Replaces one math op by what `expand` writes.
template <typename Op>
struct Expand : OpRewritePattern<Op> {
  using Function = Value (*)(FloatBuilder &, Value);
  Expand(MLIRContext *context, Function expand)
      : OpRewritePattern<Op>(context), expand(expand) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    bool sine = std::is_same_v<Op, math::SinOp> || std::is_same_v<Op, math::CosOp>;
    if (!element.isF64() && (sine || !element.isF32()))
      return rewriter.notifyMatchFailure(op, "no expansion for this type");
    FloatBuilder b(op.getLoc(), rewriter, op.getType());
    rewriter.replaceOp(op, expand(b, op.getOperand()));
    return success();
  }
  Function expand;
};

struct ExpandMath : kvc::impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Expand<math::ExpOp>>(&getContext(), expandExp);
    patterns.add<Expand<math::ErfcOp>>(&getContext(), expandErfc);
    patterns.add<Expand<math::SinOp>>(
        &getContext(), +[](FloatBuilder &b, Value x) {
          return expandSine(b, x, /*cosine=*/false);
        });
    patterns.add<Expand<math::CosOp>>(
        &getContext(), +[](FloatBuilder &b, Value x) {
          return expandSine(b, x, /*cosine=*/true);
        });
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
