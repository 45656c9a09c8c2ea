// Memory that knows its bounds, what was written, and who touched it last.
#ifndef KVC_CUDA_EMULATOR_MEMORY_H
#define KVC_CUDA_EMULATOR_MEMORY_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace emulator {

// Who touched two bytes last, in which launch, and at which barrier of his.
struct Touch {
  uint32_t writeLaunch = 0, readLaunch = 0;
  uint32_t writeBlock = 0, readBlock = 0;
  uint32_t writeEpoch = 0, readEpoch = 0;
  uint8_t writeLane = 0, readLane = 0; // readLane: 255 for several
};

// Where an access comes from.
struct Asker {
  uint32_t launch, block;
  int lane;
  const uint32_t *epochs; // of the lanes of its warp
};

// A run of bytes, of the device or of a block.
struct Scratch {
  uint64_t base = 0; // its first address
  std::vector<uint8_t> bytes, written; // 1 where a byte was written
  // Of each two bytes, by runs of them; empty until a kernel writes.
  static constexpr uint64_t touchedBytes = 2, touchesOfRun = 2048;
  std::vector<std::unique_ptr<Touch[]>> touches;

  void resize(int64_t size) {
    bytes.assign(size_t(size), 0);
    written.assign(size_t(size), 0);
    touches.clear();
  }
  bool holds(uint64_t address, uint64_t count) const {
    return address >= base && address - base <= bytes.size() &&
           count <= bytes.size() - (address - base);
  }
  // Notes a read or a write of the bytes at `offset`; a sentence where another thread
  // touches them without a barrier in between, else null.
  const char *touch(uint64_t offset, uint64_t count, bool writes, const Asker &asker);
};

// The device's: allocations with gaps between them.
class Memory {
public:
  explicit Memory(uint64_t size) : size(size) {}
  uint64_t allocate(uint64_t bytes); // 0: out of memory
  bool release(uint64_t address);
  // The allocation in which `address` stands, or null.
  Scratch *find(uint64_t address);
  uint64_t free() const { return size - used; }
  uint64_t total() const { return size; }
  uint32_t launch = 0; // the number of the one at hand

private:
  uint64_t size, used = 0, next = 0x700000000000;
  std::map<uint64_t, std::unique_ptr<Scratch>> allocations;
  Scratch *last = nullptr;
};

} // namespace emulator

#endif // KVC_CUDA_EMULATOR_MEMORY_H
