// The driver's functions, by the names that cuda.h gives them. What a stream is given is
// done when somebody waits for it, so that what nobody waits for shows.
#include "Warp.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>

using namespace emulator;

namespace {

// CUresult, as the driver API numbers them.
enum Result {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  InvalidDevice = 101,
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  InvalidHandle = 400,
  NotFound = 500,
  LaunchFailed = 719,
};

using Work = std::function<void()>;

struct Stream {
  std::deque<Work> pending;
  std::vector<Work> *captured = nullptr;
};

struct Graph {
  std::vector<Work> work;
};

struct Function {
  Module *module;
  const Kernel *kernel;
};

struct LoadedModule {
  Module module;
  uint64_t constants = 0;
  std::vector<std::unique_ptr<Function>> functions;
};

uint64_t setting(const char *name, uint64_t standard) {
  const char *text = getenv(name);
  return text && *text ? strtoull(text, nullptr, 0) : standard;
}

class Device {
public:
  Device()
      : memory(setting("KVC_EMULATOR_MEMORY", uint64_t(8) << 30)),
        seed(setting("KVC_EMULATOR_SEED", 1)),
        architecture(int(setting("KVC_EMULATOR_ARCHITECTURE", 80))) {}
  ~Device() { report(); }

  void launch(const Function &function, const std::vector<uint8_t> &parameters,
              uint32_t blocks, uint32_t threads);

  Memory memory;
  uint64_t seed;
  int architecture;
  bool hasFailed = false; // by a launch: as long as the process lives
  std::map<std::string, Traffic> kernels;

private:
  void report();
};

Device &device() {
  static Device one;
  return one;
}

std::recursive_mutex lock;

void Device::launch(const Function &function, const std::vector<uint8_t> &parameters,
                    uint32_t blocks, uint32_t threads) {
  if (hasFailed)
    return;
  const Kernel &kernel = *function.kernel;
  traffic = &kernels[kernel.name];
  ++traffic->launches;
  ++memory.launch;
  std::vector<uint32_t> order(blocks);
  for (uint32_t i = 0; i != blocks; ++i)
    order[i] = i;
  for (uint32_t i = blocks; i > 1; --i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[i - 1], order[(seed >> 33) % i]);
  }
  std::string fault;
  for (uint32_t block : order)
    if (!runBlock(*function.module, kernel, parameters.data(), memory, block, blocks,
                  threads, seed + block, fault)) {
      fprintf(stderr, "cuda-emulator: %s: %s\n", kernel.name.c_str(), fault.c_str());
      hasFailed = true;
      return;
    }
}

void Device::report() {
  const char *path = getenv("KVC_EMULATOR_REPORT");
  FILE *file = path && *path ? fopen(path, "w") : nullptr;
  if (!file)
    return;
  fprintf(file, "{\n");
  const char *separator = "";
  for (const auto &[name, of] : kernels) {
    fprintf(file,
            "%s  \"%s\": {\"launches\": %llu, \"global_bytes\": %llu, "
            "\"sector_bytes\": %llu, \"shared_bytes\": %llu}",
            separator, name.c_str(), static_cast<unsigned long long>(of.launches),
            static_cast<unsigned long long>(of.requested),
            static_cast<unsigned long long>(of.moved),
            static_cast<unsigned long long>(of.sharedBytes));
    separator = ",\n";
  }
  fprintf(file, "\n}\n");
  fclose(file);
}

int enqueue(Stream *stream, Work work) {
  if (!stream)
    return InvalidHandle;
  if (stream->captured)
    stream->captured->push_back(std::move(work));
  else
    stream->pending.push_back(std::move(work));
  return Success;
}

int finish(Stream &stream) {
  while (!stream.pending.empty()) {
    stream.pending.front()();
    stream.pending.pop_front();
  }
  return device().hasFailed ? LaunchFailed : Success;
}

// `bytes` of the device at `address`; null where they aren't there.
Scratch *rangeAt(uint64_t address, uint64_t bytes) {
  Scratch *found = device().memory.find(address);
  return found && found->holds(address, bytes) ? found : nullptr;
}

void failCopy(const char *what, uint64_t address, uint64_t bytes) {
  fprintf(stderr, "cuda-emulator: %s of %llu bytes at 0x%llx, which aren't allocated\n",
          what, static_cast<unsigned long long>(bytes),
          static_cast<unsigned long long>(address));
  device().hasFailed = true;
}

} // namespace

#define API extern "C" __attribute__((visibility("default"))) int
#define LOCKED std::lock_guard<std::recursive_mutex> locked(lock)

API cuInit(unsigned flags) { return flags ? InvalidValue : Success; }
API cuDriverGetVersion(int *version) { return *version = 12000, Success; }
API cuDeviceGetCount(int *count) { return *count = 1, Success; }
API cuDeviceGet(int *handle, int ordinal) {
  return ordinal == 0 ? (*handle = 0, Success) : InvalidDevice;
}
API cuDeviceGetName(char *name, int length, int) {
  snprintf(name, size_t(length), "emulated sm_%d", device().architecture);
  return Success;
}
API cuDeviceGetAttribute(int *value, int attribute, int) {
  constexpr int major = 75, minor = 76; // of the compute capability
  if (attribute == major)
    *value = device().architecture / 10;
  else if (attribute == minor)
    *value = device().architecture % 10;
  else
    return InvalidValue;
  return Success;
}
API cuDevicePrimaryCtxRetain(void **context, int) {
  return *context = &lock, Success;
}
API cuDevicePrimaryCtxRelease_v2(int) { return Success; }
API cuCtxPushCurrent_v2(void *) { return Success; }
API cuCtxPopCurrent_v2(void **context) { return *context = &lock, Success; }

API cuMemGetInfo_v2(size_t *free, size_t *total) {
  LOCKED;
  *free = device().memory.free(), *total = device().memory.total();
  return Success;
}
API cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  LOCKED;
  if (!bytes)
    return InvalidValue;
  uint64_t made = device().memory.allocate(bytes);
  return made ? (*address = made, Success) : OutOfMemory;
}
API cuMemFree_v2(uint64_t address) {
  LOCKED;
  return device().memory.release(address) ? Success : InvalidValue;
}

API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream *stream) {
  LOCKED;
  return enqueue(stream, [=] {
    Scratch *range = rangeAt(to, bytes);
    if (!range)
      return failCopy("a copy to the device", to, bytes);
    memcpy(&range->bytes[to - range->base], from, bytes);
    memset(&range->written[to - range->base], 1, bytes);
  });
}
API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream *stream) {
  LOCKED;
  return enqueue(stream, [=] {
    Scratch *range = rangeAt(from, bytes);
    if (!range)
      return failCopy("a copy from the device", from, bytes);
    memcpy(to, &range->bytes[from - range->base], bytes);
  });
}
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream *stream) {
  LOCKED;
  return enqueue(stream, [=] {
    Scratch *source = rangeAt(from, bytes), *target = rangeAt(to, bytes);
    if (!source || !target)
      return failCopy("a copy within the device", source ? to : from, bytes);
    memmove(&target->bytes[to - target->base], &source->bytes[from - source->base],
            bytes);
    memmove(&target->written[to - target->base], &source->written[from - source->base],
            bytes);
  });
}
API cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, Stream *stream) {
  LOCKED;
  return enqueue(stream, [=] {
    Scratch *range = rangeAt(to, bytes);
    if (!range)
      return failCopy("a fill", to, bytes);
    memset(&range->bytes[to - range->base], value, bytes);
    memset(&range->written[to - range->base], 1, bytes);
  });
}

API cuModuleLoadDataEx(LoadedModule **out, const void *image, unsigned count,
                       int *options, void **values) {
  LOCKED;
  constexpr int errorLog = 5, errorLogBytes = 6; // CU_JIT_ERROR_LOG_BUFFER and its size
  char *log = nullptr;
  size_t logBytes = 0;
  for (unsigned i = 0; i != count; ++i) {
    if (options[i] == errorLog)
      log = static_cast<char *>(values[i]);
    if (options[i] == errorLogBytes)
      logBytes = reinterpret_cast<size_t>(values[i]);
  }
  auto complain = [&](const std::string &text) {
    if (log && logBytes)
      snprintf(log, logBytes, "%s", text.c_str());
  };
  // A cubin or fatbin: the application goes on with its PTX.
  const char *text = static_cast<const char *>(image);
  if (memcmp(text, "\177ELF", 4) == 0 || memcmp(text, "\x50\xed\x55\xba", 4) == 0)
    return NoBinaryForGpu;
  auto loaded = std::make_unique<LoadedModule>();
  std::string error;
  if (!parse(text, loaded->module, error)) {
    complain(error);
    return InvalidPtx;
  }
  Module &module = loaded->module;
  int wanted = atoi(module.target.c_str() + 3);
  if (wanted > device().architecture) {
    complain("expected code for sm_" + std::to_string(device().architecture) +
             " or less, but got " + module.target);
    return NoBinaryForGpu;
  }
  if (!module.constants.empty()) {
    loaded->constants = device().memory.allocate(module.constants.size());
    if (!loaded->constants)
      return OutOfMemory;
    Scratch *range = device().memory.find(loaded->constants);
    range->bytes = module.constants;
    range->written.assign(module.constants.size(), 1);
    relocate(module, loaded->constants);
  }
  *out = loaded.release();
  return Success;
}
API cuModuleUnload(LoadedModule *module) {
  LOCKED;
  if (module->constants)
    device().memory.release(module->constants);
  delete module;
  return Success;
}
API cuModuleGetFunction(Function **out, LoadedModule *module, const char *name) {
  LOCKED;
  for (const Kernel &kernel : module->module.kernels)
    if (kernel.name == name) {
      module->functions.push_back(
          std::make_unique<Function>(Function{&module->module, &kernel}));
      *out = module->functions.back().get();
      return Success;
    }
  return NotFound;
}

API cuLaunchKernel(Function *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                   unsigned blockX, unsigned blockY, unsigned blockZ, unsigned shared,
                   Stream *stream, void **parameters, void **extra) {
  LOCKED;
  // The parameters come as one buffer: CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END.
  if (parameters || !extra || !gridX || gridY != 1 || gridZ != 1 || blockY != 1 ||
      blockZ != 1 || shared || !blockX || blockX > lanesOfWarp)
    return InvalidValue;
  const Kernel &kernel = *function->kernel;
  if (kernel.threads && blockX > kernel.threads)
    return InvalidValue;
  const uint8_t *bytes = nullptr;
  size_t size = 0;
  for (; *extra; extra += 2) {
    auto kind = reinterpret_cast<uintptr_t>(extra[0]);
    if (kind == 1)
      bytes = static_cast<const uint8_t *>(extra[1]);
    else if (kind == 2)
      size = *static_cast<const size_t *>(extra[1]);
    else
      return InvalidValue;
  }
  if (!bytes || size < size_t(kernel.parameterBytes))
    return InvalidValue;
  std::vector<uint8_t> copy(bytes, bytes + size);
  return enqueue(stream, [function, copy = std::move(copy), gridX, blockX] {
    device().launch(*function, copy, gridX, blockX);
  });
}

API cuStreamCreate(Stream **stream, unsigned) { return *stream = new Stream, Success; }
API cuStreamDestroy_v2(Stream *stream) {
  LOCKED;
  finish(*stream);
  delete stream;
  return Success;
}
API cuStreamSynchronize(Stream *stream) {
  LOCKED;
  return stream ? finish(*stream) : InvalidHandle;
}
API cuStreamBeginCapture_v2(Stream *stream, int) {
  LOCKED;
  if (stream->captured)
    return InvalidValue;
  stream->captured = new std::vector<Work>;
  return Success;
}
API cuStreamEndCapture(Stream *stream, Graph **graph) {
  LOCKED;
  if (!stream->captured)
    return InvalidValue;
  *graph = new Graph{std::move(*stream->captured)};
  delete stream->captured;
  stream->captured = nullptr;
  return Success;
}
API cuGraphInstantiateWithFlags(Graph **executable, Graph *graph, unsigned long long) {
  return *executable = new Graph(*graph), Success;
}
API cuGraphLaunch(Graph *graph, Stream *stream) {
  LOCKED;
  for (const Work &work : graph->work)
    if (int status = enqueue(stream, work))
      return status;
  return Success;
}
API cuGraphExecDestroy(Graph *graph) { return delete graph, Success; }
API cuGraphDestroy(Graph *graph) { return delete graph, Success; }

API cuGetErrorString(int result, const char **text) {
  static const std::pair<int, const char *> texts[] = {
      {Success, "no error"},
      {InvalidValue, "invalid argument"},
      {OutOfMemory, "out of memory"},
      {InvalidDevice, "invalid device ordinal"},
      {NoBinaryForGpu, "no kernel image is available for execution on the device"},
      {InvalidPtx, "a PTX JIT compilation failed"},
      {InvalidHandle, "invalid resource handle"},
      {NotFound, "named symbol not found"},
      {LaunchFailed, "unspecified launch failure"}};
  for (auto [code, words] : texts)
    if (code == result)
      return *text = words, Success;
  return *text = nullptr, InvalidValue;
}
