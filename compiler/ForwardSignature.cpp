#include "compiler/ForwardSignature.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <kvc/abi.h>

using namespace mlir;
using namespace kvc;

func::FuncOp kvc::lookupForward(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>(kForward);
  return forward && !forward.isExternal() ? forward : func::FuncOp();
}

//===----------------------------------------------------------------------===//
// In the dialect
//===----------------------------------------------------------------------===//

static bool arePerToken(Type type, unsigned bits) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 && tensor.isDynamicDim(0) &&
         tensor.getElementType().isInteger(bits);
}

static bool areLogits(Type type) {
  auto rows = dyn_cast<RankedTensorType>(type);
  return rows && rows.getRank() == 2 && rows.isDynamicDim(0) &&
         !rows.isDynamicDim(1) &&
         (rows.getElementType().isF32() || rows.getElementType().isF64());
}

LogicalResult kvc::verifyForwardSignature(func::FuncOp forward) {
  ArrayRef<Type> inputs = forward.getArgumentTypes();
  ArrayRef<Type> results = forward.getResultTypes();
  if (inputs.size() != ForwardArgument::Count ||
      !arePerToken(inputs[ForwardArgument::Tokens], 32) ||
      !arePerToken(inputs[ForwardArgument::Sequences], 32) ||
      !arePerToken(inputs[ForwardArgument::Outputs], 64) ||
      !isa<CacheType>(inputs[ForwardArgument::Cache]) ||
      results.size() != ForwardResult::Count ||
      !areLogits(results[ForwardResult::Logits]) ||
      results[ForwardResult::Cache] != inputs[ForwardArgument::Cache])
    return forward.emitError()
           << "expected @forward to take tokens (tensor<?xi32>), sequences "
              "(tensor<?xi32>), outputs (tensor<?xi64>) and a cache, and to "
              "give logits (tensor<?xVxf32> or f64) and the cache, but got "
           << forward.getFunctionType();
  Type arithmetic = logitsTypeOf(forward).getElementType();
  for (const Group &group : cacheTypeOf(forward).getGroups())
    if (group.elementType.getIntOrFloatBitWidth() >
        arithmetic.getIntOrFloatBitWidth())
      return forward.emitError()
             << "expected a cache of numbers that are at most as wide as the logits, "
             << arithmetic << ", but got " << group.elementType;
  if (isTiles(forward) && !arithmetic.isF32())
    return forward.emitError()
           << "expected arithmetic in f32 for numerics of the class tiles, but got "
           << arithmetic;
  return success();
}

CacheType kvc::cacheTypeOf(func::FuncOp forward) {
  return cast<CacheType>(forward.getArgumentTypes()[ForwardArgument::Cache]);
}

RankedTensorType kvc::logitsTypeOf(func::FuncOp forward) {
  return cast<RankedTensorType>(
      forward.getResultTypes()[ForwardResult::Logits]);
}

//===----------------------------------------------------------------------===//
// In a generated library
//===----------------------------------------------------------------------===//

// Whether abi.h has as many parameters, all buffers but the last. A test compares
// their names, and so their order: compiler/cpu/forward-signature.test.
template <typename... Parameters>
static constexpr bool isKnown(void (*)(Parameters...)) {
  constexpr bool buffers[] = {
      std::is_same_v<Parameters, const kvc_buffer *>...};
  constexpr bool executors[] = {
      std::is_same_v<Parameters, const kvc_executor *>...};
  for (unsigned i = 0; i != sizeof...(Parameters); ++i)
    if (i == AbiArgument::Executor ? !executors[i] : !buffers[i])
      return false;
  return sizeof...(Parameters) == AbiArgument::Count;
}
static_assert(isKnown(kvc_forward_function()), "not the parameters of abi.h");

namespace {
struct Parameter {
  StringRef name;
  Type type;
};
} // namespace

static SmallVector<Parameter> abiParameters(Builder &b, Type arithmetic) {
  auto buffer = [](Type element) -> Type {
    return MemRefType::get({ShapedType::kDynamic}, element);
  };
  Type i8 = b.getI8Type(), i32 = b.getI32Type(), i64 = b.getI64Type();
  SmallVector<Parameter> parameters(AbiArgument::Count);
  parameters[AbiArgument::Weights] = {"weights", buffer(i8)};
  parameters[AbiArgument::Pool] = {"pool", buffer(i8)};
  parameters[AbiArgument::Pages] = {"pages", buffer(i64)};
  parameters[AbiArgument::Lengths] = {"lengths", buffer(i64)};
  parameters[AbiArgument::Tokens] = {"tokens", buffer(i32)};
  parameters[AbiArgument::Sequences] = {"sequences", buffer(i32)};
  parameters[AbiArgument::Outputs] = {"outputs", buffer(i64)};
  parameters[AbiArgument::Logits] = {"logits", buffer(arithmetic)};
  parameters[AbiArgument::Workspace] = {"workspace", buffer(i8)};
  parameters[AbiArgument::Executor] = {
      "executor", LLVM::LLVMPointerType::get(b.getContext())};
  return parameters;
}

static FunctionType abiType(Builder &b, Type arithmetic) {
  SmallVector<Type> types;
  for (const Parameter &parameter : abiParameters(b, arithmetic))
    types.push_back(parameter.type);
  return b.getFunctionType(types, {});
}

func::FuncOp kvc::createAbiForward(OpBuilder &builder, Location loc,
                                   Type arithmetic) {
  auto forward = func::FuncOp::create(builder, loc, kForward,
                                      abiType(builder, arithmetic));
  forward->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                   builder.getUnitAttr());
  for (auto [argument, parameter] :
       llvm::zip_equal(forward.addEntryBlock()->getArguments(),
                       abiParameters(builder, arithmetic)))
    argument.setLoc(NameLoc::get(builder.getStringAttr(parameter.name), loc));
  return forward;
}

LogicalResult kvc::verifyAbiForward(func::FuncOp forward) {
  Builder b(forward.getContext());
  FunctionType type = forward.getFunctionType();
  if (llvm::is_contained({abiType(b, b.getF32Type()), abiType(b, b.getF64Type())},
                         type))
    return success();
  return forward.emitError() << "expected @forward to have the parameters of "
                                "kvc_forward_function (kvc/abi.h), but got "
                             << type;
}

Value kvc::viewLogits(ImplicitLocOpBuilder &b, func::FuncOp abiForward,
                      RankedTensorType logits) {
  Value outputs = abiForward.getArgument(AbiArgument::Outputs);
  OpFoldResult rows = memref::DimOp::create(b, outputs, 0).getResult();
  OpFoldResult vocab = b.getIndexAttr(logits.getDimSize(1));
  Location loc = NameLoc::get(b.getStringAttr("logits_rows"), b.getLoc());
  return memref::ReinterpretCastOp::create(
      b, loc, MemRefType::get(logits.getShape(), logits.getElementType()),
      abiForward.getArgument(AbiArgument::Logits), b.getIndexAttr(0),
      ArrayRef<OpFoldResult>{rows, vocab},
      ArrayRef<OpFoldResult>{vocab, b.getIndexAttr(1)});
}
