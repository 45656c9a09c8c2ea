// Verifiers, folders and canonicalisation of the kvc operations. Each block of
// a verifier is one numbered constraint of KVCOps.td.
#include "dialect/KVC.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace kvc;

// `divisors` [1.0, 3.25], each with all its digits: MLIR's own form of an array
// keeps six.
static ParseResult parseDivisors(OpAsmParser &parser,
                                 DenseF64ArrayAttr &divisors) {
  if (failed(parser.parseOptionalKeyword("divisors")))
    return success();
  SmallVector<double> values;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseFloat(values.emplace_back());
      }))
    return failure();
  divisors = parser.getBuilder().getDenseF64ArrayAttr(values);
  return success();
}

static void printDivisors(OpAsmPrinter &printer, Operation *,
                          DenseF64ArrayAttr divisors) {
  if (!divisors)
    return;
  printer << " divisors [";
  llvm::interleaveComma(divisors.asArrayRef(), printer, [&](double value) {
    printer.printFloat(APFloat(value));
  });
  printer << "]";
}

#include "dialect/KVCOpInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialect/KVCOps.cpp.inc"

static int64_t widthOf(Value rows) {
  return cast<RankedTensorType>(rows.getType()).getDimSize(1);
}

static Type elementOf(Value rows) {
  return cast<RankedTensorType>(rows.getType()).getElementType();
}

// Whether all have the same number of rows, as far as their types say it.
static LogicalResult checkRowCount(Operation *op, ValueRange values) {
  for (Value value : values.drop_front()) {
    auto first = cast<RankedTensorType>(values.front().getType());
    auto other = cast<RankedTensorType>(value.getType());
    if (failed(verifyCompatibleShape({first.getDimSize(0)},
                                     {other.getDimSize(0)})))
      return op->emitOpError()
             << "expected one number of rows (tokens), but got "
             << first.getDimSize(0) << " and " << other.getDimSize(0);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  RankedTensorType type = getWeightType();
  // C1: a static vector or matrix with elements.
  size_t axes = isStacked() ? 1 : 0;
  if (!llvm::all_of(type.getShape(), [](int64_t size) { return size > 0; }) ||
      type.getRank() < int64_t(axes + 1) || type.getRank() > int64_t(axes + 2))
    return emitOpError() << "expected a static vector or matrix of extents above 0"
                         << (axes ? " after the axis of layers" : "")
                         << ", but got " << type;
  // C2: element type.
  const Storage *storage = storageOf(type.getElementType());
  if (!storage)
    return emitOpError() << "expected the element type to be f64, f32, f16, bf16 "
                            "or one of blocks such as !kvc.q8_0, but got "
                         << type.getElementType();
  // C5: one layer number at most.
  if (getSource().count("{}") > 1)
    return emitOpError() << "expected the source to have {} once at most, but got "
                         << getSourceAttr();
  // C3: only a matrix can be transposed.
  ArrayRef<int64_t> shape = getLayerShape();
  if (getTransposed() && shape.size() != 2)
    return emitOpError() << "expected a transposed weight to be a matrix, but got "
                         << type;
  // C4: paired heads.
  if (auto heads = getPairedHeads())
    if (*heads % 2 != 0 || shape[0] % *heads != 0)
      return emitOpError() << "expected the width of paired heads to be even and "
                              "to divide the rows ("
                           << shape[0] << "), but got " << *heads;
  // C7: bytes.
  int64_t bytes = storage->bytes;
  bool overflow = false;
  for (int64_t size : type.getShape())
    overflow |= llvm::MulOverflow(bytes, size, bytes);
  if (overflow || bytes > kMaxBytes)
    return emitOpError() << "expected at most 2^56 bytes, but got " << type;
  // C8: a name of the packed file.
  if (getSymName().starts_with("__") || !llvm::json::isUTF8(getSymName()))
    return emitOpError() << "expected a symbol in UTF-8 that doesn't begin with "
                            "__ (the packed file's own entries do), but got "
                         << getSymNameAttr();
  // C9: blocks.
  if (storage->quants && (shape.size() != 2 || getTransposed() ||
                          shape[1] % storage->elements != 0))
    return emitOpError() << "expected a weight in blocks to be a matrix with rows "
                            "of a multiple of "
                         << storage->elements
                         << " elements, not transposed, but got " << type;
  // C10: layers.
  if (auto layers = getFileLayers())
    if (!isStacked() || int64_t(layers->size()) != getLayers() ||
        layers->front() < 0 || !llvm::is_sorted(*layers, std::less_equal<>()))
      return emitOpError() << "expected the numbers of its " << getLayers()
                           << " layers, from 0 up, each above the one before, but got ["
                           << *layers << "]";
  return success();
}

std::string WeightOp::getTensorName(int64_t layer) {
  auto [before, after] = getSource().split("{}");
  if (!isStacked())
    return before.str();
  return (before + Twine(getFileLayers() ? (*getFileLayers())[layer] : layer) + after)
      .str();
}

std::vector<WeightOp> StackOp::getParts() {
  std::vector<WeightOp> parts;
  for (auto symbol : getWeights().getAsRange<FlatSymbolRefAttr>())
    parts.push_back(SymbolTable::lookupNearestSymbolFrom<WeightOp>(*this, symbol));
  return parts;
}

ArrayRef<int64_t> StackOp::getLayerShape() {
  return getParts().front().getLayerShape();
}

bool StackOp::isStacked() { return true; }

int64_t StackOp::getLayers() {
  int64_t layers = 0;
  for (WeightOp part : getParts())
    layers += part.getLayers();
  return layers;
}

DenseElementsAttr StackOp::getPlaces() {
  SmallVector<int64_t> places(2 * getLayers());
  for (auto [number, part] : llvm::enumerate(getParts()))
    for (auto [at, layer] : llvm::enumerate(part.getFileLayersAttr().asArrayRef())) {
      places[2 * layer] = number;
      places[2 * layer + 1] = at;
    }
  auto type = RankedTensorType::get(
      {getLayers(), 2}, IntegerType::get(getContext(), 64));
  return DenseElementsAttr::get(type, ArrayRef(places));
}

LogicalResult StackOp::verifySymbolUses(SymbolTableCollection &symbols) {
  std::set<int64_t> layers;
  WeightOp first;
  for (auto symbol : getWeights().getAsRange<FlatSymbolRefAttr>()) {
    auto part = symbols.lookupNearestSymbolFrom<WeightOp>(*this, symbol);
    // C1: matrices of some layers.
    if (!part || !part.getFileLayers() || part.getLayerShape().size() != 2)
      return emitOpError() << "expected " << symbol
                           << " to be a matrix that says its layers";
    if (!first)
      first = part;
    if (part.getLayerShape() != first.getLayerShape())
      return emitOpError() << "expected matrices of one shape, but got "
                           << part.getWeightType() << " and "
                           << first.getWeightType();
    // C2: each layer once.
    for (int64_t layer : part.getFileLayersAttr().asArrayRef())
      if (!layers.insert(layer).second)
        return emitOpError() << "expected each layer in one of its weights, but got "
                             << layer << " again in " << symbol;
  }
  if (layers.empty() || *layers.rbegin() + 1 != int64_t(layers.size()))
    return emitOpError() << "expected the layers from 0 to as many as there are, but "
                            "got "
                         << layers.size() << " of them"
                         << (layers.empty() ? "" : ", the last one ")
                         << (layers.empty() ? "" : std::to_string(*layers.rbegin()));
  return success();
}

// Without the weights that an op does without.
static SmallVector<WeightUse> present(SmallVector<WeightUse> uses) {
  llvm::erase_if(uses, [](const WeightUse &use) { return !use.symbol; });
  return uses;
}

// Checks that each weight of `op` is declared, has the shape that it has to have,
// and is stacked over layers iff the op has a layer.
static LogicalResult verifyWeights(WeightUser op,
                                   SymbolTableCollection &symbols) {
  bool hasLayer = bool(op.getLayer());
  for (const WeightUse &use : op.getWeights()) {
    auto weight = symbols.lookupNearestSymbolFrom<NamedWeight>(op, use.symbol);
    if (!weight)
      return op->emitOpError() << "expected " << use.symbol << " (" << use.role
                               << ") to be declared by a kvc.weight or a kvc.stack";
    auto fail = [&](const Twine &message) {
      InFlightDiagnostic diag = op->emitOpError() << message;
      diag.attachNote(weight->getLoc()) << "declared here";
      return diag;
    };
    auto shapeText = [](ArrayRef<int64_t> shape) {
      std::string text;
      llvm::raw_string_ostream os(text);
      llvm::interleaveComma(shape, os, [&](int64_t size) {
        ShapedType::isDynamic(size) ? os << '?' : os << size;
      });
      return text;
    };
    std::string name = ("@" + use.symbol.getValue()).str();
    if (failed(verifyCompatibleShape(use.shape, weight.getLayerShape())))
      return fail("expected the " + use.role + " " + name + " to be [" +
                  shapeText(use.shape) + "]" +
                  (hasLayer ? " for a layer" : "") + ", but got [" +
                  shapeText(weight.getLayerShape()) + "]");
    if (weight.isStacked() != hasLayer)
      return fail(hasLayer ? "expected no layer, since " + name +
                                 " is not stacked over layers"
                           : "expected a layer, since " + name +
                                 " is stacked over layers");
  }
  return success();
}

SmallVector<WeightUse> EmbedOp::getWeights() {
  return {{"table", getTableAttr(), {ShapedType::kDynamic, widthOf(getResult())}}};
}
SmallVector<WeightUse> RMSNormOp::getWeights() {
  return {{"weight", getWeightAttr(), {widthOf(getInput())}}};
}
SmallVector<WeightUse> LayerNormOp::getWeights() {
  int64_t width = widthOf(getInput());
  return present({{"weight", getWeightAttr(), {width}},
                  {"bias", getBiasAttr(), {width}}});
}
SmallVector<WeightUse> LinearOp::getWeights() {
  int64_t inputs = widthOf(getInput()), outputs = widthOf(getResult());
  return present({{"weight", getWeightAttr(), {outputs, inputs}},
                  {"bias", getBiasAttr(), {outputs}}});
}
SmallVector<WeightUse> GatedLinearOp::getWeights() {
  int64_t inputs = widthOf(getInput()), outputs = widthOf(getResult());
  return present({{"gate", getGateAttr(), {outputs, inputs}},
                  {"up", getUpAttr(), {outputs, inputs}},
                  {"gate bias", getGateBiasAttr(), {outputs}},
                  {"up bias", getUpBiasAttr(), {outputs}}});
}

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(*this, getTableAttr());
  // C1: a matrix that is not stacked.
  if (weight && (weight.isStacked() || weight.getLayerShape().size() != 2))
    return emitOpError() << "expected the table " << getTableAttr()
                         << " to be a matrix [entries, width] that is not "
                            "stacked over layers, but got "
                         << weight.getWeightType();
  // C2: width.
  return verifyWeights(*this, symbols);
}
LogicalResult RMSNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyWeights(*this, symbols); // C1, C2
}
LogicalResult LayerNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyWeights(*this, symbols); // C1, C2
}

// Checks that a linear layer whose input is rounded in a way, which `how` and `stored`
// name, has weights that are multiplied with such.
static LogicalResult verifyRounding(WeightUser op, Value input, Rounding rounding,
                                    StringRef how, StringRef stored,
                                    SymbolTableCollection &symbols) {
  if (!elementOf(input).isF32())
    return op->emitOpError() << "expected a " << how << " input to be f32, but got "
                             << elementOf(input);
  for (const WeightUse &use : op.getWeights()) {
    auto weight = symbols.lookupNearestSymbolFrom<NamedWeight>(op, use.symbol);
    std::vector<WeightOp> parts = weight.getParts();
    if (use.shape.size() == 2 && llvm::none_of(parts, [&](WeightOp part) {
          return part.getStorage().rounding == rounding;
        }))
      return op->emitOpError()
             << "expected the " << use.role << " " << use.symbol << " of a " << how
             << " input to be stored in " << stored << ", but got "
             << parts.front().getWeightType().getElementType();
  }
  return success();
}

template <typename Op>
static LogicalResult verifyLinear(Op op, SymbolTableCollection &symbols) {
  if (failed(verifyWeights(op, symbols)))
    return failure();
  if (op.getRounded() && failed(verifyRounding(op, op.getInput(), Rounding::Bytes,
                                               "rounded", "blocks", symbols)))
    return failure();
  if (op.getNarrowed() && failed(verifyRounding(op, op.getInput(), Rounding::BF16,
                                                "narrowed", "bf16", symbols)))
    return failure();
  return success();
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLinear(*this, symbols); // C1, C2, C3, C6
}
LogicalResult GatedLinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLinear(*this, symbols); // C1, C2, C3, C5
}

Value EmbedOp::getPositions() {
  return getIds().getType().getElementType().isInteger(64) ? getIds() : Value();
}

LogicalResult EmbedOp::verify() {
  // C3: rows.
  return checkRowCount(*this, {getIds(), getResult()});
}

// The rows and the element type of `result` are those of `input`.
static LogicalResult checkSameRows(Operation *op, Value input, Value result) {
  auto in = cast<RankedTensorType>(input.getType());
  auto out = cast<RankedTensorType>(result.getType());
  if (in.getElementType() != out.getElementType() ||
      in.getDimSize(0) != out.getDimSize(0))
    return op->emitOpError() << "expected the result to have the rows and the "
                                "element type of the input ("
                             << in << "), but got " << out;
  return success();
}

LogicalResult LinearOp::verify() {
  // C4: residual.
  if (getResidual() && getResidual().getType() != getResult().getType())
    return emitOpError() << "expected the residual to have the result's type ("
                         << getResult().getType() << "), but got "
                         << getResidual().getType();
  // C5: rows.
  return checkSameRows(*this, getInput(), getResult());
}

LogicalResult GatedLinearOp::verify() {
  // C4: rows.
  return checkSameRows(*this, getInput(), getResult());
}

//===----------------------------------------------------------------------===//
// Together
//===----------------------------------------------------------------------===//

LogicalResult TogetherOp::verifyRegions() {
  Operation *yield = getBody().front().getTerminator();
  Value input;
  for (Operation &op : getOps()) {
    // C1: ops of row tasks.
    auto tasks = dyn_cast<RowTasks>(op);
    if (!tasks)
      return op.emitOpError("expected an op of the interface RowTasks in kvc.together");
    // C2: one input.
    if (!input)
      input = tasks.getInput();
    if (input != tasks.getInput())
      return op.emitOpError("expected the input of the first op in kvc.together");
    // C3: no result of another.
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() == &getBody().front())
        return op.emitOpError("expected no result of another op in kvc.together");
  }
  // C4: each result, in order.
  SmallVector<Value> given;
  for (Operation &op : getOps())
    llvm::append_range(given, op.getResults());
  if (!llvm::equal(given, yield->getOperands()))
    return yield->emitOpError("expected the result of each op, in their order");
  if (!llvm::equal(yield->getOperandTypes(), getResultTypes()))
    return emitOpError("expected the types of what kvc.yield gives");
  return success();
}

// A result is called what it is called in the body.
void TogetherOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (auto [result, given] :
       llvm::zip(getResults(), getBody().front().getTerminator()->getOperands())) {
    Location loc = given.getLoc();
    while (auto call = dyn_cast<CallSiteLoc>(loc))
      loc = call.getCallee();
    if (auto name = dyn_cast<NameLoc>(loc))
      setName(result, name.getName());
  }
}

void TogetherOp::dissolve() {
  Operation *yield = getBody().front().getTerminator();
  replaceAllUsesWith(yield->getOperands());
  yield->erase();
  (*this)->getBlock()->getOperations().splice((*this)->getIterator(),
                                              getBody().front().getOperations());
  erase();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LogicalResult SelectOp::verify() {
  // C1: width and element type.
  if (widthOf(getInput()) != widthOf(getResult()) ||
      elementOf(getInput()) != elementOf(getResult()))
    return emitOpError() << "expected the result to have the width and the "
                            "element type of the input ("
                         << getInput().getType() << "), but got "
                         << getResult().getType();
  // C2: rows.
  return checkRowCount(*this, {getRows(), getResult()});
}

LogicalResult RotaryOp::verify() {
  // C1: heads.
  int64_t width = widthOf(getInput()), headDim = getHeadDim(), dims = getDims();
  if (width % headDim != 0)
    return emitOpError() << "expected the row's width to be a multiple of "
                            "head_dim ("
                         << headDim << "), but got " << width;
  // C2: rotated elements.
  if (dims % 2 != 0 || dims > headDim)
    return emitOpError() << "expected dims to be even and at most head_dim ("
                         << headDim << "), but got " << dims;
  // C3: number of divisors.
  ArrayRef<double> divisors = getDivisors().value_or(ArrayRef<double>());
  if (getDivisors() && divisors.size() != 1 &&
      int64_t(divisors.size()) != dims / 2)
    return emitOpError() << "expected 1 or " << dims / 2
                         << " (dims / 2) divisors, but got " << divisors.size();
  // C5: rows.
  return checkRowCount(*this, {getInput(), getPositions()});
}

SmallVector<double> RotaryOp::getFrequencies() {
  ArrayRef<double> divisors = getDivisors().value_or(ArrayRef<double>());
  SmallVector<double> frequencies;
  for (int64_t i = 0, pairs = getDims() / 2; i != pairs; ++i) {
    double divisor = divisors.empty() ? 1.0
                                      : divisors[divisors.size() == 1 ? 0 : i];
    frequencies.push_back(
        std::pow(getTheta().convertToDouble(), -2.0 * i / getDims()) / divisor);
  }
  return frequencies;
}

//===----------------------------------------------------------------------===//
// Cache
//===----------------------------------------------------------------------===//

LogicalResult PositionsOp::verify() {
  // C1: rows.
  return checkRowCount(*this, {getSequences(), getPositions()});
}

static LogicalResult checkGroup(Operation *op, CacheType cache, int64_t group) {
  if (group < int64_t(cache.getGroups().size()))
    return success();
  return op->emitOpError() << "expected a group of the cache (0 to "
                           << cache.getGroups().size() - 1 << "), but got "
                           << group;
}

LogicalResult AppendOp::verify() {
  // C4: the group.
  if (failed(checkGroup(*this, getCache().getType(), getGroup())))
    return failure();
  const Group &group = getCacheGroup();
  // C1: keys.
  int64_t keys = group.kvHeads * group.keyWidth;
  if (widthOf(getKeys()) != keys)
    return emitOpError() << "expected the keys' width to be " << keys
                         << " (KV heads times key width of the cache), but got "
                         << widthOf(getKeys());
  // C2: values.
  int64_t values = group.kvHeads * group.valueWidth;
  if (widthOf(getValues()) != values)
    return emitOpError()
           << "expected the values' width to be " << values
           << " (KV heads times value width of the cache), but got "
           << widthOf(getValues());
  // C3: rows.
  return checkRowCount(*this, {getKeys(), getValues(), getPositions(), getSequences()});
}

LogicalResult AttendOp::verify() {
  // C6: the group.
  if (failed(checkGroup(*this, getCache().getType(), getGroup())))
    return failure();
  const Group &group = getCacheGroup();
  // C1: whole groups of query heads.
  int64_t keys = group.kvHeads * group.keyWidth;
  if (widthOf(getQueries()) % keys != 0)
    return emitOpError() << "expected the queries' width to be a multiple of "
                         << keys
                         << " (KV heads times key width of the cache), but got "
                         << widthOf(getQueries());
  // C2: the result has the queries' type.
  if (group.keyWidth != group.valueWidth)
    return emitOpError() << "expected the key and value widths of the cache to "
                            "be equal, but got "
                         << group.keyWidth << " and " << group.valueWidth;
  // C3: rows.
  return checkRowCount(*this, {getQueries(), getPositions(), getSequences()});
}

// truncate(truncate(c, s, a), s, b) becomes truncate(c, s, min(a, b)) for
// constant lengths: the shorter one decides.
LogicalResult TruncateOp::canonicalize(TruncateOp op, PatternRewriter &rewriter) {
  auto inner = op.getCache().getDefiningOp<TruncateOp>();
  APInt outerLength, innerLength;
  if (!inner || inner.getSequence() != op.getSequence() ||
      !inner.getResult().hasOneUse())
    return rewriter.notifyMatchFailure(op, "not the same sequence truncated twice");
  if (!matchPattern(op.getLength(), m_ConstantInt(&outerLength)) ||
      !matchPattern(inner.getLength(), m_ConstantInt(&innerLength)))
    return rewriter.notifyMatchFailure(op, "the lengths are not constants");
  Value length =
      outerLength.ult(innerLength) ? op.getLength() : inner.getLength();
  rewriter.replaceOpWithNewOp<TruncateOp>(op, op.getType(), inner.getCache(),
                                          op.getSequence(), length);
  return success();
}

OpFoldResult ForkOp::fold(FoldAdaptor) {
  // A sequence equals itself.
  return getFrom() == getTo() ? OpFoldResult(getCache()) : OpFoldResult();
}

LogicalResult ReorderOp::verify() {
  // C1: sequences are counted from 0.
  DenseIntElementsAttr order;
  if (matchPattern(getOrder(), m_Constant(&order)))
    for (const APInt &sequence : order.getValues<APInt>())
      if (sequence.isNegative())
        return emitOpError() << "expected the entries of the order to be "
                                "sequences from 0 on, but got "
                             << sequence.getSExtValue();
  return success();
}

OpFoldResult ReorderOp::fold(FoldAdaptor adaptor) {
  auto order = dyn_cast_if_present<DenseIntElementsAttr>(adaptor.getOrder());
  if (!order)
    return {};
  for (auto [index, sequence] : llvm::enumerate(order.getValues<APInt>()))
    if (sequence.getSExtValue() != int64_t(index))
      return {};
  return getCache();
}
