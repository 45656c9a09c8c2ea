// What is known of a value while a program is followed, and the rules of a
// step: positions, one append to each layer, reads, one advance.
#ifndef KVC_COMPILER_PASSES_CONTRACT_STEPSTATE_H
#define KVC_COMPILER_PASSES_CONTRACT_STEPSTATE_H

#include "dialect/KVC.h"
#include <map>

namespace kvc::contract {

// Which value it is: a constant, or the `number`-th that nothing is known of.
struct Identity {
  unsigned number = 0;
  mlir::Attribute constant;
  bool operator==(const Identity &other) const {
    return number == other.number && constant == other.constant;
  }
};

// A sequence: constant `second` if `first` is 0; else what value number `first`
// holds, in its first row if that is a tensor.
using Sequence = std::pair<unsigned, int64_t>;

// Tokens of sequences: as many as it says, or more. Two of the sequences may be
// one.
class TokenCounts {
public:
  void add(const Sequence &sequence, int64_t count, mlir::Value name);
  // The sequence that a scalar holds.
  void addScalar(const Identity &scalar, int64_t count, mlir::Value name);
  void add(const TokenCounts &other);
  // Leaves what holds for `other` as well.
  void keepCommon(const TokenCounts &other);
  void clear() { counts.clear(); }

  bool empty() const { return counts.empty(); }
  int64_t of(const Sequence &sequence) const {
    auto found = counts.find(sequence);
    return found == counts.end() ? 0 : found->second.count;
  }
  // "sequence 0", "sequence %a" or "the first sequence of %s"
  std::string nameOf(const Sequence &sequence) const;
  auto begin() const { return counts.begin(); }
  auto end() const { return counts.end(); }

private:
  struct Tokens {
    int64_t count = 0;
    mlir::Value name; // what holds the sequence
  };
  std::map<Sequence, Tokens> counts;
};

// An append to a layer in the step that is open.
struct Mark {
  AppendOp op;
  Identity sequences;
  bool isInOneBranch = false; // a branch appended, another did not
};

// A cache value. `lengths` numbers the lengths it has: two values with the same
// number have the same lengths.
struct CacheState {
  unsigned lengths = 0;
  std::vector<std::optional<Mark>> layers;
  TokenCounts atLeast; // positions that sequences have
};

// The result of a kvc.positions.
struct StepPositions {
  PositionsOp op;
  unsigned lengths = 0;
  Identity sequences;
};

struct Fact {
  Identity identity;
  std::optional<CacheState> cache;
  std::optional<StepPositions> positions;
  TokenCounts tokens = {}; // what is known of a tensor of sequences
};

// The tokens of a tensor of sequences, by what is known of it and by its type.
TokenCounts countTokens(mlir::Value sequences, const Fact &fact);
// The tokens of what `op` gives, if it makes a tensor of sequences.
TokenCounts countTokens(mlir::Operation *op,
                        llvm::function_ref<Fact(mlir::Value)> factOf);

// Checks the ops of a step one by one, in the order in which they run.
class StepRules {
public:
  unsigned newNumber() { return ++numbers; }
  CacheState newCache(CacheType type);

  // Each takes what is known of the operands and gives what is known of the
  // result, or fails with a diagnostic.
  mlir::FailureOr<Fact> append(AppendOp op, const Fact &cache, const Fact &layer,
                               const Fact &positions, const Fact &sequences);
  mlir::LogicalResult attend(AttendOp op, const Fact &cache, const Fact &layer,
                             const Fact &positions, const Fact &sequences);
  mlir::FailureOr<Fact> advance(AdvanceOp op, const Fact &cache,
                                const Fact &sequences);
  // truncate, fork, reorder
  mlir::FailureOr<Fact> changeLengths(mlir::Operation *op, const Fact &cache);
  mlir::LogicalResult embed(EmbedOp op, const Fact &positions);
  mlir::LogicalResult checkPositions(mlir::Operation *op, const Fact &positions);
  // Lengths may change, and a cache leave the program, between two steps only.
  mlir::LogicalResult checkBetweenSteps(mlir::Operation *op, mlir::Value cache,
                                        const Fact &fact);

  // The op that ended lengths, by their number: positions made of them are
  // stale from then on.
  llvm::DenseMap<unsigned, mlir::Operation *> endedBy;

private:
  mlir::FailureOr<int64_t> checkAccess(mlir::Operation *op, mlir::Value cache,
                                       const Fact &cacheFact, const Fact &layer,
                                       const Fact &positions,
                                       const Fact &sequences);
  mlir::LogicalResult checkCapacity(AppendOp op, const CacheState &cache,
                                    const Fact &sequences);

  unsigned numbers = 0;
};

} // namespace kvc::contract

#endif // KVC_COMPILER_PASSES_CONTRACT_STEPSTATE_H
