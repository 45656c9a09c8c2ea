#include "compiler/output/Library.h"
#include "compiler/cpu/Object.h"
#include "compiler/output/Version.h"
#include "compiler/output/WriteFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace kvc;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static std::string headerText(const LibraryDescription &d) {
  std::string upper = llvm::StringRef(d.name).upper(), text;
  llvm::raw_string_ostream os(text);
  auto constant = [&](llvm::StringRef name, int64_t value, llvm::StringRef what) {
    os << "#define " << upper << "_" << name << " " << value << " /* " << what
       << " */\n";
  };
  os << "/* " << d.name << ".h: made by " << kCompilerVersion << ".\n"
     << " * Link lib" << d.name << ".a (or .so) and the kvc runtime, and open the"
     << " model with\n *   kvc_model_open(" << d.name << "_library(), \"DIR/\" "
     << upper << "_WEIGHTS_FILE, NULL, &model)\n */\n"
     << "#ifndef KVC_GENERATED_" << upper << "_H\n#define KVC_GENERATED_" << upper
     << "_H\n\n#include <kvc/abi.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
     << "#define " << upper << "_WEIGHTS_FILE \"" << d.name << ".safetensors\"\n";
  constant("VOCAB", d.vocab, "logits of a row");
  constant("LAYERS", d.cache.getLayers(), "layers");
  constant("CAPACITY", d.cache.getCapacity(), "positions of a sequence at most");
  constant("CACHE_BYTES_PER_POSITION", d.cache.getBytesPerPosition(),
           "keys and values of all layers");
  constant("EXACT", d.exact,
           "1: the cache keeps every position that attention may see");
  os << "#define " << upper << "_NUMERICS "
     << (d.isTiles ? "KVC_NUMERICS_TILES" : "KVC_NUMERICS_FMA")
     << " /* the class */\n";
  os << "typedef " << (d.arithmetic.isF64() ? "double" : "float") << " " << d.name
     << "_logit;\n\n"
     << "/* What the library is: constant, and valid while it is loaded. It is\n"
     << " * found by a name of this model alone; for dlsym, by its own as well. */\n"
     << "const kvc_library *" << d.name << "_library(void)\n    __asm__(\""
     << d.name << "_library_" << d.tag() << "\");\n\n"
     << "#ifdef __cplusplus\n}\n#endif\n#endif\n";
  return text;
}

std::string LibraryDescription::tag() const {
  return llvm::toHex(llvm::ArrayRef(weights.identity).take_front(4),
                     /*LowerCase=*/true);
}

std::vector<std::string> kvc::libraryFiles(llvm::StringRef name) {
  std::string text = name.str();
  return {"lib" + text + ".a", "lib" + text + ".so", text + ".h",
          text + ".safetensors"};
}

// The system's compiler driver, which knows its linker and libraries.
static llvm::ErrorOr<std::string> findDriver() {
  llvm::ErrorOr<std::string> driver = llvm::sys::findProgramByName("cc");
  for (llvm::StringRef name : {"clang-22", "clang", "gcc"})
    if (!driver)
      driver = llvm::sys::findProgramByName(name);
  return driver;
}

// Runs the driver; what it says goes to `said`.
static bool runDriver(llvm::ArrayRef<llvm::StringRef> arguments,
                      std::string &said) {
  llvm::SmallString<128> log;
  if (llvm::sys::fs::createTemporaryFile("kvc", "log", log))
    return false;
  llvm::FileRemover remover(log);
  llvm::StringRef text(log);
  bool succeeded =
      llvm::sys::ExecuteAndWait(arguments.front(), arguments, std::nullopt,
                                {std::nullopt, text, text}, 0, 0, &said) == 0;
  if (auto buffer = llvm::MemoryBuffer::getFile(log))
    said += (*buffer)->getBuffer().rtrim();
  return succeeded;
}

std::optional<std::string> kvc::findSystemLibrary(llvm::StringRef name) {
  llvm::ErrorOr<std::string> driver = findDriver();
  if (!driver)
    return std::nullopt;
  for (llvm::StringRef suffix : {".so", ".a"}) {
    std::string option = ("-print-file-name=lib" + name + suffix).str(), path;
    // Where there is none, the driver says the name as it was given.
    if (runDriver({*driver, option}, path) && llvm::sys::path::is_absolute(path))
      return path;
  }
  return std::nullopt;
}

// Links the objects of `archive` to a shared library.
static llvm::Error linkShared(llvm::StringRef archive, llvm::StringRef output,
                              llvm::StringRef soname) {
  llvm::ErrorOr<std::string> driver = findDriver();
  if (!driver)
    return makeError("expected a C compiler driver (cc, clang or gcc) in PATH to "
                     "link " + output + ", but found none");
  std::string sonameOption = ("-Wl,-soname," + soname).str(), said;
  if (runDriver({*driver, "-shared", "-o", output, sonameOption,
                 "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive",
                 "-Wl,-z,noexecstack", "-Wl,-z,defs", "-lm"},
                said))
    return llvm::Error::success();
  // What the linker says belongs to the error.
  return makeError("linking " + output + " by " + *driver + " failed" +
                   (said.empty() ? "" : ": " + said));
}

llvm::Error kvc::writeLibrary(llvm::StringRef directory,
                              const LibraryDescription &description,
                              llvm::ArrayRef<LevelCode> levels,
                              llvm::ArrayRef<DeviceCode> devices) {
  // The descriptor is code for the lowest level, since it runs before one is
  // chosen.
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      buildDescriptor(context, description, levels, devices);
  auto descriptor =
      generateCode(*module, levels.back().target, /*assembly=*/false);
  if (!descriptor)
    return descriptor.takeError();

  auto path = [&](const llvm::Twine &name) {
    llvm::SmallString<256> result(directory);
    llvm::sys::path::append(result, name);
    return std::string(result);
  };
  std::vector<std::string> names;
  for (const LevelCode &level : levels)
    names.push_back(level.target.level + ".o");
  for (const DeviceCode &device : devices)
    names.push_back(device.level + ".o");
  names.push_back("descriptor.o");
  std::vector<llvm::NewArchiveMember> members;
  auto addMember = [&](llvm::ArrayRef<char> object) {
    members.emplace_back(llvm::MemoryBufferRef(
        llvm::StringRef(object.data(), object.size()), names[members.size()]));
  };
  for (const LevelCode &level : levels)
    addMember(level.object);
  for (const DeviceCode &device : devices)
    addMember(device.object);
  addMember(*descriptor);

  std::string archive = path("lib" + description.name + ".a");
  // Through memory: LLVM's own writer of files aborts where the disk is full.
  auto bytes = llvm::writeArchiveToBuffer(
      members, llvm::SymtabWritingMode::NormalSymtab,
      llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  if (!bytes)
    return bytes.takeError();
  if (llvm::Error error = writeFile(archive, (*bytes)->getBuffer()))
    return error;
  std::string shared = "lib" + description.name + ".so";
  std::string soname = shared + "." + description.tag();
  if (llvm::Error error = linkShared(archive, path(shared), soname))
    return error;
  // Not every file system has links.
  if (llvm::sys::fs::create_link(shared, path(soname)))
    if (std::error_code code =
            llvm::sys::fs::copy_file(path(shared), path(soname)))
      return llvm::createFileError(path(soname), code);
  return writeFile(path(description.name + ".h"), headerText(description));
}
