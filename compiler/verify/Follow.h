// Follows a function as it runs, from its first op to its last: loops iteration
// by iteration, of each branch the one that runs. Bounds, conditions and layers are
// constants, or made of them; what a call of the function decides may hold no
// op of a step. Each op is judged by what is known where it stands.
#ifndef KVC_COMPILER_VERIFY_FOLLOW_H
#define KVC_COMPILER_VERIFY_FOLLOW_H

#include "dialect/KVC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <deque>
#include <map>

namespace kvc::contract {

// How the program names `value`: %name or %3.
std::string nameOf(mlir::Value value);

// Whether `op` takes or gives a cache, or may take positions.
bool isPartOfStep(mlir::Operation *op);

// The result of a kvc.positions. Lengths and sequences are numbered: what has one
// number is the same, and two ops may make the same positions.
struct Positions {
  PositionsOp op;
  unsigned lengths = 0, sequences = 0;
  bool operator==(const Positions &other) const {
    return lengths == other.lengths && sequences == other.sequences;
  }
};

// What went into rows.
struct Origin {
  // They were made at these. Of several, two are kept: one of these is wrong,
  // wherever the rows go.
  llvm::SmallVector<Positions, 2> positions = {};
  llvm::SmallSetVector<mlir::tensor::ConcatOp, 1> joins = {}; // along the width
  void add(const Origin &other);
};

// A layer of a cache: its group, and its number within that.
using Layer = std::pair<int64_t, int64_t>;

// A cache, whichever value it is by now.
struct Cache {
  struct Append {
    AppendOp op;
    unsigned sequences = 0;
  };
  mlir::Value newest;
  unsigned lengths = 0;                    // numbered
  std::map<Layer, Append> step = {};       // the open one's
  std::map<unsigned, int64_t> tokens = {}; // as many or more, by sequence
};

// What is known of a value.
struct Fact {
  unsigned number = 0;     // the same for values that are equal
  mlir::Value source = {}; // what made it
  mlir::Attribute constant = {};
  mlir::Value element = {}; // of a splat
  unsigned elementNumber = 0;
  std::optional<Positions> positions = {}; // it is these
  Origin origin = {};
  // Of a cache: who made a newer value of it, and the loops around this one.
  Cache *cache = nullptr;
  mlir::Operation *consumer = nullptr;
  int loops = 0;
};

class Follower {
public:
  explicit Follower(mlir::func::FuncOp function) : function(function) {}
  // Follows the function, which is one block. Fails after a diagnostic.
  llvm::LogicalResult follow();

private:
  // Follow.cpp
  Fact &factOf(mlir::Value value); // till the next one is asked for
  unsigned numberOf(mlir::Attribute constant);
  void setConstant(mlir::Value value, mlir::Attribute constant);
  std::optional<int64_t> integerOf(mlir::Value value);
  // What `op` hands on, as a loop or a terminator, is known of other values then.
  llvm::FailureOr<llvm::SmallVector<Fact>> take(mlir::Operation *op,
                                                mlir::ValueRange values);
  void bind(mlir::ValueRange values, llvm::ArrayRef<Fact> taken);
  llvm::LogicalResult count(mlir::Operation *op, int64_t more = 1);
  llvm::LogicalResult run(mlir::Block &block);
  llvm::LogicalResult run(mlir::Operation *op);
  llvm::LogicalResult runLoop(mlir::scf::ForOp loop);
  llvm::LogicalResult runBranch(mlir::scf::IfOp choice);
  llvm::LogicalResult runArithmetic(mlir::Operation *op);
  llvm::LogicalResult runOther(mlir::Operation *op);

  // Rows.cpp
  Origin originOf(mlir::Operation *op);
  llvm::LogicalResult checkMadeAt(mlir::Operation *op, llvm::StringRef what,
                                  mlir::Value rows, const Positions &positions);
  llvm::LogicalResult checkHeads(AppendOp op, llvm::StringRef what,
                                 mlir::Value rows, int64_t width);
  // Tokens of a sequence, as many or more, and its name; by its number.
  using TokenCounts = std::map<unsigned, std::pair<int64_t, std::string>>;
  llvm::FailureOr<TokenCounts> tokensOf(AppendOp op);
  llvm::LogicalResult checkCapacity(AppendOp op, const Cache &cache);

  // StepRules.cpp
  llvm::FailureOr<Cache *> read(mlir::Operation *op, mlir::Value value);
  llvm::FailureOr<Cache *> consume(mlir::Operation *op, mlir::Value value);
  void bind(mlir::Value value, Cache &cache);
  void endStep(Cache &cache, mlir::Value newer);
  llvm::LogicalResult checkBetweenSteps(mlir::Operation *op, mlir::Value value);
  llvm::LogicalResult reportForeign(mlir::Operation *op, mlir::Value source,
                                    Cache *cache);
  llvm::FailureOr<Positions> positionsFor(mlir::Operation *op, mlir::Value value,
                                          Cache *cache = nullptr);
  llvm::FailureOr<Positions> accessFor(mlir::Operation *op, mlir::Value cache,
                                       mlir::Value positions,
                                       mlir::Value sequences);
  llvm::FailureOr<int64_t> layerFor(mlir::Operation *op, mlir::Value layer,
                                    int64_t layers);
  template <typename Op> llvm::FailureOr<Layer> cacheLayerFor(Op op);
  llvm::LogicalResult checkWeightLayers(WeightUser user);
  llvm::LogicalResult positions(PositionsOp op);
  llvm::LogicalResult rotary(RotaryOp op);
  llvm::LogicalResult embed(EmbedOp op);
  llvm::LogicalResult append(AppendOp op);
  llvm::LogicalResult attend(AttendOp op);
  llvm::LogicalResult advance(AdvanceOp op);
  llvm::LogicalResult changeLengths(mlir::Operation *op);

  mlir::func::FuncOp function;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Value, Fact> facts;
  llvm::DenseMap<mlir::Attribute, unsigned> constants; // their numbers
  std::deque<Cache> caches;
  std::map<unsigned, PositionsOp> made;        // the latest, of lengths that hold
  llvm::DenseMap<unsigned, mlir::Value> ended; // lengths, and what changed them
  unsigned numbers = 0;
  int64_t ops = 0;
  int loops = 0; // around the op that is followed
};

} // namespace kvc::contract

#endif // KVC_COMPILER_VERIFY_FOLLOW_H
