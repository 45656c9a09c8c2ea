// A block's warp from its start to its end. The lanes at the lowest instruction go first,
// so that those that have left a loop wait for those that haven't; a barrier and a
// shuffle wait for the lanes that they name.
//
// Blocks of one warp are all that the compiler launches.
#include "Warp.h"

#include <algorithm>

using namespace emulator;

Traffic *emulator::traffic = nullptr;

namespace {

std::string hex(uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

void fail(Warp &warp, int lane, const std::string &what) {
  if (warp.fault->empty())
    *warp.fault = "lane " + std::to_string(lane) + ": " + what;
}

// Where the bytes of an access are; null after a fault. `written` are their marks.
uint8_t *resolve(Warp &warp, const Instruction &i, int lane, bool writes,
                 uint8_t *&written) {
  uint64_t address = warp.at(i.read[0])[lane] + uint64_t(i.offset);
  uint64_t count = uint64_t(i.bytes) * i.count;
  auto text = [&] {
    return std::string(writes ? "a write of " : "a read of ") + std::to_string(count) +
           " bytes";
  };
  if (address % count != 0) {
    fail(warp, lane, text() + " at " + hex(address) + ", which is no multiple of them");
    return nullptr;
  }
  if (i.space == Space::Local) {
    uint64_t size = uint64_t(warp.kernel->localBytes);
    if (address > size || count > size - address) {
      fail(warp, lane, text() + " at " + hex(address) + " of a thread's " +
                           std::to_string(size));
      return nullptr;
    }
    written = nullptr;
    return &warp.local[size_t(lane) * size + address];
  }
  Scratch *run = i.space == Space::Shared ? warp.shared : warp.memory->find(address);
  if (!run || !run->holds(address, count)) {
    std::string where = run ? " at offset " + std::to_string(address - run->base) +
                                  " of " + std::to_string(run->bytes.size())
                            : " at " + hex(address) + ", where nothing is allocated";
    fail(warp, lane, text() + where);
    return nullptr;
  }
  uint64_t offset = address - run->base;
  Asker asker{warp.memory->launch, warp.block, lane, warp.epochs};
  if (const char *race = run->touch(offset, count, writes, asker)) {
    fail(warp, lane, std::string(race) + ": offset " + std::to_string(offset));
    return nullptr;
  }
  written = &run->written[offset];
  return &run->bytes[offset];
}

// Sectors of 32 bytes that the lanes' accesses are in.
void count(Warp &warp, const Instruction &i, uint32_t mask) {
  uint64_t bytes = uint64_t(i.bytes) * i.count;
  uint64_t lanes = uint64_t(__builtin_popcount(mask));
  if (i.space == Space::Shared)
    traffic->sharedBytes += bytes * lanes;
  if (i.space != Space::Global)
    return;
  uint64_t sectors[2 * lanesOfWarp], found = 0;
  const uint64_t *addresses = warp.at(i.read[0]);
  for (int lane = 0; lane != lanesOfWarp; ++lane)
    if (has(mask, lane)) {
      uint64_t sector = (addresses[lane] + uint64_t(i.offset)) / 32;
      if (!found || sectors[found - 1] != sector)
        sectors[found++] = sector;
    }
  std::sort(sectors, sectors + found);
  found = uint64_t(std::unique(sectors, sectors + found) - sectors);
  traffic->requested += bytes * lanes;
  traffic->moved += 32 * found;
}

class Block {
public:
  Block(Warp &warp, const Module &module) : warp(warp), module(module) {}
  void run(uint32_t threads);

private:
  bool step();
  // Lanes of the first group that have all whom their barrier names beside them.
  uint32_t ready(const Instruction &i, uint32_t lanes) const;
  void put(int32_t at, uint32_t mask);

  Warp &warp;
  const Module &module;
  std::vector<Group> groups; // by instruction, each once
  uint32_t live = 0;
};

void Block::put(int32_t at, uint32_t mask) {
  auto place = std::lower_bound(groups.begin(), groups.end(), at,
                                [](const Group &g, int32_t at) { return g.at < at; });
  if (place != groups.end() && place->at == at)
    place->mask |= mask;
  else
    groups.insert(place, {at, mask});
}

uint32_t Block::ready(const Instruction &i, uint32_t lanes) const {
  uint32_t index = i.control == Control::Shuffle ? i.read[3] : i.read[0];
  const uint64_t *names = warp.at(index);
  uint32_t result = 0;
  for (int lane = 0; lane != lanesOfWarp; ++lane)
    if (has(lanes, lane) && !(uint32_t(names[lane]) & live & ~lanes))
      result |= 1u << lane;
  return result;
}

bool Block::step() {
  size_t chosen = 0;
  uint32_t mask = 0;
  // The first group whose lanes needn't wait.
  for (; chosen != groups.size(); ++chosen) {
    const Instruction &i = warp.kernel->code[size_t(groups[chosen].at)];
    bool waits = i.control == Control::WarpBarrier || i.control == Control::Shuffle;
    mask = waits ? ready(i, groups[chosen].mask) : groups[chosen].mask;
    if (mask)
      break;
  }
  if (!mask) {
    fail(warp, __builtin_ctz(groups.front().mask),
         "it waits at a barrier for lanes that wait elsewhere");
    return false;
  }
  int32_t at = groups[chosen].at;
  if (!(groups[chosen].mask &= ~mask))
    groups.erase(groups.begin() + long(chosen));
  int32_t next = groups.empty() ? INT32_MAX : groups.front().at;
  const std::vector<Instruction> &code = warp.kernel->code;
  // Alone until others are met.
  for (;;) {
    if (size_t(at) >= code.size()) {
      fail(warp, __builtin_ctz(mask), "it has run past the kernel's end");
      return false;
    }
    const Instruction &i = code[size_t(at)];
    uint32_t lanes = mask;
    if (i.isGuarded) {
      lanes = 0;
      const uint64_t *guards = warp.at(i.guard);
      for (int lane = 0; lane != lanesOfWarp; ++lane)
        if (has(mask, lane) && (uint8_t(guards[lane]) != 0) != i.isNegated)
          lanes |= 1u << lane;
    }
    switch (i.control) {
    case Control::None:
      if (lanes) {
        if (i.bytes)
          count(warp, i, lanes);
        i.handler(warp, i, lanes);
      }
      break;
    case Control::Branch:
      if (lanes == mask) {
        at = i.target - 1;
      } else if (lanes) {
        put(i.target, lanes);
        put(at + 1, mask & ~lanes);
        return warp.fault->empty();
      }
      break;
    case Control::Return:
      live &= ~lanes;
      if (lanes == mask)
        return warp.fault->empty();
      mask &= ~lanes;
      break;
    case Control::WarpBarrier:
    case Control::Shuffle:
      if (ready(i, mask) != mask) {
        put(at, mask);
        return warp.fault->empty();
      }
      if (i.handler)
        i.handler(warp, i, lanes);
      else
        for (int lane = 0; lane != lanesOfWarp; ++lane)
          warp.epochs[lane] += has(lanes, lane);
      break;
    }
    if (!warp.fault->empty()) {
      std::string where = "line " + std::to_string(i.line);
      if (i.place >= 0)
        where = module.places[size_t(i.place)] + " (" + where + ")";
      *warp.fault = where + ": block " + std::to_string(warp.block) + ", " + *warp.fault;
      return false;
    }
    ++at;
    if (at >= next || !groups.empty()) {
      put(at, mask);
      return true;
    }
  }
}

void Block::run(uint32_t threads) {
  live = threads == lanesOfWarp ? ~0u : (1u << threads) - 1;
  groups = {{0, live}};
  while (!groups.empty() && step()) {
  }
}

} // namespace

void emulator::load(Warp &warp, const Instruction &i, uint32_t mask) {
  for (int lane = 0; lane != lanesOfWarp; ++lane) {
    if (!has(mask, lane))
      continue;
    const uint8_t *from = warp.parameters + i.offset;
    uint8_t *written = nullptr;
    if (i.space != Space::Param) {
      from = resolve(warp, i, lane, /*writes=*/false, written);
      if (!from)
        return;
      if (written && memchr(written, 0, size_t(i.bytes) * i.count))
        return fail(warp, lane, "a read of what nobody wrote, at " +
                                    hex(warp.at(i.read[0])[lane] + uint64_t(i.offset)));
    }
    for (int n = 0; n != i.count; ++n) {
      uint64_t value = 0;
      memcpy(&value, from + n * i.bytes, i.bytes);
      if (i.isSigned && i.bytes < 8 && value >> (8 * i.bytes - 1) & 1)
        value |= ~uint64_t(0) << (8 * i.bytes);
      warp.at(i.written[n])[lane] = value;
    }
  }
}

void emulator::store(Warp &warp, const Instruction &i, uint32_t mask) {
  for (int lane = 0; lane != lanesOfWarp; ++lane) {
    if (!has(mask, lane))
      continue;
    uint8_t *written = nullptr;
    uint8_t *to = resolve(warp, i, lane, /*writes=*/true, written);
    if (!to)
      return;
    for (int n = 0; n != i.count; ++n)
      memcpy(to + n * i.bytes, &warp.at(i.read[1 + n])[lane], i.bytes);
    if (written)
      memset(written, 1, size_t(i.bytes) * i.count);
  }
}

// shfl.sync.idx: d, a, lane, clamp and segments, mask.
void emulator::shuffle(Warp &warp, const Instruction &i, uint32_t mask) {
  uint64_t before[lanesOfWarp];
  memcpy(before, warp.at(i.read[0]), sizeof before);
  for (int lane = 0; lane != lanesOfWarp; ++lane) {
    if (!has(mask, lane))
      continue;
    uint32_t from = uint32_t(warp.at(i.read[1])[lane]);
    uint32_t bounds = uint32_t(warp.at(i.read[2])[lane]);
    uint32_t segment = bounds >> 8 & 31, clamp = bounds & 31;
    uint32_t first = uint32_t(lane) & segment;
    uint32_t source = first | (from & 31 & ~segment);
    uint32_t last = first | (clamp & ~segment);
    if (source > last)
      source = uint32_t(lane);
    if (!has(mask, int(source)))
      return fail(warp, lane, "it asks lane " + std::to_string(source) +
                                  ", which takes no part in the shuffle");
    warp.at(i.written[0])[lane] = before[source];
  }
}

bool emulator::runBlock(const Module &module, const Kernel &kernel,
                        const uint8_t *parameters, Memory &memory, uint32_t block,
                        uint32_t blocks, uint32_t threads, uint64_t seed,
                        std::string &fault) {
  static thread_local Warp warp;
  static thread_local Scratch shared;
  shared.resize(kernel.sharedBytes);
  warp.kernel = &kernel;
  warp.parameters = parameters;
  warp.memory = &memory;
  warp.shared = &shared;
  warp.block = block;
  warp.fault = &fault;
  std::fill(std::begin(warp.epochs), std::end(warp.epochs), 1u);
  warp.local.assign(size_t(kernel.localBytes) * lanesOfWarp, 0);
  // Registers that nobody has written hold what the seed makes of them.
  warp.registers.resize(size_t(kernel.registers) * lanesOfWarp);
  for (uint64_t &value : warp.registers)
    value = seed = seed * 6364136223846793005u + 1442695040888963407u;
  for (const Preset &preset : kernel.presets)
    for (int lane = 0; lane != lanesOfWarp; ++lane) {
      uint64_t &value = warp.at(preset.index)[lane];
      switch (preset.special) {
      case Special::Constant:
        value = preset.value;
        break;
      case Special::Thread:
        value = uint64_t(lane);
        break;
      case Special::Threads:
        value = threads;
        break;
      case Special::Block:
        value = block;
        break;
      case Special::Blocks:
        value = blocks;
        break;
      }
    }
  Block(warp, module).run(threads);
  return fault.empty();
}
