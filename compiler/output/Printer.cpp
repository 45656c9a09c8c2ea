#include "compiler/output/Printer.h"
#include "dialect/KVC.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AsmState.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

using namespace mlir;
using namespace kvc;

// Whether `index` chooses a layer: as it is, in a sum, or in a function called
// with it.
static bool choosesLayer(Value index) {
  SmallVector<Value> worklist{index};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<WeightUser, AppendOp, AttendOp>(user))
        return true; // their only operand of type index
      if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(user))
        worklist.push_back(user->getResult(0));
      if (auto call = dyn_cast<func::CallOp>(user))
        if (auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                call, call.getCalleeAttr()))
          if (!callee.isExternal())
            worklist.push_back(callee.getArgument(use.getOperandNumber()));
    }
  }
  return false;
}

// What a reader of the line would ask, or nothing.
static std::string comment(Operation *op) {
  auto heads = [](Value rows, int64_t width) {
    int64_t all = cast<RankedTensorType>(rows.getType()).getDimSize(1);
    return ("[tokens, " + Twine(all / width) + " heads x " + Twine(width) + "]")
        .str();
  };
  return TypeSwitch<Operation *, std::string>(op)
      .Case([](ModuleOp) { return "one row a token; a step is a ragged batch"; })
      .Case([](func::FuncOp f) {
        return f.isPrivate() ? "one kind of layer" : "one step of decoding";
      })
      .Case([](WeightOp w) {
        std::string text = w.isStacked() ? "[layers, " : "[";
        text += w.getLayerShape().size() == 2 ? "outputs, inputs]" : "width]";
        return text;
      })
      .Case([](StackOp) { return "layers that the file stores in several ways"; })
      .Case([](scf::ForOp loop) {
        return choosesLayer(loop.getInductionVar()) ? "over the layers" : "";
      })
      .Case([](scf::ParallelOp kernel) -> std::string {
        auto named = dyn_cast<NameLoc>(kernel.getLoc());
        return named ? named.getName().str() + ": tasks in any order" : "";
      })
      .Case([](PositionsOp) { return "[tokens]: length + index in the chunk"; })
      .Case([](EmbedOp) { return "[tokens, width]"; })
      .Case([&](RotaryOp r) { return heads(r.getInput(), r.getHeadDim()); })
      .Case([](AppendOp) { return "the chunk joins the cache"; })
      .Case([&](AttendOp a) {
        std::string text =
            heads(a.getQueries(), a.getCacheGroup().keyWidth) +
            ": keys at positions <= the query's";
        if (a.getWindow())
          text += ", the last " + std::to_string(*a.getWindow());
        return text;
      })
      .Case([](AdvanceOp) { return "lengths grow by the step"; })
      .Case([](TogetherOp) { return "in any order: one parallel region"; })
      .Case([](SelectOp) { return "the rows whose logits are wanted"; })
      .Case([](func::ReturnOp r) {
        return r.getNumOperands() == 0 ||
                       cast<func::FuncOp>(r->getParentOp()).isPrivate()
                   ? ""
                   : "[outputs, vocabulary], the next cache";
      })
      .Default([](Operation *) { return ""; });
}

void kvc::printAnnotated(ModuleOp module, raw_ostream &os) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  AsmState::LocationMap locations; // lines counted from 1
  AsmState state(module, OpPrintingFlags().printNameLocAsPrefix(), &locations);
  module->print(stream, state);

  std::map<unsigned, std::string> comments;
  for (auto [op, at] : locations)
    if (std::string note = comment(op); !note.empty())
      comments[at.first] = note;
  unsigned number = 1;
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  for (StringRef line : lines) {
    os << line;
    if (auto note = comments.find(number); note != comments.end())
      os << "  // " << note->second;
    if (number++ != lines.size() || !line.empty())
      os << '\n';
  }
}
