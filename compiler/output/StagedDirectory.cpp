#include "compiler/output/StagedDirectory.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace kvc;
namespace fs = llvm::sys::fs;

StagedDirectory::~StagedDirectory() {
  if (!staging.empty())
    fs::remove_directories(staging);
  for (const std::string &folder : made)
    fs::remove(folder);
}

llvm::Error StagedDirectory::open(llvm::StringRef path) {
  directory = path;
  fs::file_status status;
  for (llvm::StringRef folder = path;
       !folder.empty() && fs::status(folder, status, /*follow=*/false) ==
                              std::errc::no_such_file_or_directory;
       folder = llvm::sys::path::parent_path(folder))
    made.push_back(folder.str());
  std::error_code code = fs::create_directories(
      directory, /*IgnoreExisting=*/true, fs::all_all);
  if (!code)
    code = fs::make_absolute(directory);
  if (!code)
    code = fs::createUniqueDirectory(directory + "/.kvc", staging);
  return code ? llvm::createFileError(path, code) : llvm::Error::success();
}

llvm::Error StagedDirectory::publish(llvm::ArrayRef<llvm::StringRef> stale) {
  auto in = [](llvm::StringRef folder, llvm::StringRef name) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, name);
    return path;
  };
  for (llvm::StringRef name : stale)
    if (!fs::exists(in(staging, name)))
      if (std::error_code code = fs::remove(in(directory, name)))
        return llvm::createFileError(in(directory, name), code);
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator file(staging, code), end; !code && file != end;
       file.increment(code))
    names.push_back(llvm::sys::path::filename(file->path()).str());
  if (code)
    return llvm::createFileError(staging, code);
  for (const std::string &name : names)
    if (std::error_code failure =
            fs::rename(in(staging, name), in(directory, name)))
      return llvm::createFileError(in(directory, name), failure);
  made.clear();
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
