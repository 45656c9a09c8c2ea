// Files that appear in a directory together, or not at all.
#ifndef KVC_COMPILER_OUTPUT_STAGEDDIRECTORY_H
#define KVC_COMPILER_OUTPUT_STAGEDDIRECTORY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kvc {

// A directory that is filled aside, in a new folder inside of it. Destroyed
// before `publish`, it leaves what stood there before, and the directories that
// `open` has made go again.
class StagedDirectory {
public:
  StagedDirectory() = default;
  StagedDirectory(const StagedDirectory &) = delete;
  ~StagedDirectory();

  llvm::Error open(llvm::StringRef directory);
  // The folder to write to.
  llvm::StringRef path() const { return staging; }
  // Moves what was written into the directory, over files of the same names. A
  // file there that `stale` names and that was not written goes.
  llvm::Error publish(llvm::ArrayRef<llvm::StringRef> stale);
  // `error`, naming files as they would have been published.
  llvm::Error describe(llvm::Error error) const;

private:
  llvm::SmallString<256> directory, staging;
  std::vector<std::string> made; // by open, the innermost first
};

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_STAGEDDIRECTORY_H
