// What is known of a value while a program is followed, and the rules of a
// step: positions, one append to each layer, reads, one advance.
#ifndef KVC_COMPILER_VERIFY_STEPSTATE_H
#define KVC_COMPILER_VERIFY_STEPSTATE_H

#include "dialect/KVC.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <map>

namespace kvc::contract {

class Calls;

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
  // Whether all tokens are of the one sequence that it has: their number is that
  // of the rows, wherever that comes to be known.
  bool isOneSequence = false;

  void add(const Sequence &sequence, int64_t count, mlir::Value name);
  // The sequence that a scalar holds.
  void addScalar(const Identity &scalar, int64_t count, mlir::Value name);
  void add(const TokenCounts &other);
  void setRows(int64_t rows);
  // Leaves what holds for `other` as well, and says whether that is less.
  bool keepCommon(const TokenCounts &other);
  void clear() { *this = {}; }

  bool empty() const { return counts.empty(); }
  bool hasOne() const { return counts.size() == 1; }
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
  mlir::Operation *branch = nullptr; // the scf.if that appends in one branch only
  bool isLike(const Mark &other) const {
    return sequences == other.sequences && !branch == !other.branch;
  }
};

// A cache value. `lengths` numbers the lengths it has: two values with the same
// number have the same lengths.
struct CacheState {
  unsigned lengths = 0;
  std::map<int64_t, Mark> marks; // by layer
  TokenCounts atLeast;           // positions that sequences have
};

// The result of a kvc.positions; two ops may make the same positions.
struct StepPositions {
  PositionsOp op;
  unsigned lengths = 0;
  Identity sequences;
  bool operator==(const StepPositions &other) const {
    return lengths == other.lengths && sequences == other.sequences;
  }
};

// What went into a value.
struct Origin {
  std::vector<StepPositions> positions = {};      // it was made at these
  std::vector<mlir::tensor::ConcatOp> joins = {}; // along the width
  bool isOfPositions = false;                     // by no op of kvc
  void add(const Origin &other);
};

struct Fact {
  Identity identity;
  std::optional<CacheState> cache = {};
  std::optional<StepPositions> positions = {}; // it is these
  Origin origin = {};
  TokenCounts tokens = {}; // what is known of a tensor of sequences
};

// What went into the results of an op that has no rule of its own.
Origin originOf(mlir::Operation *op, Calls &calls,
                llvm::function_ref<Fact(mlir::Value)> factOf);

// Keys and values are whole heads. Tokens are rows: what is joined along the
// width must be heads, else old and new keys stand beside each other.
mlir::LogicalResult checkHeads(AppendOp op, const Fact &keys,
                               const Fact &values);

// The number of rows that the values have, as far as one of their types says it.
int64_t rowsOf(mlir::ValueRange values);
// The tokens of a tensor of sequences, by what is known of it, with its number
// of rows where that is known.
TokenCounts countTokens(mlir::Value sequences, const Fact &fact, int64_t rows);
// The tokens of what `op` gives, if it makes a tensor of sequences.
TokenCounts countTokens(mlir::Operation *op,
                        llvm::function_ref<Fact(mlir::Value)> factOf);

// What is known of the operands of an append or an attend; rows are the keys and
// values, or the queries.
struct Access {
  Fact cache, layer, positions, sequences;
  std::vector<Fact> rows;
};

// Checks the ops of a step one by one, in the order in which they run.
class StepRules {
public:
  unsigned newNumber() { return ++numbers; }
  CacheState newCache() { return {newNumber(), {}, {}}; }

  // Each takes what is known of the operands and gives what is known of the
  // result, or fails with a diagnostic.
  mlir::FailureOr<Fact> append(AppendOp op, const Access &access);
  mlir::FailureOr<Fact> attend(AttendOp op, const Access &access);
  mlir::FailureOr<Fact> advance(AdvanceOp op, const Fact &cache,
                                const Fact &sequences);
  // truncate, fork, reorder
  mlir::FailureOr<Fact> changeLengths(mlir::Operation *op, const Fact &cache);
  mlir::FailureOr<Fact> rotary(RotaryOp op, const Fact &input,
                               const Fact &positions);
  mlir::FailureOr<Fact> embed(EmbedOp op, const Fact &ids);
  // Lengths may change, and a cache leave the program, between two steps only.
  mlir::LogicalResult checkBetweenSteps(mlir::Operation *op, mlir::Value cache,
                                        const Fact &fact);

  // From here on `newer` is the cache, and positions made of these lengths are
  // stale.
  void end(unsigned lengths, mlir::Value newer);
  // Lengths that were ended since there were `count` of them, which is undone:
  // another branch didn't end them.
  using Ends = std::vector<std::pair<unsigned, mlir::Value>>;
  size_t countEnds() const { return ends.size(); }
  Ends takeEnds(size_t count);

private:
  mlir::LogicalResult checkPositions(mlir::Operation *op,
                                     const Fact &positions);
  mlir::LogicalResult checkMadeAt(mlir::Operation *op, llvm::StringRef what,
                                  const Fact &rows,
                                  const StepPositions &positions);
  mlir::FailureOr<int64_t> checkAccess(mlir::Operation *op,
                                       mlir::TypedValue<CacheType> cache,
                                       const Access &access);
  mlir::LogicalResult checkCapacity(AppendOp op, const CacheState &cache,
                                    const Fact &sequences);

  unsigned numbers = 0;
  llvm::DenseMap<unsigned, mlir::Value> newest; // by ended lengths
  Ends ends; // in their order, each with what stood in `newest` before
};

} // namespace kvc::contract

#endif // KVC_COMPILER_VERIFY_STEPSTATE_H
