#include "compiler/Targets.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kvc;

llvm::Expected<Targets> kvc::parseTargets(llvm::StringRef option) {
  auto fail = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "--target: " + message);
  };
  llvm::SmallVector<llvm::StringRef> names;
  if (!option.empty())
    option.split(names, ',');
  Targets targets;
  std::string kind;
  llvm::SmallVector<std::string> cpus;
  for (llvm::StringRef name : names) {
    if (name.contains(':'))
      kind = name.substr(0, name.find(':') + 1).str();
    llvm::StringRef level = name;
    level.consume_front(kind);
    if (kind != "cuda:") {
      cpus.push_back(kind + level.str());
      continue;
    }
    const DeviceTarget *found = findDeviceTarget(level);
    if (!found)
      return fail("expected " + deviceTargetNames() + ", but got '" + name + "'");
    if (llvm::any_of(targets.devices, [&](const DeviceTarget &other) {
          return other.level == found->level;
        }))
      return fail("expected each level once, but got '" + name + "' twice");
    targets.devices.push_back(*found);
  }
  llvm::sort(targets.devices, [](const DeviceTarget &a, const DeviceTarget &b) {
    return a.level > b.level;
  });
  targets.isForAnyMachine = cpus.empty();
  auto parsed = parseCpuTargets(cpus.empty() ? kDefaultTargets.str()
                                             : llvm::join(cpus, ","));
  if (!parsed)
    return parsed.takeError();
  targets.cpus = std::move(*parsed);
  return targets;
}
