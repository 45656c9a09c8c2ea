#include "Memory.h"

using namespace emulator;

const char *Scratch::touch(uint64_t offset, uint64_t count, bool writes,
                           const Asker &asker) {
  if (touches.empty()) {
    if (!writes)
      return nullptr;
    touches.resize(bytes.size() / (touchedBytes * touchesOfRun) + 1);
  }
  uint64_t last = (offset + count - 1) / touchedBytes;
  for (uint64_t at = offset / touchedBytes; at <= last; ++at) {
    std::unique_ptr<Touch[]> &run = touches[at / touchesOfRun];
    if (!run) {
      if (!writes)
        continue;
      run = std::make_unique<Touch[]>(touchesOfRun);
    }
    Touch &touch = run[at % touchesOfRun];
    bool isSame = touch.writeLaunch == asker.launch;
    if (isSame && touch.writeBlock != asker.block)
      return writes ? "a write of what another block writes in the same launch"
                    : "a read of what another block writes in the same launch";
    if (isSame && touch.writeLane != asker.lane &&
        touch.writeEpoch == asker.epochs[touch.writeLane])
      return writes ? "a write of what another lane wrote since the last barrier"
                    : "a read of what another lane wrote since the last barrier";
    if (!writes) {
      bool isOther = touch.readLaunch == asker.launch &&
                     touch.readEpoch == asker.epochs[asker.lane] &&
                     touch.readBlock == asker.block && touch.readLane != asker.lane;
      touch.readLane = isOther ? 255 : uint8_t(asker.lane);
      touch.readLaunch = asker.launch;
      touch.readBlock = asker.block;
      touch.readEpoch = asker.epochs[asker.lane];
      continue;
    }
    bool wasRead = touch.readLaunch == asker.launch;
    if (wasRead && touch.readBlock != asker.block)
      return "a write of what another block reads in the same launch";
    if (wasRead && touch.readLane != asker.lane &&
        touch.readEpoch == asker.epochs[asker.lane])
      return "a write of what another lane read since the last barrier";
    touch.writeLaunch = asker.launch;
    touch.writeBlock = asker.block;
    touch.writeLane = uint8_t(asker.lane);
    touch.writeEpoch = asker.epochs[asker.lane];
  }
  return nullptr;
}

// Addresses are never used twice, so that what was released is found out.
uint64_t Memory::allocate(uint64_t bytes) {
  if (bytes > free())
    return 0;
  auto made = std::make_unique<Scratch>();
  made->base = next;
  made->resize(int64_t(bytes));
  next += (bytes + 0xffff) / 0x10000 * 0x10000 + 0x10000;
  used += bytes;
  uint64_t address = made->base;
  allocations[address] = std::move(made);
  return address;
}

bool Memory::release(uint64_t address) {
  auto found = allocations.find(address);
  if (found == allocations.end())
    return false;
  used -= found->second->bytes.size();
  if (last == found->second.get())
    last = nullptr;
  allocations.erase(found);
  return true;
}

Scratch *Memory::find(uint64_t address) {
  if (last && last->holds(address, 1))
    return last;
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin())
    return nullptr;
  Scratch *found = std::prev(after)->second.get();
  if (!found->holds(address, 0))
    return nullptr;
  return last = found;
}
