// A module of PTX, decoded once: what an instruction does to the lanes of a warp is a
// function, and what it names are registers. Constants, and what tells threads apart,
// stand in registers that nobody writes.
#ifndef KVC_CUDA_EMULATOR_PTX_H
#define KVC_CUDA_EMULATOR_PTX_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace emulator {

constexpr int lanesOfWarp = 32;

struct Warp;
struct Instruction;
// Does the instruction for the lanes of `mask`.
using Handler = void (*)(Warp &warp, const Instruction &instruction, uint32_t mask);

enum class Control : uint8_t { None, Branch, Return, WarpBarrier, Shuffle };
enum class Space : uint8_t { Param, Global, Shared, Local };

struct Instruction {
  Handler handler = nullptr;
  Control control = Control::None;
  Space space = Space::Global;
  uint8_t bytes = 0, count = 0; // of an access: of each number, and how many
  bool isSigned = false;        // what is loaded widens by its sign
  bool isGuarded = false, isNegated = false; // by a predicate
  uint32_t guard = 0;
  uint32_t written[4] = {}; // registers
  uint32_t read[5] = {};
  int64_t offset = 0;  // of an address
  int32_t target = -1; // of a branch
  int32_t line = 0;    // in the text
  int32_t place = -1;  // of Module::places
};

struct Variable {
  int64_t offset, bytes;
};

// A register that has the same value in every launch, or one of the thread's numbers.
enum class Special : uint8_t { Constant, Thread, Threads, Block, Blocks };
struct Preset {
  uint32_t index;
  Special special;
  uint64_t value;
};

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::map<std::string, Variable, std::less<>> parameters;
  int64_t parameterBytes = 0, sharedBytes = 0, localBytes = 0;
  int64_t threads = 0; // of a block, where it says so
  uint32_t registers = 0;
  std::vector<Preset> presets;
};

struct Module {
  std::string target; // "sm_80"
  std::vector<Kernel> kernels;
  // Constants: each at a multiple of its alignment in `constants`.
  std::map<std::string, Variable, std::less<>> globals;
  std::vector<uint8_t> constants;
  std::vector<std::string> places; // "file:line" of the source
};

// Decodes `text`; the registers that hold addresses of globals get `base` added. False
// with a sentence in `error` where it isn't PTX that this emulator knows.
bool parse(const char *text, Module &module, std::string &error);
// Addresses of constants are marked by it until these have been put somewhere.
inline constexpr uint64_t constantMark = 0x5eed000000000000;
// Where they have been put.
void relocate(Module &module, uint64_t base);

// The function for an instruction such as "add.rn.f32"; null where there is none.
Handler findHandler(std::string_view name);
// Those of "mov.b64 {a, b}, c" and of "mov.b64 a, {b, c}".
Handler splitter(std::string_view name);
Handler joiner(std::string_view name);

} // namespace emulator

#endif // KVC_CUDA_EMULATOR_PTX_H
