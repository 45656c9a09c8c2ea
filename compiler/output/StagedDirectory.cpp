#include "compiler/output/StagedDirectory.h"
#include "compiler/frontend/Files.h"
#include "compiler/output/Version.h"
#include "compiler/output/WriteFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace kvc;
namespace fs = llvm::sys::fs;
using Path = llvm::SmallString<256>;

static constexpr llvm::StringLiteral kManifest = "kvc.json";
static constexpr llvm::StringLiteral kStaging = ".kvc-";
// In a staging folder, what `publish` has taken out of the directory.
static constexpr llvm::StringLiteral kFormer = ".former";

static Path in(llvm::StringRef folder, llvm::StringRef name) {
  Path path(folder);
  llvm::sys::path::append(path, name);
  return path;
}

// Whether something stands at `path`, be it a link that leads nowhere.
static bool stands(const llvm::Twine &path) {
  fs::file_status status;
  return !fs::status(path, status, /*follow=*/false);
}

static llvm::Error move(llvm::StringRef name, llvm::StringRef from,
                        llvm::StringRef to) {
  if (std::error_code code = fs::rename(in(from, name), in(to, name)))
    return llvm::createFileError(in(to, name), code);
  return llvm::Error::success();
}

static llvm::Expected<std::vector<std::string>> list(llvm::StringRef folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator file(folder, code, /*follow=*/false), end;
       !code && file != end; file.increment(code))
    names.push_back(llvm::sys::path::filename(file->path()).str());
  if (code)
    return llvm::createFileError(folder, code);
  llvm::sort(names);
  return names;
}

// The files that the manifest of `folder` lists; none where there is none.
static llvm::Expected<std::vector<std::string>>
readManifest(llvm::StringRef folder) {
  std::vector<std::string> names;
  Path path = in(folder, kManifest);
  if (!stands(path))
    return names;
  auto object = readJSON(path);
  if (!object)
    return object.takeError();
  const llvm::json::Array *files = object->getArray("files");
  if (object->getInteger("kvc_output") != 1 || !files)
    return invalid(path, "expected what kvc-opt writes there (kvc_output, files)");
  for (const llvm::json::Value &file : *files) {
    llvm::StringRef name = file.getAsString().value_or("");
    if (name.empty() || name.starts_with(".") || name == kManifest ||
        name != llvm::sys::path::filename(name))
      return invalid(path, "files: expected names of files beside it, but got " +
                               kvc::describe(file));
    names.push_back(name.str());
  }
  return names;
}

static llvm::Error writeManifest(llvm::StringRef folder,
                                 llvm::ArrayRef<std::string> names) {
  llvm::json::Object object{{"kvc_output", 1},
                            {"compiler", kCompilerVersion},
                            {"files", llvm::json::Array(names)}};
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
  return writeFile(in(folder, kManifest), text);
}

static bool sameBytes(llvm::StringRef a, llvm::StringRef b) {
  auto left = mapFile(a), right = mapFile(b);
  bool same = left && right && (*left)->getBuffer() == (*right)->getBuffer();
  llvm::consumeError(left.takeError());
  llvm::consumeError(right.takeError());
  return same;
}

StagedDirectory::~StagedDirectory() {
  if (!staging.empty())
    fs::remove_directories(staging);
  for (const std::string &folder : made)
    fs::remove(folder);
  if (lock != -1)
    ::close(lock);
}

llvm::Error StagedDirectory::open(llvm::StringRef path) {
  directory = path;
  for (llvm::StringRef folder = path; !folder.empty() && !stands(folder);
       folder = llvm::sys::path::parent_path(folder))
    made.push_back(folder.str());
  std::error_code code = fs::create_directories(
      directory, /*IgnoreExisting=*/true, fs::all_all);
  if (!code)
    code = fs::make_absolute(directory);
  if (code)
    return llvm::createFileError(path, code);
  lock = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock == -1)
    return llvm::createFileError(path, std::error_code(errno, std::generic_category()));
  // Where a file system has no locks, nobody can tell who is alive.
  bool locked = ::flock(lock, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno == EWOULDBLOCK)
    return invalid(path, "expected no other kvc-opt to write there now");
  if (locked)
    if (llvm::Error error = recover())
      return error;
  auto names = readManifest(directory);
  if (!names)
    return names.takeError();
  former = std::move(*names);
  for (const std::string &name : former)
    if (fs::get_file_type(in(directory, name), /*Follow=*/false) ==
        fs::file_type::directory_file)
      return invalid(in(directory, name),
                     "expected the file that kvc-opt wrote, but got a directory");
  if ((code = fs::createUniqueDirectory(directory + "/" + kStaging.drop_back(), staging)))
    return llvm::createFileError(path, code);
  return llvm::Error::success();
}

llvm::Error StagedDirectory::recover() {
  auto names = list(directory);
  if (!names)
    return names.takeError();
  for (llvm::StringRef name : *names) {
    // As createUniqueDirectory calls them: nobody else's.
    llvm::StringRef rest = name;
    if (!rest.consume_front(kStaging) || rest.size() != 6 ||
        !llvm::all_of(rest, llvm::isHexDigit))
      continue;
    Path folder = in(directory, name);
    if (llvm::Error error = rollBack(folder))
      return error;
    if (std::error_code code = fs::remove_directories(folder))
      return llvm::createFileError(folder, code);
  }
  return llvm::Error::success();
}

// Undoes a `publish` from `folder` that didn't come to its end, which is when
// the manifest moves. Wherever this stops, it can be done again.
llvm::Error StagedDirectory::rollBack(llvm::StringRef folder) const {
  if (!stands(in(folder, kManifest)))
    return llvm::Error::success();
  auto names = readManifest(folder);
  if (!names)
    return names.takeError();
  for (const std::string &name : *names)
    if (!stands(in(folder, name)) && stands(in(directory, name)))
      if (llvm::Error error = move(name, directory, folder))
        return error;
  Path aside = in(folder, kFormer);
  if (!stands(aside))
    return llvm::Error::success();
  auto moved = list(aside);
  if (!moved)
    return moved.takeError();
  for (const std::string &name : *moved)
    if (llvm::Error error = move(name, aside, directory))
      return error;
  return llvm::Error::success();
}

llvm::Error
StagedDirectory::reserve(llvm::ArrayRef<std::string> names) const {
  for (const std::string &name : names)
    if (!llvm::is_contained(former, name) && stands(in(directory, name)))
      return invalid(in(directory, name),
                     "expected no such file, or one that kvc-opt wrote (" +
                         kManifest + " lists those)");
  return llvm::Error::success();
}

llvm::Error StagedDirectory::publish(llvm::ArrayRef<std::string> needed) {
  auto names = list(staging);
  if (!names)
    return names.takeError();
  for (const std::string &name : needed)
    if (!llvm::is_contained(*names, name))
      return invalid(in(directory, name), "expected to be written, but it is gone");
  llvm::erase_if(*names, [&](const std::string &name) {
    return !llvm::is_contained(former, name) &&
           sameBytes(in(directory, name), in(staging, name)) &&
           !fs::remove(in(staging, name));
  });
  if (llvm::Error error = reserve(*names))
    return error;
  if (llvm::Error error = writeManifest(staging, *names))
    return error;
  Path aside = in(staging, kFormer);
  if (std::error_code code = fs::create_directory(aside))
    return llvm::createFileError(aside, code);

  auto replace = [&]() -> llvm::Error {
    std::vector<std::string> old = former;
    old.push_back(kManifest.str());
    for (const std::string &name : old)
      if (stands(in(directory, name)))
        if (llvm::Error error = move(name, directory, aside))
          return error;
    for (const std::string &name : *names)
      if (llvm::Error error = move(name, staging, directory))
        return error;
    return move(kManifest, staging, directory);
  };
  if (llvm::Error error = replace())
    return llvm::joinErrors(std::move(error), rollBack(staging));
  made.clear();
  llvm::copy_if(former, std::back_inserter(removed),
                [&](const std::string &name) {
                  return !llvm::is_contained(*names, name);
                });
  written = std::move(*names);
  return llvm::Error::success();
}

llvm::Error StagedDirectory::describe(llvm::Error error) const {
  std::string text = llvm::toString(std::move(error));
  std::string from(staging), to(directory);
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}
