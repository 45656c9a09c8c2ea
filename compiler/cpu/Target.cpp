#include "compiler/cpu/Target.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

using namespace kvc;

static llvm::Error invalidTarget(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "--target: " + message);
}

// The features that tell the levels from lower ones, in the spelling of
// /proc/cpuinfo: System V ABI for x86-64, micro-architecture levels.
#define KVC_V3_FEATURES "avx2 fma f16c bmi1 bmi2 abm movbe popcnt"
#define KVC_V4_FEATURES                                                        \
  "avx512f avx512bw avx512cd avx512dq avx512vl " KVC_V3_FEATURES
static const TargetDescription kLevels[] = {
    {"x86-64-v4-amx", "x86-64-v4", "",
     "amx_tile amx_int8 amx_bf16 avx512_bf16 avx512_vnni " KVC_V4_FEATURES,
     "+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16",
     {512, true, true, true, {14, 2}, {{4, 2}, {8, 2}}, {{4, 2}, {16, 1}}}},
    {"x86-64-v4-bf16", "x86-64-v4", "", "avx512_bf16 avx512_vnni " KVC_V4_FEATURES,
     "+avx512vnni,+avx512bf16",
     {512, true, true, false, {14, 2}, {{4, 2}, {8, 2}}, {{4, 2}, {4, 2}}}},
    {"x86-64-v4-vnni", "x86-64-v4", "", "avx512_vnni " KVC_V4_FEATURES,
     "+avx512vnni",
     {512, true, false, false, {14, 2}, {{4, 2}, {8, 2}}, {{4, 2}, {4, 2}}}},
    {"x86-64-v4", "x86-64-v4", "", KVC_V4_FEATURES, "",
     {512, false, false, false, {14, 2}, {{4, 2}, {8, 2}}, {{4, 1}, {8, 1}}}},
    {"x86-64-v3", "x86-64-v3", "", KVC_V3_FEATURES, "",
     {256, false, false, false, {6, 1}, {{2, 2}, {6, 1}}, {{2, 2}, {4, 1}}}},
};

// "cpu:native, cpu:x86-64-v3 or cpu:x86-64-v4"
static std::string targetNames() {
  std::string names = "cpu:native";
  for (const TargetDescription &level : llvm::reverse(kLevels))
    names += (&level == kLevels ? " or cpu:" : ", cpu:") + level.level;
  return names;
}

static bool machineHas(const TargetDescription &target) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef> needed;
  llvm::StringRef(target.features).split(needed, ' ');
  return llvm::all_of(needed, [&](llvm::StringRef name) {
    // LLVM's names for what /proc/cpuinfo calls otherwise.
    return features.lookup(name == "bmi1"          ? "bmi"
                           : name == "abm"         ? "lzcnt"
                           : name == "avx512_vnni" ? "avx512vnni"
                           : name == "avx512_bf16" ? "avx512bf16"
                           : name == "amx_tile"    ? "amx-tile"
                           : name == "amx_int8"    ? "amx-int8"
                           : name == "amx_bf16"    ? "amx-bf16"
                                                   : name);
  });
}

static bool machineHasLevel(bool LinearTarget::*with) {
  return llvm::any_of(kLevels, [&](const TargetDescription &level) {
    return level.linear.*with && machineHas(level);
  });
}
bool kvc::machineHasTiles() { return machineHasLevel(&LinearTarget::hasTiles); }
bool kvc::machineHasPairDot() { return machineHasLevel(&LinearTarget::hasPairDot); }

llvm::Expected<std::vector<TargetDescription>>
kvc::parseCpuTargets(llvm::StringRef option) {
  llvm::SmallVector<llvm::StringRef> names;
  option.split(names, ',');
  std::vector<TargetDescription> targets;
  for (llvm::StringRef name : names) {
    llvm::StringRef level = name;
    if (!level.consume_front("cpu:"))
      return invalidTarget("expected " + targetNames() + ", but got '" + name +
                           "'");
    bool native = level == "native";
    const TargetDescription *found = nullptr;
    for (const TargetDescription &candidate : kLevels)
      if (!found && (native ? machineHas(candidate) : candidate.level == level))
        found = &candidate;
    if (!found)
      return invalidTarget(
          native ? llvm::Twine("expected a machine with AVX2 and FMA for "
                               "cpu:native, but this one has neither x86-64-v3 "
                               "nor x86-64-v4")
                 : "expected " + targetNames() +
                       " (FMA is the floor), but got '" + name + "'");
    if (llvm::any_of(targets, [&](const TargetDescription &other) {
          return other.level == found->level;
        }))
      return invalidTarget("expected each level once, but got '" + name +
                           "' twice");
    targets.push_back(*found);
    if (native)
      targets.back().tuneCpu = llvm::sys::getHostCPUName().str();
  }
  // Best first, as in kLevels.
  auto place = [](const TargetDescription &target) {
    return llvm::find_if(kLevels, [&](const TargetDescription &level) {
      return level.level == target.level;
    });
  };
  llvm::sort(targets, [&](const auto &a, const auto &b) {
    return place(a) < place(b);
  });
  return targets;
}
