#include "test/lib/ModelTiles.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace {

// A tile's memory: memref<rows x words x i32>.
MemRefType memoryOf(amx::TileType tile) {
  int64_t words = tile.getDimSize(1) * tile.getElementTypeBitWidth() / 32;
  return MemRefType::get({tile.getDimSize(0), words},
                         IntegerType::get(tile.getContext(), 32));
}

struct Builder : ImplicitLocOpBuilder {
  Builder(Operation *op, ConversionPatternRewriter &rewriter)
      : ImplicitLocOpBuilder(op->getLoc(), rewriter) {}

  Value index(int64_t value) { return arith::ConstantIndexOp::create(*this, value); }
  VectorType words(int64_t count) { return VectorType::get({count}, getI32Type()); }
  VectorType floats(int64_t count) { return VectorType::get({count}, getF32Type()); }
  Value splat(int64_t count, int32_t value) {
    return arith::ConstantOp::create(
        *this, DenseElementsAttr::get(words(count), getI32IntegerAttr(value)));
  }
  Value numbers(Value words) {
    int64_t count = cast<VectorType>(words.getType()).getDimSize(0);
    return arith::BitcastOp::create(*this, floats(count), words);
  }
  // The upper or the lower halves of words, bf16, as numbers.
  Value half(Value words, bool isUpper) {
    int64_t count = cast<VectorType>(words.getType()).getDimSize(0);
    if (isUpper)
      return numbers(arith::AndIOp::create(*this, words, splat(count, int32_t(0xffff0000))));
    return numbers(arith::ShLIOp::create(*this, words, splat(count, 16)));
  }
  Value allocate(amx::TileType tile) {
    return memref::AllocaOp::create(*this, memoryOf(tile), getI64IntegerAttr(64));
  }
  Value row(Value tile, Value r) {
    int64_t count = cast<MemRefType>(tile.getType()).getDimSize(1);
    return vector::LoadOp::create(*this, words(count), tile, ValueRange{r, index(0)});
  }
  void setRow(Value tile, Value r, Value value) {
    vector::StoreOp::create(*this, value, tile, ValueRange{r, index(0)});
  }
  // Word `k` of row `r`, for each of `count` columns.
  Value word(Value tile, Value r, Value k, int64_t count) {
    Value one = memref::LoadOp::create(*this, tile, ValueRange{r, k});
    return vector::BroadcastOp::create(*this, words(count), one);
  }
  void forEach(int64_t count, function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(*this, index(0), index(count), index(1));
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }
  SmallVector<Value> forEach(int64_t count, ValueRange state,
                             function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(*this, index(0), index(count), index(1), state);
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(*this, body(loop.getInductionVar(), loop.getRegionIterArgs()));
    return loop.getResults();
  }

  // Where a row of a tile stands in memory.
  Value address(Value memref, ValueRange at, Value stride, Value r) {
    auto metadata = memref::ExtractStridedMetadataOp::create(*this, memref);
    Value offset = arith::MulIOp::create(*this, r, stride);
    for (auto [i, extent] : llvm::zip_equal(at, metadata.getStrides()))
      offset = arith::AddIOp::create(*this, offset,
                                     arith::MulIOp::create(*this, i, extent));
    int64_t bytes =
        cast<MemRefType>(memref.getType()).getElementTypeBitWidth() / 8;
    Value start = memref::ExtractAlignedPointerAsIndexOp::create(*this, memref);
    Value whole = arith::AddIOp::create(
        *this, start, arith::MulIOp::create(*this, offset, index(bytes)));
    Value integer = arith::IndexCastOp::create(*this, getI64Type(), whole);
    return LLVM::IntToPtrOp::create(
        *this, Type(LLVM::LLVMPointerType::get(getContext())), integer);
  }
};

// Replaces an op by what `make` makes of it; an op without a result, by nothing.
template <typename Op, auto make> struct Replace : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Builder b(op, rewriter);
    if (Value result = make(b, op, adaptor))
      rewriter.replaceOp(op, result);
    else
      rewriter.eraseOp(op);
    return success();
  }
};

Value zero(Builder &b, amx::TileZeroOp op, amx::TileZeroOp::Adaptor) {
  Value result = b.allocate(op.getTileType());
  auto type = cast<MemRefType>(result.getType());
  b.forEach(type.getDimSize(0), [&](Value r) {
    b.setRow(result, r, b.splat(type.getDimSize(1), 0));
  });
  return result;
}

Value load(Builder &b, amx::TileLoadOp op, amx::TileLoadOp::Adaptor adaptor) {
  Value result = b.allocate(op.getTileType());
  auto type = cast<MemRefType>(result.getType());
  b.forEach(type.getDimSize(0), [&](Value r) {
    Value at = b.address(adaptor.getBase(), adaptor.getIndices(),
                         adaptor.getStride(), r);
    b.setRow(result, r,
             LLVM::LoadOp::create(b, b.words(type.getDimSize(1)), at,
                                  /*alignment=*/1));
  });
  return result;
}

Value store(Builder &b, amx::TileStoreOp, amx::TileStoreOp::Adaptor adaptor) {
  auto type = cast<MemRefType>(adaptor.getVal().getType());
  b.forEach(type.getDimSize(0), [&](Value r) {
    Value at = b.address(adaptor.getBase(), adaptor.getIndices(),
                         adaptor.getStride(), r);
    LLVM::StoreOp::create(b, b.row(adaptor.getVal(), r), at, /*alignment=*/1);
  });
  return Value();
}

// TDPBSSD and its kin: acc[r][c] += sum_k sum_i lhs[r].byte[4k + i] *
// rhs[k].byte[4c + i], in i32.
Value multiplyBytes(Builder &b, amx::TileMulIOp op, amx::TileMulIOp::Adaptor adaptor) {
  Value result = b.allocate(op.getTileType());
  int64_t columns = cast<MemRefType>(result.getType()).getDimSize(1);
  int64_t depth = cast<MemRefType>(adaptor.getLhs().getType()).getDimSize(1);
  auto byteOf = [&](Value words, int64_t i, bool isUnsigned) -> Value {
    Value upper = arith::ShLIOp::create(b, words, b.splat(columns, 24 - 8 * i));
    if (isUnsigned)
      return arith::ShRUIOp::create(b, upper, b.splat(columns, 24));
    return arith::ShRSIOp::create(b, upper, b.splat(columns, 24));
  };
  b.forEach(cast<MemRefType>(result.getType()).getDimSize(0), [&](Value r) {
    Value sum = b.forEach(
        depth, b.row(adaptor.getAcc(), r),
        [&](Value k, ValueRange state) -> SmallVector<Value> {
          Value x = b.word(adaptor.getLhs(), r, k, columns);
          Value w = b.row(adaptor.getRhs(), k), sum = state[0];
          for (int64_t i = 0; i != 4; ++i)
            sum = arith::AddIOp::create(
                b, sum,
                arith::MulIOp::create(b, byteOf(x, i, op.getIsZextLhs()),
                                      byteOf(w, i, op.getIsZextRhs())));
          return {sum};
        })[0];
    b.setRow(result, r, sum);
  });
  return result;
}

// TDPBF16PS: acc[r][c] += even + odd, each from 0 over the pairs k by fused
// multiply-adds.
Value multiplyFloats(Builder &b, amx::TileMulFOp op, amx::TileMulFOp::Adaptor adaptor) {
  Value result = b.allocate(op.getTileType());
  int64_t columns = cast<MemRefType>(result.getType()).getDimSize(1);
  int64_t depth = cast<MemRefType>(adaptor.getLhs().getType()).getDimSize(1);
  Value zero = b.numbers(b.splat(columns, 0));
  b.forEach(cast<MemRefType>(result.getType()).getDimSize(0), [&](Value r) {
    SmallVector<Value> chains = b.forEach(
        depth, {zero, zero},
        [&](Value k, ValueRange state) -> SmallVector<Value> {
          Value x = b.word(adaptor.getLhs(), r, k, columns);
          Value w = b.row(adaptor.getRhs(), k);
          SmallVector<Value> next;
          for (bool isOdd : {false, true})
            next.push_back(math::FmaOp::create(b, b.half(x, isOdd), b.half(w, isOdd),
                                               state[isOdd]));
          return next;
        });
    Value sum = arith::AddFOp::create(
        b, b.numbers(b.row(adaptor.getAcc(), r)),
        arith::AddFOp::create(b, chains[0], chains[1]));
    b.setRow(result, r, arith::BitcastOp::create(b, b.words(columns), sum));
  });
  return result;
}

// VDPBF16PS: to each sum the product of the words' upper halves, then that of the lower
// ones, by fused multiply-adds.
bool isPairDot(LLVM::CallIntrinsicOp op) {
  return op.getIntrin() == "llvm.x86.avx512bf16.dpbf16ps.512";
}
Value multiplyPairs(Builder &b, LLVM::CallIntrinsicOp op,
                    LLVM::CallIntrinsicOp::Adaptor adaptor) {
  Value sum = adaptor.getArgs()[0];
  int64_t columns = cast<VectorType>(sum.getType()).getDimSize(0);
  auto words = [&](Value pairs) {
    return vector::BitCastOp::create(b, b.words(columns), pairs);
  };
  Value x = words(adaptor.getArgs()[1]), w = words(adaptor.getArgs()[2]);
  for (bool isUpper : {true, false})
    sum = math::FmaOp::create(b, b.half(x, isUpper), b.half(w, isUpper), sum);
  return sum;
}

struct ModelTiles : PassWrapper<ModelTiles, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ModelTiles)
  StringRef getArgument() const override { return "kvc-test-model-tiles"; }
  StringRef getDescription() const override {
    return "tiles in memory, and their instructions by definition";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    TypeConverter types;
    types.addConversion([](Type type) { return type; });
    types.addConversion([](amx::TileType tile) -> Type { return memoryOf(tile); });
    RewritePatternSet patterns(&getContext());
    patterns.add<Replace<amx::TileZeroOp, zero>, Replace<amx::TileLoadOp, load>,
                 Replace<amx::TileStoreOp, store>,
                 Replace<amx::TileMulIOp, multiplyBytes>,
                 Replace<amx::TileMulFOp, multiplyFloats>,
                 Replace<LLVM::CallIntrinsicOp, multiplyPairs>>(types, &getContext());
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalDialect<amx::AMXDialect>();
    target.addDynamicallyLegalOp<LLVM::CallIntrinsicOp>(
        [](LLVM::CallIntrinsicOp op) { return !isPairDot(op); });
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns, target);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

std::unique_ptr<Pass> kvc::test::createModelTiles() {
  return std::make_unique<ModelTiles>();
}

void kvc::test::registerModelTiles() { PassRegistration<ModelTiles>(); }
