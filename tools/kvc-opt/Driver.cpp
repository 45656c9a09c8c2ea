#include "tools/kvc-opt/Driver.h"
#include "tools/kvc-opt/TokenizerCheck.h"
#include "compiler/Passes.h"
#include "compiler/Pipelines.h"
#include "compiler/ReadMLIR.h"
#include "compiler/frontend/FileType.h"
#include "dialect/KVC.h"
#include "mlir/Debug/Counter.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace cl = llvm::cl;

cl::OptionCategory kvc::compilationOptions("kvc-opt options");

namespace {

constexpr StringLiteral overview =
    "kvc-opt MODEL -o DIR compiles a model to a library.\n"
    "kvc-opt FILE.mlir --<passes> is an ordinary mlir-opt.\n\n"
    "What MODEL is, its first bytes say: a GGUF file, a spec in JSON, MLIR; or it "
    "is a\nHugging Face directory. MLIR is compiled where an option below or -o "
    "DIR asks for\nit. A pass or another option of mlir-opt, no -o, -o - or -o "
    "FILE.mlir ask for an\nmlir-opt. Its options, --help-hidden lists; those "
    "called --mlir-* serve both.\n";

// The command line of compilation.
struct CommandLine {
  cl::OptionCategory &category = kvc::compilationOptions;
  cl::opt<std::string> model{cl::Positional, cl::init("-"),
      cl::desc("MODEL"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("path"), cl::cat(category),
      cl::desc("directory of the library, which holds one, or file of another "
               "stage (- or none: standard output)")};
  cl::opt<kvc::Stage> stage{"emit", cl::cat(category),
      cl::desc("the stage to stop at"), cl::init(kvc::Stage::Library),
      cl::values( // in the order of the enumeration
          clEnumValN(kvc::Stage::Spec, "spec", "what the front end read"),
          clEnumValN(kvc::Stage::KVC, "kvc", "the model in the kvc dialect"),
          clEnumValN(kvc::Stage::Fused, "fused", "fused, with packed weights"),
          clEnumValN(kvc::Stage::Linalg, "linalg", "the reference lowering"),
          clEnumValN(kvc::Stage::Kernels, "kernels", "loops over vectors"),
          clEnumValN(kvc::Stage::LLVM, "llvm", "the LLVM dialect"),
          clEnumValN(kvc::Stage::Asm, "asm", "assembly"),
          clEnumValN(kvc::Stage::GPU, "gpu", "launches and kernels of a CUDA device"),
          clEnumValN(kvc::Stage::PTX, "ptx", "these kernels' PTX"),
          clEnumValN(kvc::Stage::Library, "library",
                     "library, header and packed weights (default)"),
          clEnumValN(kvc::Stage::Reference, "reference",
                     "the same from the reference lowering"))};
  cl::opt<std::string> target{"target", cl::cat(category),
      cl::desc("cpu:native, cpu:x86-64-v3, cpu:x86-64-v4, cpu:x86-64-v4-vnni, "
               "cpu:x86-64-v4-bf16, cpu:x86-64-v4-amx, cuda:sm_80, cuda:sm_90, or for a "
               "library several with commas (default: v3, v4 and those whose "
               "instructions it has products for, chosen when it loads)")};
  cl::opt<std::string> cache{"cache", cl::value_desc("type,layout"),
      cl::desc("type of cached keys and values (f64, f32, f16, bf16), layout "
               "(contiguous, paged<16>, ...), ring for layers with a window (ring<64>: in "
               "slices of 64 tokens), or several"),
      cl::cat(category)};
  cl::opt<std::string> weights{"weights", cl::value_desc("type"),
      cl::desc("storage of matrices: f64, f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, "
               "q5_1 (default: as the file has them)"),
      cl::cat(category)};
  cl::opt<std::string> activations{"activations", cl::value_desc("type"),
      cl::desc("what is multiplied with matrices: q8, with those in blocks rounded to "
               "bytes, 32 at a time (default), bf16, also with those in bf16 rounded "
               "to it, or f32, exact"),
      cl::cat(category)};
  cl::opt<std::string> numerics{"numerics", cl::value_desc("class"),
      cl::init("fma"), cl::cat(category),
      cl::desc("how floats are multiplied: fma (default), or tiles, as machines "
               "with AMX do it fastest; each with bits of its own")};
  cl::opt<int64_t> capacity{"capacity", cl::value_desc("positions"),
      cl::desc("positions of a sequence at most (default: the model's context)"),
      cl::cat(category)};
  cl::opt<std::string> name{"name", cl::value_desc("name"), cl::cat(category),
      cl::desc("what files and symbols are called after (default: the model's "
               "own name, and the type that --weights gives)")};
  cl::opt<bool> allowNonfinite{"allow-nonfinite-weights", cl::cat(category),
      cl::desc("pack weights that are infinite or NaN")};

  // What an option changes: nothing before a stage, and maybe nothing of what
  // MLIR says already.
  struct Rule {
    const cl::Option &option;
    kvc::Stage first;
    bool forMLIR;
  };
  const Rule rules[8] = {{cache, kvc::Stage::KVC, false},
                         {weights, kvc::Stage::KVC, false},
                         {activations, kvc::Stage::KVC, false},
                         {numerics, kvc::Stage::KVC, false},
                         {capacity, kvc::Stage::KVC, false},
                         {target, kvc::Stage::Kernels, true},
                         {name, kvc::Stage::Spec, true},
                         {allowNonfinite, kvc::Stage::Library, true}};
};

int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

int fail(llvm::Error error) { return fail(llvm::toString(std::move(error))); }

// Registers MLIR's options: mlir-opt's own in a category, and those that serve a
// compilation, too.
void registerMLIROptions(cl::OptionCategory &mlirOpt, DialectRegistry &registry) {
  llvm::SmallPtrSet<cl::Option *, 32> before;
  for (auto &[name, option] : cl::getRegisteredOptions())
    before.insert(option);
  MlirOptMainConfig::registerCLOptions(registry);
  tracing::DebugCounter::registerCLOptions();
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (!before.contains(option))
      option->addCategory(mlirOpt);
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
}

// The first option on the command line of a category, or null. Where the model
// is and where the result goes is no option in this sense.
const cl::Option *firstGiven(const cl::OptionCategory &category) {
  const cl::Option *first = nullptr;
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (option->getNumOccurrences() && option->ArgStr != "o" &&
        llvm::is_contained(option->Categories, &category) &&
        (!first || option->getPosition() < first->getPosition()))
      first = option;
  return first;
}

std::string nameOf(const cl::Option &option) {
  return option.ArgStr.empty() ? "a pass" : ("--" + option.ArgStr).str();
}

// Reads --cache: "f16", "paged<16>", "f16,paged<16>", "ring,f16", "ring<64>". The
// type's name is checked where the arithmetic is known.
bool parseCache(StringRef text, kvc::BuildOptions &options) {
  SmallVector<StringRef> parts;
  text.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  bool hasLayout = false;
  for (StringRef part : parts) {
    bool paged = part.consume_front("paged<") && part.consume_back(">");
    bool ring = part.consume_front("ring<") && part.consume_back(">");
    if (part == "ring" || ring) {
      if (options.ringSlice)
        return false;
      options.ringSlice = kvc::kMaxTokens;
      if (ring && (part.getAsInteger(10, options.ringSlice) || options.ringSlice < 1))
        return false;
    } else if (paged || part == "contiguous") {
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

int compile(CommandLine &line, bool isMLIR, DialectRegistry &registry,
            llvm::function_ref<llvm::Error(kvc::CompileOptions &)> adjust) {
  kvc::CompileOptions options;
  options.model = line.model;
  options.isMLIR = isMLIR;
  options.output = line.output;
  options.stage = line.stage;
  std::string stage =
      "--emit=" + line.stage.getParser().getOption(unsigned(options.stage)).str();
  if (isMLIR && options.stage == kvc::Stage::Spec)
    return fail(stage + ": expected a model that a front end reads, but got " +
                options.model);
  for (const CommandLine::Rule &rule : line.rules) {
    if (!rule.option.getNumOccurrences())
      continue;
    if (isMLIR && !rule.forMLIR)
      return fail(nameOf(rule.option) + ": expected a model that a front end "
                  "reads, but got " + options.model + ", which says it itself");
    if (options.stage < rule.first)
      return fail(nameOf(rule.option) + ": expected a stage that it changes, but "
                  "got " + stage);
  }
  for (const cl::opt<std::string> *option :
       {&line.cache, &line.weights, &line.activations, &line.numerics, &line.target})
    if (option->getNumOccurrences() && option->empty())
      return fail(nameOf(*option) + ": expected a value, but got nothing");
  if (!parseCache(line.cache, options.build))
    return fail("--cache: expected a type, a layout (contiguous or paged<n>), "
                "ring or ring<n>, or several, but got '" + line.cache + "'");
  options.name = line.name;
  if (line.name.getNumOccurrences() && line.name.empty())
    return fail("--name: expected a C identifier, but got nothing");
  options.build.weightType = line.weights;
  options.build.activations = line.activations;
  options.build.numerics = line.numerics;
  options.build.capacity = line.capacity;
  options.allowNonfiniteWeights = line.allowNonfinite;
  if (line.capacity.getNumOccurrences() && line.capacity < 1)
    return fail("--capacity: expected a positive number, but got " +
                llvm::Twine(line.capacity));
  auto targets = kvc::parseTargets(line.target);
  if (!targets)
    return fail(targets.takeError());
  options.targets = *targets;
  bool isOfDevice =
      options.stage == kvc::Stage::GPU || options.stage == kvc::Stage::PTX;
  size_t named = (options.targets.isForAnyMachine ? 0 : options.targets.cpus.size()) +
                 options.targets.devices.size();
  size_t fitting = isOfDevice ? options.targets.devices.size()
                              : named - options.targets.devices.size();
  if (options.stage != kvc::Stage::Library && (named > 1 || named != fitting))
    return fail("--target: expected one target for " + stage + ", but got '" +
                line.target + "'");

  DefaultTimingManager timing;
  applyDefaultTimingManagerCLOptions(timing);
  TimingScope scope = timing.getRootScope();
  auto configure = [&](PassManager &pm) {
    pm.enableTiming(scope);
    return applyPassManagerCLOptions(pm);
  };
  options.configure = configure;
  if (adjust)
    if (llvm::Error error = adjust(options))
      return fail(std::move(error));

  MLIRContext context(registry);
  // Printing IR between passes needs one thread.
  context.disableMultithreading();
  context.loadAllAvailableDialects();
  // Prints the line of an .mlir file that a diagnostic is about.
  llvm::SourceMgr sources;
  std::optional<SourceMgrDiagnosticHandler> handler;
  if (isMLIR)
    handler.emplace(sources, &context);
  LogicalResult result = kvc::compile(context, options);
  if (succeeded(result) && (options.stage == kvc::Stage::Library ||
                            options.stage == kvc::Stage::Reference))
    checkTokenizer(options.model, options.output);
  return asMainReturnCode(result);
}

int runPasses(int argc, char **argv, const CommandLine &line,
              DialectRegistry &registry) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, "-", "-", registry));
  auto input = kvc::readMLIR(line.model);
  if (!input)
    return fail(input.takeError());
  if (llvm::Error error = kvc::checkNoModel(line.output))
    return fail(std::move(error));
  std::string message;
  auto output = openOutputFile(line.output.empty() ? "-" : line.output.c_str(), &message);
  if (!output)
    return fail(message);
  if (failed(MlirOptMain(output->os(), std::move(*input), registry, config)))
    return 1;
  output->keep();
  return 0;
}

} // namespace

int kvc::runDriver(int argc, char **argv, DialectRegistry &registry,
                   llvm::function_ref<llvm::Error(CompileOptions &)> adjust) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registry.insert<KVCDialect>();
  registerAllPasses();
  registerKVCPasses();
  registerReferencePipelines();

  CommandLine line;
  cl::OptionCategory mlirOpt("mlir-opt options");
  registerMLIROptions(mlirOpt, registry);
  // --help shows the options of compilation, --help-hidden all.
  const cl::OptionCategory *generic =
      cl::getRegisteredOptions()["help"]->Categories.front();
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (!llvm::is_contained(option->Categories, &line.category) &&
        !llvm::is_contained(option->Categories, generic))
      option->setHiddenFlag(cl::Hidden);
  cl::SetVersionPrinter([](raw_ostream &os) {
    os << kCompilerVersion << "\nLLVM " << LLVM_VERSION_STRING << "\n";
  });
  if (argc == 1) {
    llvm::errs() << overview << "kvc-opt --help lists the options.\n";
    return 1;
  }
  cl::ParseCommandLineOptions(argc, argv, overview);

  const cl::Option *compilation = firstGiven(line.category);
  const cl::Option *passes = firstGiven(mlirOpt);
  if (compilation && passes)
    return fail(nameOf(*compilation) + ": expected no option of mlir-opt beside "
                "it, but got " + nameOf(*passes));
  bool isMLIR = line.model == "-";
  if (!isMLIR) {
    auto type = fileTypeAt(line.model);
    if (!type)
      return fail(type.takeError());
    isMLIR = type->kind == FileKind::MLIR;
    if (passes && !isMLIR)
      return fail(line.model + ": expected MLIR for " + nameOf(*passes) +
                  ", but got " + type->name);
  }
  StringRef output = line.output;
  bool isText = output.empty() || output == "-" || output.ends_with(".mlir") ||
                output.ends_with(".mlirbc");
  if (compilation || (!passes && !(isMLIR && isText)))
    return ::compile(line, isMLIR, registry, adjust);
  return runPasses(argc, argv, line, registry);
}
