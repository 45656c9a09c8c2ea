// The folder of a compiled model: its files appear together, or not at all.
#ifndef KVC_COMPILER_OUTPUT_STAGEDDIRECTORY_H
#define KVC_COMPILER_OUTPUT_STAGEDDIRECTORY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kvc {

// A directory that is filled aside, in a new folder inside of it. A file of its
// own, kvc.json, lists what was written: this, and nothing else, the next
// compilation replaces. So a directory holds one compiled model, beside whatever
// else somebody keeps there. Destroyed before `publish`, it leaves what stood
// there before, and the directories that `open` has made go again; what a
// process leaves that was killed, the next `open` puts in order.
class StagedDirectory {
public:
  StagedDirectory() = default;
  StagedDirectory(const StagedDirectory &) = delete;
  ~StagedDirectory();

  // One process at a time has a directory open.
  llvm::Error open(llvm::StringRef directory);
  // The folder to write to.
  llvm::StringRef path() const { return staging; }
  // An error where one of `names` stands there and isn't kvc-opt's to replace.
  llvm::Error reserve(llvm::ArrayRef<std::string> names) const;
  // Puts what was written, of which `needed` must be a part, in the place of what
  // kvc-opt wrote before. A file that is another's and has the same bytes stays.
  llvm::Error publish(llvm::ArrayRef<std::string> needed);
  // `error`, naming files as they would have been published.
  llvm::Error describe(llvm::Error error) const;

  // What `publish` has put there, and what it has taken away for good.
  std::vector<std::string> written, removed;

private:
  llvm::Error recover();
  llvm::Error rollBack(llvm::StringRef folder) const;

  llvm::SmallString<256> directory, staging;
  std::vector<std::string> former; // files, as kvc.json lists them
  std::vector<std::string> made;   // by open, the innermost first
  int lock = -1;                   // a descriptor of `directory`
};

} // namespace kvc

#endif // KVC_COMPILER_OUTPUT_STAGEDDIRECTORY_H
