// kvc-opt: compiles a model, or runs passes on .mlir as any mlir-opt does.
#include "TokenizerCheck.h"
#include "compiler/Compile.h"
#include "compiler/Pipelines.h"
#include "compiler/Passes.h"
#include "dialect/KVC.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "test/lib/ForgettingLayout.h"
#include "test/lib/RestartPositions.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace {

// The command line of compilation: kvc-opt MODEL -o DIR.
struct CommandLine {
  cl::OptionCategory category{"kvc-opt options"};
  cl::opt<std::string> model{cl::Positional, cl::Required,
      cl::desc("MODEL: a Hugging Face directory, .gguf, .json (spec) or .mlir"),
      cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("path"), cl::cat(category),
      cl::desc("directory of the library, or file of another stage (- or none: "
               "standard output)")};
  cl::opt<kvc::Stage> stage{"emit", cl::cat(category),
      cl::desc("the stage to stop at"), cl::init(kvc::Stage::Library),
      cl::values(
          clEnumValN(kvc::Stage::Spec, "spec", "what the front end read"),
          clEnumValN(kvc::Stage::KVC, "kvc", "the model in the kvc dialect"),
          clEnumValN(kvc::Stage::Fused, "fused", "fused, with packed weights"),
          clEnumValN(kvc::Stage::Linalg, "linalg", "the reference lowering"),
          clEnumValN(kvc::Stage::LLVM, "llvm", "the LLVM dialect"),
          clEnumValN(kvc::Stage::Asm, "asm", "assembly"),
          clEnumValN(kvc::Stage::Library, "library",
                     "library, header and packed weights (default)"),
          clEnumValN(kvc::Stage::Reference, "reference",
                     "the same from the reference lowering"))};
  cl::opt<std::string> target{"target", cl::cat(category),
      cl::init(kvc::kDefaultTargets.str()),
      cl::desc("cpu:native, cpu:x86-64-v3, cpu:x86-64-v4, or several with "
               "commas (default: v3 and v4, chosen when the library loads)")};
  cl::opt<std::string> cache{"cache", cl::value_desc("type,layout"),
      cl::desc("type of cached keys and values (f64, f32, f16, bf16), layout "
               "(contiguous, paged<16>, ...), or both"),
      cl::cat(category)};
  cl::opt<std::string> weights{"weights", cl::value_desc("type"),
      cl::desc("type of packed matrices: f64, f32, f16, bf16"),
      cl::cat(category)};
  cl::opt<int64_t> capacity{"capacity", cl::value_desc("positions"),
      cl::desc("positions of a sequence at most (default: the model's context)"),
      cl::cat(category)};
  cl::opt<bool> skipCacheContract{"test-skip-cache-contract", cl::Hidden,
      cl::desc("compile what kvc-verify-cache-contract rejects"), cl::cat(category)};
  cl::opt<int> numericsVersion{"test-numerics-version", cl::Hidden,
      cl::desc("another version in the model's identity"),
      cl::init(kvc::kNumericsVersion), cl::cat(category)};
  cl::opt<std::string> tile{"test-tile", cl::Hidden, cl::cat(category),
      cl::desc("ROWSxPANELS: register tile of matrix products, for all targets")};
};

// A model; or .mlir with an option that only compilation has, or with none but
// -o DIR. Everything else is mlir-opt's.
bool isCompilation(int argc, char **argv) {
  bool compiles = false, passes = false, mlir = false;
  StringRef output;
  for (int i = 1; i != argc; ++i) {
    StringRef argument = argv[i];
    StringRef name = argument.ltrim('-').split('=').first;
    if (!argument.starts_with("-")) {
      mlir |= argument.ends_with(".mlir");
      compiles |= !argument.ends_with(".mlir") &&
                  !argument.ends_with(".mlirbc") &&
                  (llvm::sys::fs::is_directory(argument) ||
                   argument.ends_with(".gguf") || argument.ends_with(".json"));
      continue;
    }
    if (name == "help")
      return argc == 2;
    // The value of -o is no model.
    if (name == "o")
      output = argument.contains('=') ? argument.split('=').second
               : i + 1 != argc        ? StringRef(argv[++i])
                                      : StringRef();
    else if (name == "emit" || name == "target" || name == "cache" ||
             name == "weights" || name == "capacity")
      compiles = true;
    else
      passes = true;
  }
  return compiles || (mlir && !passes && !output.empty() && output != "-" &&
                      !output.ends_with(".mlir"));
}

// Reads --cache: "f16", "paged<16>" or "f16,paged<16>". The type's name is
// checked where the arithmetic is known.
bool parseCache(StringRef text, kvc::BuildOptions &options) {
  SmallVector<StringRef> parts;
  text.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  bool hasLayout = false;
  for (StringRef part : parts) {
    bool paged = part.consume_front("paged<") && part.consume_back(">");
    if (paged || part == "contiguous") {
      if (hasLayout || (paged && (part.getAsInteger(10, options.pagePositions) ||
                                  options.pagePositions < 1)))
        return false;
      hasLayout = true;
    } else if (options.cacheType.empty()) {
      options.cacheType = part.str();
    } else {
      return false;
    }
  }
  return true;
}

int compileMain(int argc, char **argv, DialectRegistry &registry) {
  CommandLine commandLine;
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  cl::HideUnrelatedOptions(commandLine.category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "kvc-opt MODEL -o DIR compiles a model to a library.\n"
      "kvc-opt FILE.mlir --<passes> is an ordinary mlir-opt (see mlir-opt "
      "--help); passes are named kvc-*.\n");
  auto fail = [](const llvm::Twine &message) {
    llvm::errs() << "error: " << message << "\n";
    return 1;
  };

  kvc::CompileOptions options;
  options.model = commandLine.model;
  options.output = commandLine.output;
  options.stage = commandLine.stage;
  if (!parseCache(commandLine.cache, options.build))
    return fail("--cache: expected a type, a layout (contiguous or paged<n>) or "
                "both, but got '" + commandLine.cache + "'");
  options.build.weightType = commandLine.weights;
  options.build.capacity = commandLine.capacity;
  options.skipCacheContract = commandLine.skipCacheContract;
  options.numericsVersion = commandLine.numericsVersion;
  options.configure = applyPassManagerCLOptions;
  if (commandLine.capacity.getNumOccurrences() && commandLine.capacity < 1)
    return fail("--capacity: expected a positive number, but got " +
                llvm::Twine(commandLine.capacity));
  bool library = options.stage == kvc::Stage::Library ||
                 options.stage == kvc::Stage::Reference;
  if (library && (options.output.empty() || options.output == "-"))
    return fail("-o: expected the directory for the library");
  auto targets = kvc::parseTargets(commandLine.target);
  if (!targets)
    return fail(llvm::toString(targets.takeError()));
  options.targets = *targets;
  if (!commandLine.tile.empty()) {
    kvc::TileShape tile;
    auto [rows, panels] = StringRef(commandLine.tile).split('x');
    if (rows.getAsInteger(10, tile.rows) || tile.rows < 1 ||
        panels.getAsInteger(10, tile.panels) || tile.panels < 1)
      return fail("--test-tile: expected ROWSxPANELS, but got " +
                  commandLine.tile);
    for (kvc::TargetDescription &target : options.targets)
      target.tile = tile;
  }

  MLIRContext context(registry);
  // Printing IR between passes needs one thread.
  context.disableMultithreading();
  context.loadAllAvailableDialects();
  // Prints the line of an .mlir file that a diagnostic is about.
  llvm::SourceMgr sources;
  std::optional<SourceMgrDiagnosticHandler> handler;
  if (StringRef(options.model).ends_with(".mlir"))
    handler.emplace(sources, &context);
  LogicalResult result = kvc::compile(context, options);
  if (succeeded(result) && library)
    checkTokenizer(options.model, options.output);
  return asMainReturnCode(result);
}

} // namespace

int main(int argc, char **argv) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registry.insert<kvc::KVCDialect>();
  kvc::test::registerForgettingLayout(registry);
  if (isCompilation(argc, argv))
    return compileMain(argc, argv, registry);

  registerAllPasses();
  kvc::registerKVCPasses();
  kvc::registerReferencePipelines();
  kvc::test::registerRestartPositions();
  return asMainReturnCode(
      MlirOptMain(argc, argv, "kvc's mlir-opt\n", registry));
}
