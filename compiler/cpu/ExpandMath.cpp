// kvc-expand-math: see Passes.td.
//
// Every function is a reduction of the argument, one polynomial, and a scaling,
// in a fixed order of operations that round the same everywhere. Coefficients are
// fitted (ExpandPolynomials.inc) or those of the Taylor series, which on the reduced
// interval end below the last digit. How near each function comes is measured by
// test/compiler/cpu/expand_math.py.
#include "compiler/Passes.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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
#include "compiler/cpu/ExpandPolynomials.inc"

// Arithmetic on scalars or vectors like `example`, of f32 or f64.
struct FloatBuilder : ImplicitLocOpBuilder {
  FloatBuilder(Location loc, OpBuilder &builder, Type type, bool scalef)
      : ImplicitLocOpBuilder(loc, builder), type(type),
        wide(getElementTypeOrSelf(type).isF64()), scalef(scalef) {}

  const Type type;
  const bool wide;   // f64
  const bool scalef; // the machine has vscalefps

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

  // The nearest integer n to x * factor, as a float, and an integer whose last bits
  // (9 or 12) are those of n + bias, for |n| < 2^22 or 2^51: adding 1.5 * 2^(bits of
  // the mantissa) moves it there.
  std::pair<Value, Value> nearest(Value x, double factor, int64_t bias = 0) {
    Value magic = number((wide ? 0x1.8p52 : 0x1.8p23) + double(bias));
    Value shifted =
        factor == 1.0 ? add(x, magic) : fma(x, number(factor), magic);
    return {sub(shifted, magic), bits(shifted)};
  }

  // 2^n for an integer whose last bits are those of n + bias; the others are shifted
  // out.
  Value withExponent(Value n) {
    return fromBits(arith::ShLIOp::create(*this, n, integer(wide ? 52 : 23)));
  }
  int64_t bias() const { return wide ? 1023 : 127; }

  // x between the bounds; NaN stays.
  Value clamp(Value x, double low, double high) {
    Value least = number(low), most = number(high);
    x = select(compare(arith::CmpFPredicate::OGT, least, x), least, x);
    return select(compare(arith::CmpFPredicate::OLT, most, x), most, x);
  }
};

// The argument of a power of two, cut for it: 2^n 2^r, |r| <= 1/2.
struct Power {
  Value n;        // as a float
  Value exponent; // its last bits are those of n + the bias that was asked for
  Value r;
};

// 2^x, whose r is exact.
Power cutPower(FloatBuilder &b, Value x, int64_t bias) {
  auto [n, exponent] = b.nearest(x, 1.0, bias);
  return {n, exponent, b.sub(x, n)};
}

// e^(x * scale) = 2^(x * scale * log2 e), with log2 e in two parts, the first in the
// type's digits; `scale` is 1 or a power of two with a sign.
Power cutNaturalPower(FloatBuilder &b, Value x, int64_t bias, double scale = 1.0) {
  double high = scale * (b.wide ? 0x1.71547652b82fep+0 : 0x1.715476p+0);
  double low = scale * (b.wide ? 0x1.777d0ffda0d24p-56 : 0x1.4ae0bf85ddf44p-26);
  auto [n, exponent] = b.nearest(x, high, bias);
  Value r = b.fma(x, b.number(high), arith::NegFOp::create(b, n));
  return {n, exponent, b.fma(x, b.number(low), r)};
}

// The polynomial of 2^r, from the constant up, which is 1.
SmallVector<double> powerSeries(FloatBuilder &b) {
  if (!b.wide)
    return llvm::to_vector(ArrayRef(kExp2F32));
  SmallVector<double> taylor{1.0}; // (ln 2)^i / i!
  for (int i = 1; i <= 13; ++i)
    taylor.push_back(taylor.back() * 0.69314718055994530942 / i);
  return taylor;
}

// 2^n 2^r for an exponent n + 2 * bias of the type, rounded once, so that results are
// right down to the denormals and up to infinity. AVX-512 has an instruction for it;
// elsewhere 2^n is applied in two halves, of which only the last multiplication
// rounds:
//   n + 2 * bias = (h + bias) + (n - h + bias),  h = floor(n / 2).
Value raise(FloatBuilder &b, Power power) {
  Value p = b.polynomial(power.r, powerSeries(b));
  if (b.scalef && b.type == VectorType::get({16}, b.getF32Type())) {
    Value all = arith::ConstantOp::create(b, b.getI16IntegerAttr(-1));
    Value nearestEven = arith::ConstantOp::create(b, b.getI32IntegerAttr(4)); // as it is
    return LLVM::CallIntrinsicOp::create(
               b, b.type, b.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
               ValueRange{p, power.n, p, all, nearestEven})
        .getResult(0);
  }
  Value half = arith::ShRUIOp::create(b, power.exponent, b.integer(1));
  Value rest = arith::SubIOp::create(b, power.exponent, half);
  return b.mul(b.mul(p, b.withExponent(half)), b.withExponent(rest));
}

Value expandExp2(FloatBuilder &b, Value x) {
  // Beyond these the result is 0 or infinity all the same.
  x = b.wide ? b.clamp(x, -1076.0, 1024.0) : b.clamp(x, -151.0, 128.0);
  return raise(b, cutPower(b, x, 2 * b.bias()));
}

Value expandExp(FloatBuilder &b, Value x) {
  x = b.wide ? b.clamp(x, -746.0, 710.0) : b.clamp(x, -104.0, 89.0);
  return raise(b, cutNaturalPower(b, x, 2 * b.bias()));
}

// tanh(x) = -m / (2 + m) with x's sign and m = e^(-2|x|) - 1 = 2^n (2^r - 1) + 2^n - 1,
// where 2^r - 1 is the polynomial without its 1, so that nothing cancels near 0.
Value expandTanh(FloatBuilder &b, Value x) {
  // From here on it is 1.
  Value size = b.clamp(math::AbsFOp::create(b, x), 0.0, b.wide ? 20.0 : 10.0);
  Power power = cutNaturalPower(b, size, b.bias(), -2.0);
  SmallVector<double> series = powerSeries(b);
  Value p = b.mul(power.r, b.polynomial(power.r, ArrayRef(series).drop_front()));
  Value scale = b.withExponent(power.exponent);
  Value m = b.fma(scale, p, b.add(scale, b.number(-1.0)));
  Value result = arith::DivFOp::create(b, arith::NegFOp::create(b, m),
                                       b.add(m, b.number(2.0)));
  return math::CopySignOp::create(b, result, x);
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
  auto [q, quadrant] = b.nearest(x, 0.63661977236758134308);
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

Value expandSin(FloatBuilder &b, Value x) { return expandSine(b, x, false); }
Value expandCos(FloatBuilder &b, Value x) { return expandSine(b, x, true); }

// Replaces one math op by what `expand` writes.
template <typename Op>
struct Expand : OpRewritePattern<Op> {
  using Function = Value (*)(FloatBuilder &, Value);
  Expand(MLIRContext *context, Function expand, bool scalef)
      : OpRewritePattern<Op>(context), expand(expand), scalef(scalef) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    bool sine = std::is_same_v<Op, math::SinOp> || std::is_same_v<Op, math::CosOp>;
    if (!element.isF64() && (sine || !element.isF32()))
      return rewriter.notifyMatchFailure(op, "no expansion for this type");
    FloatBuilder b(op.getLoc(), rewriter, op.getType(), scalef);
    rewriter.replaceOp(op, expand(b, op.getOperand()));
    return success();
  }
  Function expand;
  bool scalef;
};

// bf16 to f64 goes through f32, which upstream's patterns know.
struct ExpandLongExtension : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    Value in = op.getIn();
    if (!getElementTypeOrSelf(in).isBF16() || !getElementTypeOrSelf(op.getType()).isF64())
      return rewriter.notifyMatchFailure(op, "not from bf16 to f64");
    Type middle = rewriter.getF32Type();
    if (auto vector = dyn_cast<VectorType>(op.getType()))
      middle = vector.clone(middle);
    Value wide = arith::ExtFOp::create(rewriter, op.getLoc(), middle, in);
    rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), wide);
    return success();
  }
};

struct ExpandMath : kvc::impl::ExpandMathBase<ExpandMath> {
  using ExpandMathBase::ExpandMathBase;
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<Expand<math::ExpOp>>(context, expandExp, scalef);
    patterns.add<Expand<math::Exp2Op>>(context, expandExp2, scalef);
    patterns.add<Expand<math::TanhOp>>(context, expandTanh, scalef);
    patterns.add<Expand<math::ErfcOp>>(context, expandErfc, scalef);
    patterns.add<Expand<math::SinOp>>(context, expandSin, scalef);
    patterns.add<Expand<math::CosOp>>(context, expandCos, scalef);
    patterns.add<ExpandLongExtension>(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
