#include "compiler/ModuleText.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace kvc;

// `loc` with the name that the definition has in the text, if that is no number.
static Location named(const AsmParserState::SMDefinition &definition,
                      Location loc) {
  StringRef text(definition.loc.Start.getPointer(),
                 definition.loc.End.getPointer() -
                     definition.loc.Start.getPointer());
  text.consume_front("%");
  if (text.empty() || llvm::isDigit(text.front()))
    return loc;
  return NameLoc::get(StringAttr::get(loc.getContext(), text), loc);
}

OwningOpRef<ModuleOp> kvc::parseText(const llvm::SourceMgr &sources,
                                     MLIRContext *context) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  AsmParserState definitions;
  if (failed(parseAsmSourceFile(sources, module->getBody(),
                                ParserConfig(context), &definitions)))
    return nullptr;
  for (const auto &op : definitions.getOpDefs())
    if (!op.resultGroups.empty())
      op.op->setLoc(
          named(op.resultGroups.front().definition, op.op->getLoc()));
  for (const auto &block : definitions.getBlockDefs())
    for (auto [argument, definition] :
         llvm::zip(block.block->getArguments(), block.arguments))
      argument.setLoc(named(definition, argument.getLoc()));
  // The parser puts the text's own module into ours.
  if (llvm::hasSingleElement(*module->getBody()))
    if (auto inner = dyn_cast<ModuleOp>(module->getBody()->front())) {
      inner->remove();
      return inner;
    }
  return module;
}

// The line of a text that `loc` leads to: of what was inlined, where it stood.
static FileLineColLoc findInText(Location loc) {
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return file;
  if (auto name = dyn_cast<NameLoc>(loc))
    return findInText(name.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return findInText(call.getCallee());
  return nullptr;
}

// Without the directory: debug information is the same wherever one compiles.
Location kvc::textLocation(Operation *op) {
  FileLineColLoc file = findInText(op->getLoc());
  if (!file)
    return UnknownLoc::get(op->getContext());
  return FileLineColLoc::get(op->getContext(),
                             llvm::sys::path::filename(file.getFilename()),
                             file.getLine(), file.getColumn());
}

StringRef kvc::textName(Value value) {
  Location loc = value.getLoc();
  while (auto call = dyn_cast<CallSiteLoc>(loc))
    loc = call.getCallee();
  auto name = dyn_cast<NameLoc>(loc);
  return name ? name.getName().getValue() : StringRef();
}
