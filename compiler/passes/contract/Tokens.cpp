// How many tokens of which sequence a step has, as far as it is known.
#include "compiler/passes/contract/Contract.h"
#include "compiler/passes/contract/StepState.h"
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

void TokenCounts::keepCommon(const TokenCounts &other) {
  for (auto entry = counts.begin(); entry != counts.end();) {
    int64_t count = std::min(entry->second.count, other.of(entry->first));
    entry->second.count = count;
    entry = count ? std::next(entry) : counts.erase(entry);
  }
}

std::string TokenCounts::nameOf(const Sequence &sequence) const {
  if (sequence.first == 0)
    return "sequence " + std::to_string(sequence.second);
  Value name = counts.at(sequence).name;
  return (isSequences(name) ? "the first sequence of " : "sequence ") +
         contract::nameOf(name);
}

TokenCounts contract::countTokens(Value value, const Fact &fact) {
  TokenCounts tokens = fact.tokens;
  if (!tokens.empty() || !isSequences(value))
    return tokens;
  int64_t rows = cast<RankedTensorType>(value.getType()).getDimSize(0);
  if (auto constant =
          dyn_cast_or_null<DenseIntElementsAttr>(fact.identity.constant)) {
    if (constant.isSplat())
      tokens.add({0, constant.getSplatValue<APInt>().getSExtValue()}, rows,
                 value);
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
  auto addSplat = [&](Value element, int64_t rows) {
    if (rows > 0) // else a size that isn't known
      tokens.addScalar(factOf(element).identity, rows, element);
  };
  int64_t rows =
      cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(0);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tensor::CastOp op) {
        tokens = countTokens(op.getSource(), factOf(op.getSource()));
      })
      .Case([&](tensor::SplatOp op) {
        for (Value size : op.getDynamicSizes())
          if (auto known = dyn_cast_or_null<IntegerAttr>(
                  factOf(size).identity.constant))
            rows = known.getInt();
        addSplat(op.getInput(), rows);
      })
      .Case([&](linalg::FillOp op) { addSplat(op.getInputs().front(), rows); })
      .Case([&](tensor::FromElementsOp op) {
        for (Value element : op.getElements())
          tokens.addScalar(factOf(element).identity, 1, element);
      })
      .Case([&](tensor::ConcatOp op) {
        for (Value input : op.getInputs())
          tokens.add(countTokens(input, factOf(input)));
      });
  return tokens;
}
