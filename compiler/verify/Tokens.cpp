// How many tokens of which sequence a step has, as far as it is known.
#include "compiler/verify/Contract.h"
#include "compiler/verify/StepState.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvc;
using namespace kvc::contract;

static bool isSequences(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 1 &&
         type.getElementType().isSignlessInteger(32);
}

void TokenCounts::add(const Sequence &sequence, int64_t count, Value name) {
  Tokens &tokens = counts[sequence];
  tokens.count += count;
  tokens.name = name;
}

void TokenCounts::add(const TokenCounts &other) {
  for (const auto &[sequence, tokens] : other)
    add(sequence, tokens.count, tokens.name);
}

void TokenCounts::addScalar(const Identity &scalar, int64_t count, Value name) {
  if (!scalar.constant)
    add(Sequence(scalar.number, 0), count, name);
  else if (auto constant = dyn_cast<IntegerAttr>(scalar.constant))
    add(Sequence(0, constant.getInt()), count, name);
}

void TokenCounts::setRows(int64_t rows) {
  if (isOneSequence && rows > 0)
    counts.begin()->second.count = rows;
}

bool TokenCounts::keepCommon(const TokenCounts &other) {
  bool wasOne = isOneSequence, isLess = false;
  isOneSequence = wasOne && other.isOneSequence &&
                  counts.begin()->first == other.counts.begin()->first;
  for (auto entry = counts.begin(); entry != counts.end();) {
    int64_t count = std::min(entry->second.count, other.of(entry->first));
    isLess |= count < entry->second.count;
    entry->second.count = count;
    entry = count || isOneSequence ? std::next(entry) : counts.erase(entry);
  }
  return isLess || isOneSequence != wasOne;
}

std::string TokenCounts::nameOf(const Sequence &sequence) const {
  if (sequence.first == 0)
    return "sequence " + std::to_string(sequence.second);
  Value name = counts.at(sequence).name;
  return (isSequences(name) ? "the first sequence of " : "sequence ") +
         contract::nameOf(name);
}

int64_t contract::rowsOf(ValueRange values) {
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      if (!type.isDynamicDim(0))
        return type.getDimSize(0);
  return ShapedType::kDynamic;
}

TokenCounts contract::countTokens(Value value, const Fact &fact, int64_t rows) {
  TokenCounts tokens = fact.tokens;
  tokens.setRows(rows);
  if (!tokens.empty() || !isSequences(value))
    return tokens;
  if (auto constant =
          dyn_cast_or_null<DenseIntElementsAttr>(fact.identity.constant)) {
    if (constant.isSplat())
      tokens.add({0, constant.getSplatValue<APInt>().getSExtValue()},
                 constant.size(), value);
    else
      for (const APInt &sequence : constant.getValues<APInt>())
        tokens.add({0, sequence.getSExtValue()}, 1, value);
  } else if (!fact.identity.constant && rows > 0) {
    // One token is of the sequence in the first row, whichever that is.
    tokens.add({fact.identity.number, 0}, 1, value);
  }
  return tokens;
}

TokenCounts contract::countTokens(Operation *op,
                                  llvm::function_ref<Fact(Value)> factOf) {
  TokenCounts tokens;
  if (op->getNumResults() != 1 || !isSequences(op->getResult(0)))
    return tokens;
  int64_t rows = rowsOf(op->getResult(0));
  auto addSplat = [&](Value element) {
    tokens.addScalar(factOf(element).identity, std::max<int64_t>(rows, 0),
                     element);
    tokens.isOneSequence = !tokens.empty();
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tensor::SplatOp op) {
        for (Value size : op.getDynamicSizes())
          if (auto known = dyn_cast_or_null<IntegerAttr>(
                  factOf(size).identity.constant))
            rows = known.getInt();
        addSplat(op.getInput());
      })
      .Case([&](linalg::FillOp op) { addSplat(op.getInputs().front()); })
      .Case([&](tensor::FromElementsOp op) {
        for (Value element : op.getElements())
          tokens.addScalar(factOf(element).identity, 1, element);
      })
      .Case([&](tensor::ConcatOp op) {
        tokens.isOneSequence = true;
        for (Value input : op.getInputs()) {
          TokenCounts more = countTokens(input, factOf(input), rowsOf(input));
          tokens.isOneSequence &= more.isOneSequence;
          tokens.add(more);
        }
        tokens.isOneSequence &= tokens.hasOne();
      });
  return tokens;
}
