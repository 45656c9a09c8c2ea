#include "compiler/Compile.h"
#include "compiler/ForwardSignature.h"
#include "compiler/ModuleText.h"
#include "compiler/Pipelines.h"
#include "compiler/ReadMLIR.h"
#include "compiler/output/Printer.h"
#include "compiler/output/Library.h"
#include "compiler/cpu/Object.h"
#include "compiler/cuda/Ptx.h"
#include "compiler/output/StagedDirectory.h"
#include "compiler/output/TokenizerFiles.h"
#include "compiler/frontend/Files.h"
#include "compiler/frontend/FileType.h"
#include "compiler/frontend/ModelSpec.h"
#include "compiler/fuse/Packing.h"
#include "compiler/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include <filesystem>

using namespace mlir;
using namespace kvc;

namespace {

// Names that the runtime's files and symbols have.
bool isRuntimeName(StringRef name) {
  return name == "kvc" || name.starts_with("kvc_");
}

class Compilation {
public:
  Compilation(MLIRContext &context, const CompileOptions &options)
      : context(context), options(options) {}
  LogicalResult run();

private:
  LogicalResult fail(llvm::Error error) {
    llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
    return failure();
  }
  LogicalResult fail(const llvm::Twine &message) {
    return fail(
        llvm::createStringError(llvm::inconvertibleErrorCode(), message));
  }
  std::string nameFor(const std::string &name);
  // The module as a front end builds it, or as an .mlir file says it.
  LogicalResult load();
  LogicalResult runPasses(ModuleOp target,
                          llvm::function_ref<void(OpPassManager &)> build);
  void identify();
  LogicalResult describe();
  std::string entryOf(StringRef level);
  // Machine code of a module of the LLVM dialect.
  FailureOr<llvm::SmallVector<char, 0>> translate(ModuleOp lowered, StringRef entry,
                                                  const TargetDescription &target,
                                                  bool assembly);
  // One level's code of a copy of `module`, which is in the fused form.
  FailureOr<LevelCode> compileLevel(const TargetDescription &target,
                                         bool assembly);
  // One device's code of such a copy, or its launches and kernels as text.
  FailureOr<DeviceCode> compileDevice(const DeviceTarget &target);
  LogicalResult emitDevice(const DeviceTarget &target);
  // Where the module's weights are, if that depends on who asks.
  std::optional<std::string> relativeWeights();
  void setWeights(llvm::StringRef path);
  LogicalResult writeText(llvm::function_ref<void(llvm::raw_ostream &)> write);
  // The module as text, after these passes.
  LogicalResult emitText(llvm::function_ref<void(OpPassManager &)> build = {});
  void reportWeights();
  void reportNumerics();
  LogicalResult emitLibrary();
  // Those of the options; of the default ones, those that make a difference to the
  // module's products.
  std::vector<TargetDescription> targetsOfModule();

  MLIRContext &context;
  const CompileOptions &options;
  OwningOpRef<ModuleOp> module;
  LibraryDescription library;
  std::string architecture; // canonical text, for the identity
};

} // namespace

// The name of a model that its file calls `name`. The system's libraries have
// the shortest names (c, m, dl, rt); a rule without a look at the machine, since
// the name is part of the identity.
std::string Compilation::nameFor(const std::string &name) {
  if (!options.name.empty())
    return options.name;
  return (isRuntimeName(name) || name.size() < 3 ? "model_" : "") + name +
         (options.build.weightType.empty() ? "" : "_") +
         options.build.weightType;
}

LogicalResult Compilation::load() {
  if (options.isMLIR) {
    auto text = readMLIR(options.model);
    if (!text)
      return fail(text.takeError());
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(std::move(*text), llvm::SMLoc());
    module = parseText(sources, &context);
    if (!module)
      return failure();
    // The file says where its weights are from where it stands itself.
    if (std::optional<std::string> weights = relativeWeights())
      setWeights((std::filesystem::path(options.model).parent_path() / *weights)
                     .string());
    if (auto name = module->getSymName(); name || !options.name.empty())
      module->setSymName(nameFor(name.value_or("").str()));
    return success();
  }
  llvm::Expected<ModelSpec> spec = readModel(options.model);
  if (!spec)
    return fail(spec.takeError());
  spec->name = nameFor(spec->name);
  if (options.stage == Stage::Spec)
    return writeText([&](llvm::raw_ostream &os) { print(*spec, os); });
  auto built = buildModule(&context, *spec, options.build);
  if (!built)
    return fail(built.takeError());
  // What follows leads back to the lines of `--emit=kvc`.
  std::string text;
  llvm::raw_string_ostream stream(text);
  printAnnotated(**built, stream);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(text, spec->name + ".mlir"),
      llvm::SMLoc());
  module = parseText(sources, &context);
  return success(bool(module));
}

std::optional<std::string> Compilation::relativeWeights() {
  auto weights = module ? (*module)->getAttrOfType<StringAttr>(kWeightsAttr)
                        : StringAttr();
  if (!weights || weights.getValue().starts_with("random:") ||
      llvm::sys::path::is_absolute(weights.getValue()))
    return std::nullopt;
  return weights.str();
}

void Compilation::setWeights(llvm::StringRef path) {
  (*module)->setAttr(kWeightsAttr, StringAttr::get(&context, path));
}

LogicalResult
Compilation::runPasses(ModuleOp target,
                       llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(&context);
  if (options.configure && failed(options.configure(pm)))
    return failure();
  build(pm);
  return pm.run(target);
}

// The identity's text: of the model as it is written, and without where its
// weights come from, which is not what it is.
void Compilation::identify() {
  llvm::raw_string_ostream os(architecture);
  OwningOpRef<ModuleOp> copy(module->clone());
  (*copy)->removeAttr(kWeightsAttr);
  copy->print(os);
}

// What the library will say of itself, from the verified module.
LogicalResult Compilation::describe() {
  func::FuncOp forward = lookupForward(*module);
  auto named = module->getSymName();
  if (!forward || !named)
    return module->emitError()
           << "expected a module with a name and a function @forward(tokens, "
              "sequences, outputs, cache) -> (logits, cache)";
  library.name = named->str();
  // It names files, symbols and macros.
  StringRef name = library.name;
  if (name.empty() || llvm::isDigit(name.front()) || isRuntimeName(name) ||
      !llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return fail("expected the model's name to be a C identifier that isn't the "
                "runtime's (kvc, kvc_*), but got '" + name +
                "'; --name gives another");
  library.cache = cacheTypeOf(forward);
  RankedTensorType logits = logitsTypeOf(forward);
  library.arithmetic = logits.getElementType();
  library.vocab = logits.getDimSize(1);
  library.isTiles = isTiles(*module);
  module->walk([&](AttendOp attend) {
    auto queries = cast<RankedTensorType>(attend.getQueries().getType());
    library.heads = queries.getDimSize(1) / attend.getCacheGroup().keyWidth;
    library.exact &= attend.getCacheGroup().keeps(attend.getWindow());
  });
  if (library.heads == 0)
    return forward.emitError()
           << "expected @forward to attend to its cache, but got no kvc.attend";
  module->walk([&](SelectOp select) {
    auto rows = cast<RankedTensorType>(select.getInput().getType());
    library.width = rows.getDimSize(1);
  });
  if (library.vocab < 1 || library.vocab > INT32_MAX || library.width < 1)
    return forward.emitError()
           << "expected a vocabulary of 1 to 2^31 - 1 tokens and rows of at "
              "least 1 element, but got "
           << library.vocab << " and " << library.width;
  library.maxTokens = kMaxTokens;
  return success();
}

// The symbol of a level's forward function.
std::string Compilation::entryOf(StringRef level) {
  std::string entry = library.name + "_forward_" + level.str();
  llvm::replace(entry, '-', '_');
  return entry;
}

FailureOr<llvm::SmallVector<char, 0>>
Compilation::translate(ModuleOp lowered, StringRef entry,
                       const TargetDescription &target, bool assembly) {
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> translated =
      translateForward(lowered, llvmContext, entry);
  if (!translated)
    return failure();
  auto object = generateCode(*translated, target, assembly);
  if (!object)
    return fail(object.takeError());
  return std::move(*object);
}

FailureOr<LevelCode>
Compilation::compileLevel(const TargetDescription &target, bool assembly) {
  bool reference = options.stage == Stage::Reference;
  OwningOpRef<ModuleOp> lowered(module->clone());
  if (failed(runPasses(*lowered, [&](OpPassManager &pm) {
        if (reference)
          return buildReferencePipeline(pm);
        buildKernelPipeline(pm, target);
      })))
    return failure();
  if (!reference) {
    func::FuncOp forward = lookupForward(*lowered);
    library.workspaceBytes = std::max(
        library.workspaceBytes,
        forward->getAttrOfType<IntegerAttr>(kWorkspaceBytesAttr).getInt());
    if (failed(runPasses(*lowered, [&](OpPassManager &pm) {
          if (options.afterKernels)
            options.afterKernels(pm);
          buildLLVMPipeline(pm, target, library.isTiles);
        })))
      return failure();
  }
  LevelCode code;
  code.target = target;
  code.entry = entryOf(target.level);
  auto object = translate(*lowered, code.entry, target, assembly);
  if (failed(object))
    return failure();
  code.object = std::move(*object);
  return code;
}

FailureOr<DeviceCode> Compilation::compileDevice(const DeviceTarget &target) {
  OwningOpRef<ModuleOp> lowered(module->clone());
  if (failed(runPasses(*lowered, [&](OpPassManager &pm) {
        buildLaunchPipeline(pm, target);
      })))
    return failure();
  DeviceCode code;
  code.level = target.level;
  code.workspaceBytes = lookupForward(*lowered)
                            ->getAttrOfType<IntegerAttr>(kWorkspaceBytesAttr)
                            .getInt();
  if (failed(runPasses(*lowered, buildNVVMPipeline)))
    return failure();
  auto kernels = *lowered->getOps<gpu::GPUModuleOp>().begin();
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>())
    if (!kernel.isExternal())
      code.kernels.push_back(kernel.getName().str());
  auto ptx = generatePtx(kernels, target);
  if (!ptx)
    return fail(ptx.takeError());
  code.ptx = std::move(*ptx);
  kernels.erase();
  if (failed(runPasses(*lowered, buildHostPipeline)))
    return failure();
  code.entry = entryOf(target.level);
  // It runs where the lowest level does.
  auto object = translate(*lowered, code.entry, options.targets.cpus.back(),
                          /*assembly=*/false);
  if (failed(object))
    return failure();
  code.object = std::move(*object);
  return code;
}

LogicalResult Compilation::emitDevice(const DeviceTarget &target) {
  if (options.stage == Stage::GPU)
    return emitText(
        [&](OpPassManager &pm) { buildLaunchPipeline(pm, target); });
  auto code = compileDevice(target);
  if (failed(code))
    return failure();
  return writeText([&](llvm::raw_ostream &os) { os << code->ptx; });
}

LogicalResult
Compilation::writeText(llvm::function_ref<void(llvm::raw_ostream &)> write) {
  bool standard = options.output.empty() || options.output == "-";
  if (std::optional<std::string> weights = relativeWeights();
      weights && !standard) {
    std::error_code code;
    auto file = std::filesystem::absolute(options.output, code);
    auto path = std::filesystem::proximate(*weights, file.parent_path(), code);
    if (!code)
      setWeights(path.string());
  }
  if (!standard)
    if (llvm::Error error = checkNoModel(options.output))
      return fail(std::move(error));
  StringRef name = standard ? "standard output" : StringRef(options.output);
  std::error_code code;
  llvm::ToolOutputFile file(standard ? "-" : options.output, code,
                            llvm::sys::fs::OF_None);
  if (code)
    return fail(llvm::createFileError(name, code));
  write(file.os());
  file.os().flush();
  if ((code = file.os().error())) {
    file.os().clear_error();
    return fail(llvm::createFileError(name, code));
  }
  file.keep();
  if (!standard)
    llvm::errs() << "wrote " << options.output << "\n";
  return success();
}

LogicalResult
Compilation::emitText(llvm::function_ref<void(OpPassManager &)> build) {
  if (build && failed(runPasses(*module, build)))
    return failure();
  return writeText(
      [&](llvm::raw_ostream &os) { printAnnotated(*module, os); });
}

// Says how many bytes are stored in which way, and what the file has otherwise.
void Compilation::reportWeights() {
  llvm::MapVector<const Storage *, int64_t> bytes;
  for (auto weight : module->getOps<WeightOp>())
    bytes[&weight.getStorage()] += packedBytes(weight);
  llvm::errs() << "weights: ";
  llvm::interleaveComma(bytes, llvm::errs(), [](auto entry) {
    llvm::errs() << entry.second << " bytes of " << entry.first->name;
  });
  const std::vector<std::string> &converted = library.weights.converted;
  if (!converted.empty()) {
    llvm::errs() << "; converted " << converted.front();
    if (converted.size() > 1)
      llvm::errs() << " and " << converted.size() - 1 << " more";
  }
  llvm::errs() << "\n";
  // Who asks for blocks should know what has none.
  const Storage *asked = Storage::named(options.build.weightType);
  if (!asked || !asked->quants)
    return;
  for (auto weight : module->getOps<WeightOp>())
    if (weight.getLayerShape().size() == 2 && &weight.getStorage() != asked)
      llvm::errs() << "weights: @" << weight.getSymName() << " stays "
                   << weight.getStorage().name
                   << (weight.getTransposed()
                           ? ", since it is transposed in the file\n"
                           : ", since its rows aren't whole blocks\n");
}

// Says in which class of numerics floats are multiplied, if there are any, and which
// one is faster here.
void Compilation::reportNumerics() {
  bool hasFloats = false, hasNarrow = false, isNarrowed = false;
  module->walk([&](WeightUser op) {
    hasFloats |= isa<LinearOp, GatedLinearOp>(op) && !op->hasAttr("rounded");
    isNarrowed |= op->hasAttr("narrowed");
  });
  for (auto weight : module->getOps<WeightOp>())
    hasNarrow |= &weight.getStorage() == &bf16Storage ||
                 &weight.getStorage() == &f16Storage;
  if (!hasFloats || !library.arithmetic.isF32())
    return;
  llvm::errs() << "numerics: " << (library.isTiles ? "tiles" : "fma");
  // Of f32 by f32 tiles take six products, and that is no clear gain; dot products of
  // bf16 multiply inputs that are rounded to it.
  bool hasTiles = machineHasTiles(), hasDots = isNarrowed && machineHasPairDot();
  if (!hasTiles && !hasDots)
    llvm::errs() << "; fma is the faster class on this machine, which has no AMX";
  else if (hasNarrow)
    llvm::errs() << "; tiles is the faster class for prompts on this machine, which "
                    "has "
                 << (hasTiles ? "AMX" : "AVX-512 BF16");
  llvm::errs() << "\n";
}

std::vector<TargetDescription> Compilation::targetsOfModule() {
  bool hasIntegers = false, hasNarrow = false;
  module->walk([&](Operation *op) {
    hasIntegers |= op->hasAttr("rounded");
    hasNarrow |= op->hasAttr("narrowed");
  });
  // What the module's products make of a level.
  auto usedOf = [&](const TargetDescription &target) {
    const LinearTarget &has = target.linear;
    return std::tuple(has.vectorBits, has.hasByteDot && hasIntegers,
                      has.hasPairDot && hasNarrow && library.isTiles,
                      has.hasTiles && (hasIntegers || library.isTiles));
  };
  std::vector<TargetDescription> targets;
  for (const TargetDescription &target : llvm::reverse(options.targets.cpus))
    if (!options.targets.isForAnyMachine ||
        llvm::none_of(targets, [&](const TargetDescription &lower) {
          return usedOf(lower) == usedOf(target);
        }))
      targets.push_back(target);
  std::reverse(targets.begin(), targets.end());
  return targets;
}

LogicalResult Compilation::emitLibrary() {
  if (auto path = findSystemLibrary(library.name))
    return fail("expected a name that no library of the system has, but got '" +
                library.name + "' (" + *path + "); --name gives another");
  StagedDirectory directory;
  if (llvm::Error error = directory.open(options.output))
    return fail(std::move(error));
  if (llvm::Error error = directory.reserve(libraryFiles(library.name)))
    return fail(std::move(error));

  std::vector<LevelCode> levels;
  // The reference is one plain form of the code.
  std::vector<TargetDescription> targets = targetsOfModule();
  if (options.stage == Stage::Reference)
    targets = {targets.back()};
  for (const TargetDescription &target : targets) {
    auto level = compileLevel(target, /*assembly=*/false);
    if (failed(level))
      return failure();
    levels.push_back(std::move(*level));
  }
  std::vector<DeviceCode> devices;
  if (options.stage == Stage::Library)
    for (const DeviceTarget &target : options.targets.devices) {
      auto device = compileDevice(target);
      if (failed(device))
        return failure();
      devices.push_back(std::move(*device));
    }
  // The reference packs its weights by rows.
  if (options.stage == Stage::Reference) {
    AssignPackingOptions rows;
    rows.panels = false;
    if (failed(runPasses(*module, [&](OpPassManager &pm) {
          pm.addPass(createAssignPacking(rows));
        })))
      return failure();
  }
  llvm::SmallString<256> weights(directory.path());
  llvm::sys::path::append(weights, library.name + ".safetensors");
  // It may be large, and a later run into this directory may never come.
  llvm::sys::RemoveFileOnSignal(weights);
  auto packed =
      packWeights(*module, architecture, options.numericsVersion,
                  options.allowNonfiniteWeights, weights);
  if (!packed)
    return fail(directory.describe(packed.takeError()));
  library.weights = *packed;
  if (llvm::Error error = writeLibrary(directory.path(), library, levels, devices))
    return fail(directory.describe(std::move(error)));
  if (llvm::Error error = copyTokenizer(options.model, directory.path()))
    return fail(directory.describe(std::move(error)));
  if (llvm::Error error = directory.publish(libraryFiles(library.name)))
    return fail(directory.describe(std::move(error)));
  llvm::errs() << "wrote " << options.output << ": "
               << llvm::join(directory.written, ", ");
  if (!directory.removed.empty())
    llvm::errs() << "; removed " << llvm::join(directory.removed, ", ");
  llvm::errs() << "\n";
  reportWeights();
  reportNumerics();
  return success();
}

LogicalResult Compilation::run() {
  if (failed(load()))
    return failure();
  if (options.stage == Stage::Spec)
    return success();
  if ((options.stage == Stage::Library || options.stage == Stage::Reference) &&
      (options.output.empty() || options.output == "-"))
    return fail("-o: expected the directory for the library");
  if (options.stage == Stage::KVC)
    return emitText();
  identify();

  bool reference =
      options.stage == Stage::Reference || options.stage == Stage::Linalg;
  if (failed(runPasses(*module, [&](OpPassManager &pm) {
        buildNormalFormPipeline(pm, !options.skipCacheContract,
                                !options.skipForward);
      })) ||
      failed(describe()))
    return failure();
  if (!reference && failed(runPasses(*module, buildFusedPipeline)))
    return failure();

  switch (options.stage) {
  case Stage::Fused:
    return emitText();
  case Stage::Linalg:
    return emitText(buildLinalgPipeline);
  case Stage::Kernels:
  case Stage::LLVM:
    return emitText([&](OpPassManager &pm) {
      buildKernelPipeline(pm, targetsOfModule().front());
      if (options.stage == Stage::LLVM)
        buildLLVMPipeline(pm, targetsOfModule().front(), library.isTiles);
    });
  case Stage::Asm: {
    auto code = compileLevel(targetsOfModule().front(), /*assembly=*/true);
    if (failed(code))
      return failure();
    return writeText([&](llvm::raw_ostream &os) {
      os.write(code->object.data(), code->object.size());
    });
  }
  case Stage::GPU:
  case Stage::PTX:
    return emitDevice(options.targets.devices.empty() ? *findDeviceTarget("sm_80")
                                                      : options.targets.devices.front());
  default:
    return emitLibrary();
  }
}

LogicalResult kvc::compile(MLIRContext &context, const CompileOptions &options) {
  return Compilation(context, options).run();
}
