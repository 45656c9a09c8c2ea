// The state of a warp and of its block.
#ifndef KVC_CUDA_EMULATOR_WARP_H
#define KVC_CUDA_EMULATOR_WARP_H

#include "Memory.h"
#include "Ptx.h"

#include <cstring>

namespace emulator {

// What stops a launch: a sentence, and where.
struct Fault {
  std::string text;
};

// Lanes that are at one instruction.
struct Group {
  int32_t at;
  uint32_t mask;
};

struct Warp {
  const Kernel *kernel;
  const uint8_t *parameters;
  Memory *memory;        // of the device
  Scratch *shared;       // of the block
  std::vector<uint8_t> local; // [lanes][localBytes]
  std::vector<uint64_t> registers; // [registers][lanes]
  uint32_t epochs[lanesOfWarp];    // barriers of the warp that each lane has passed
  uint32_t block;
  std::string *fault; // set: the launch stops

  uint64_t *at(uint32_t index) { return &registers[size_t(index) * lanesOfWarp]; }
};

inline bool has(uint32_t mask, int lane) { return mask >> lane & 1; }

// Loads and stores of the instruction's space.
void load(Warp &warp, const Instruction &instruction, uint32_t mask);
void store(Warp &warp, const Instruction &instruction, uint32_t mask);
void shuffle(Warp &warp, const Instruction &instruction, uint32_t mask);

// What a launch has moved.
struct Traffic {
  uint64_t launches = 0, requested = 0, moved = 0; // bytes of global memory
  uint64_t sharedBytes = 0;
};
// The launch at hand's.
extern Traffic *traffic;

// Runs a block of `threads` threads from its start to its end; false with `fault`.
bool runBlock(const Module &module, const Kernel &kernel, const uint8_t *parameters,
              Memory &memory, uint32_t block, uint32_t blocks, uint32_t threads,
              uint64_t seed, std::string &fault);

} // namespace emulator

#endif // KVC_CUDA_EMULATOR_WARP_H
