// The emulated device, by kernels of a few instructions: each instruction against values
// computed here, over all pairs of edge values; and each check by a kernel that it stops.
//
//   kvc-emulator-test            all instructions, and what crosses lanes
//   kvc-emulator-test FAULT      a launch that fails; the emulator says why
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

extern "C" {
int cuInit(unsigned);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuMemFree_v2(uint64_t);
int cuMemGetInfo_v2(size_t *, size_t *);
int cuMemcpyHtoDAsync_v2(uint64_t, const void *, size_t, void *);
int cuMemcpyDtoHAsync_v2(void *, uint64_t, size_t, void *);
int cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, void *);
int cuMemsetD8Async(uint64_t, unsigned char, size_t, void *);
int cuModuleLoadDataEx(void **, const void *, unsigned, int *, void **);
int cuModuleUnload(void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void *, void **, void **);
int cuStreamCreate(void **, unsigned);
int cuStreamDestroy_v2(void *);
int cuStreamSynchronize(void *);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphLaunch(void *, void *);
int cuGraphExecDestroy(void *);
int cuGraphDestroy(void *);
}

namespace {

#define CHECK(condition)                                                               \
  do                                                                                   \
    if (!(condition)) {                                                                \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);          \
      exit(1);                                                                         \
    }                                                                                  \
  while (0)

void *stream;

// A kernel of 32 threads with addresses of memory as parameters p0 to p2.
std::string kernelOf(const std::string &body, const char *head = "") {
  return std::string(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(\n"
                     "\t.param .u64 p0,\n\t.param .u64 p1,\n\t.param .u64 p2\n)\n"
                     ".maxntid 32, 1, 1\n{\n") +
         head +
         "\tld.param.b64 \t%rd0, [p0];\n\tld.param.b64 \t%rd1, [p1];\n"
         "\tld.param.b64 \t%rd2, [p2];\n\tmov.u32 \t%r0, %tid.x;\n" +
         body + "\tret;\n}\n";
}

struct Loaded {
  void *module = nullptr, *function = nullptr;
  explicit Loaded(const std::string &ptx) {
    char log[256] = "";
    int options[] = {5, 6};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
    if (cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, values)) {
      fprintf(stderr, "%s\n%s", log, ptx.c_str());
      exit(1);
    }
    CHECK(cuModuleGetFunction(&function, module, "k") == 0);
  }
  ~Loaded() { cuModuleUnload(module); }
  int launch(std::vector<uint64_t> parameters, unsigned blocks = 1) {
    parameters.resize(3);
    size_t size = 8 * parameters.size();
    void *extra[] = {reinterpret_cast<void *>(1), parameters.data(),
                     reinterpret_cast<void *>(2), &size, nullptr};
    return cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, stream, nullptr, extra);
  }
};

uint64_t allocate(size_t bytes) {
  uint64_t address = 0;
  CHECK(cuMemAlloc_v2(&address, bytes) == 0);
  return address;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

template <typename T> uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T> T valueOf(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T> std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>)
    return {T(0), -T(0), T(1), T(-1.5), T(3.1415926535), Limits::denorm_min(),
            -Limits::min(), Limits::max(), Limits::lowest(), Limits::infinity(),
            -Limits::infinity(), Limits::quiet_NaN(), Limits::epsilon(), T(16777217)};
  else
    return {T(0), T(1), T(2), T(-1), T(-7), T(31), T(32), T(63), T(64), T(100),
            Limits::min(), Limits::max(), T(Limits::max() - 1), T(0x5a5a5a5a)};
}

const char *suffixOf(size_t bytes) { return bytes == 8 ? "b64" : bytes == 4 ? "b32" : "b16"; }
const char *prefixOf(size_t bytes) { return bytes == 8 ? "%w" : bytes == 4 ? "%v" : "%h"; }

int tested = 0;

// `name` of up to three numbers, over all triples of edges: 32 at a time. A predicate is
// what selp makes of it; NaN is NaN.
template <typename R, typename... A>
void test(const std::string &name, R (*expected)(A...)) {
  constexpr bool isPredicate = std::is_same_v<R, bool>;
  std::vector<std::vector<uint64_t>> columns(sizeof...(A));
  std::vector<uint64_t> results;
  auto add = [&](A... a) {
    size_t i = 0;
    ((columns[i++].push_back(bitsOf(a))), ...);
    results.push_back(isPredicate ? uint64_t(expected(a...)) : bitsOf(expected(a...)));
  };
  if constexpr (sizeof...(A) == 1)
    for (auto a : edges<A...>())
      add(a);
  else if constexpr (sizeof...(A) == 2)
    [&]<typename X, typename Y>(X *, Y *) {
      for (X a : edges<X>())
        for (Y b : edges<Y>())
          add(a, b);
    }(static_cast<A *>(nullptr)...);
  else
    [&]<typename X, typename Y, typename Z>(X *, Y *, Z *) {
      for (X a : edges<X>())
        for (Y b : edges<Y>())
          for (Z c : edges<Z>())
            add(a, b, c);
    }(static_cast<A *>(nullptr)...);

  size_t sizes[] = {sizeof(A)...};
  std::string body = "\tmov.u32 \t%r1, %ctaid.x;\n\tshl.b32 \t%r2, %r1, 5;\n"
                     "\tadd.s32 \t%r3, %r2, %r0;\n\tmul.wide.u32 \t%rd3, %r3, 8;\n"
                     "\tadd.s64 \t%rd4, %rd1, %rd3;\n";
  std::string call = "\t" + name + " \t";
  std::string result = isPredicate ? "%p0" : std::string(prefixOf(sizeof(R))) + "9";
  call += result;
  size_t padded = (results.size() + 31) / 32 * 32;
  for (size_t i = 0; i != sizeof...(A); ++i) {
    std::string operand = prefixOf(sizes[i]) + std::to_string(i);
    body += "\tadd.s64 \t%rd5, %rd0, %rd3;\n\tld.global." + std::string(suffixOf(sizes[i])) +
            " \t" + operand + ", [%rd5+" + std::to_string(8 * padded * i) + "];\n";
    call += ", " + operand;
  }
  body += call + ";\n";
  if (isPredicate)
    body += "\tselp.b64 \t%w9, 1, 0, %p0;\n";
  body += "\tst.global." + std::string(isPredicate ? "b64" : suffixOf(sizeof(R))) +
          " \t[%rd4], " + (isPredicate ? "%w9" : result) + ";\n";

  std::vector<uint64_t> input;
  for (auto &column : columns) {
    column.resize(padded, column[0]);
    input.insert(input.end(), column.begin(), column.end());
  }
  std::vector<uint64_t> output(padded, 0);
  uint64_t from = allocate(8 * input.size()), to = allocate(8 * padded);
  Loaded kernel(kernelOf(body));
  CHECK(!cuMemcpyHtoDAsync_v2(from, input.data(), 8 * input.size(), stream));
  CHECK(!cuMemsetD8Async(to, 0, 8 * padded, stream));
  CHECK(!kernel.launch({from, to}, unsigned(padded / 32)));
  CHECK(!cuMemcpyDtoHAsync_v2(output.data(), to, 8 * padded, stream));
  CHECK(!cuStreamSynchronize(stream));
  for (size_t i = 0; i != results.size(); ++i) {
    bool isSame = output[i] == results[i];
    if constexpr (std::is_floating_point_v<R>)
      isSame |= std::isnan(valueOf<R>(output[i])) && std::isnan(valueOf<R>(results[i]));
    if (!isSame) {
      fprintf(stderr, "%s: %zu: expected %llx, but got %llx\n", name.c_str(), i,
              static_cast<unsigned long long>(results[i]),
              static_cast<unsigned long long>(output[i]));
      exit(1);
    }
  }
  cuMemFree_v2(from);
  cuMemFree_v2(to);
  ++tested;
}

template <typename T> void testIntegers(const std::string &type) {
  using U = std::make_unsigned_t<T>;
  test("add." + type, +[](T a, T b) { return T(U(a) + U(b)); });
  test("sub." + type, +[](T a, T b) { return T(U(a) - U(b)); });
  test("mul.lo." + type, +[](T a, T b) { return T(U(a) * U(b)); });
  test("mad.lo." + type, +[](T a, T b, T c) { return T(U(a) * U(b) + U(c)); });
  test("min." + type, +[](T a, T b) { return a < b ? a : b; });
  test("max." + type, +[](T a, T b) { return a > b ? a : b; });
  test("shr." + type, +[](T a, uint32_t n) {
    constexpr uint32_t bits = 8 * sizeof(T);
    return n >= bits ? T(a < 0 ? -1 : 0) : T(a >> n);
  });
  test("setp.eq." + type, +[](T a, T b) { return a == b; });
  test("setp.ne." + type, +[](T a, T b) { return a != b; });
  test("setp.lt." + type, +[](T a, T b) { return a < b; });
  test("setp.le." + type, +[](T a, T b) { return a <= b; });
  test("setp.gt." + type, +[](T a, T b) { return a > b; });
  test("setp.ge." + type, +[](T a, T b) { return a >= b; });
}

template <typename T> void testBits(const std::string &type) {
  test("and." + type, +[](T a, T b) { return T(a & b); });
  test("or." + type, +[](T a, T b) { return T(a | b); });
  test("xor." + type, +[](T a, T b) { return T(a ^ b); });
  test("not." + type, +[](T a) { return T(~a); });
  test("mov." + type, +[](T a) { return a; });
  test("shl." + type, +[](T a, uint32_t n) {
    return n >= 8 * sizeof(T) ? T(0) : T(a << n);
  });
}

template <typename T> void testFloats(const std::string &type) {
  test("add.rn." + type, +[](T a, T b) { return a + b; });
  test("sub.rn." + type, +[](T a, T b) { return a - b; });
  test("mul.rn." + type, +[](T a, T b) { return a * b; });
  test("div.rn." + type, +[](T a, T b) { return a / b; });
  test("rcp.rn." + type, +[](T a) { return T(1) / a; });
  test("sqrt.rn." + type, +[](T a) { return std::sqrt(a); });
  test("fma.rn." + type, +[](T a, T b, T c) { return std::fma(a, b, c); });
  test("neg." + type, +[](T a) { return -a; });
  test("abs." + type, +[](T a) { return std::fabs(a); });
  test("setp.eq." + type, +[](T a, T b) { return a == b; });
  test("setp.lt." + type, +[](T a, T b) { return a < b; });
  test("setp.le." + type, +[](T a, T b) { return a <= b; });
  test("setp.gt." + type, +[](T a, T b) { return a > b; });
  test("setp.ge." + type, +[](T a, T b) { return a >= b; });
  test("setp.nan." + type, +[](T a, T b) { return std::isnan(a) || std::isnan(b); });
}

void testInstructions() {
  testIntegers<int32_t>("s32");
  testIntegers<uint32_t>("u32");
  testIntegers<int64_t>("s64");
  testIntegers<uint64_t>("u64");
  testBits<uint16_t>("b16");
  testBits<uint32_t>("b32");
  testBits<uint64_t>("b64");
  testFloats<float>("f32");
  testFloats<double>("f64");
  test("neg.s32", +[](int32_t a) { return int32_t(0u - uint32_t(a)); });
  test("neg.s64", +[](int64_t a) { return int64_t(0 - uint64_t(a)); });
  test("mul.wide.s32", +[](int32_t a, int32_t b) { return int64_t(a) * b; });
  test("mul.wide.u32", +[](uint32_t a, uint32_t b) { return uint64_t(a) * b; });
  test("mul.hi.u32", +[](uint32_t a, uint32_t b) {
    return uint32_t(uint64_t(a) * b >> 32);
  });
  test("mul.hi.s32", +[](int32_t a, int32_t b) { return int32_t(int64_t(a) * b >> 32); });
  test("mul.hi.u64", +[](uint64_t a, uint64_t b) { // by halves
    uint64_t low = (a & 0xffffffff) * (b & 0xffffffff);
    uint64_t first = (a >> 32) * (b & 0xffffffff) + (low >> 32);
    uint64_t second = (a & 0xffffffff) * (b >> 32) + (first & 0xffffffff);
    return (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
  });
  test("mul.hi.s64", +[](int64_t a, int64_t b) {
    return int64_t(static_cast<__int128>(a) * b >> 64);
  });
  test("bfe.u32", +[](uint32_t a, uint32_t at, uint32_t count) {
    uint64_t wide = a; // positions and widths count by their lowest eight bits
    at &= 255, count &= 255;
    wide = at >= 32 ? 0 : wide >> at;
    return count >= 32 ? uint32_t(wide) : uint32_t(wide & ((uint64_t(1) << count) - 1));
  });
  test("bfe.u64", +[](uint64_t a, uint32_t at, uint32_t count) {
    unsigned __int128 wide = a;
    at &= 255, count &= 255;
    wide = at >= 64 ? 0 : wide >> at;
    return count >= 64 ? uint64_t(wide)
                       : uint64_t(wide & ((static_cast<unsigned __int128>(1) << count) - 1));
  });
  test("dp4a.u32.s32", +[](uint32_t a, uint32_t b, int32_t c) {
    int64_t sum = c;
    for (int i = 0; i != 4; ++i)
      sum += int64_t(valueOf<uint8_t>(a >> 8 * i)) * valueOf<int8_t>(b >> 8 * i);
    return int32_t(sum);
  });
  test("shr.u16", +[](uint16_t a, uint32_t n) { return uint16_t(n > 15 ? 0 : a >> n); });
  test("shr.s16", +[](int16_t a, uint32_t n) { return int16_t(a >> (n > 15 ? 15 : n)); });
  test("cvt.rni.f32.f32", +[](float a) { return std::rint(a); });
  test("cvt.rzi.s32.f32", +[](float a) {
    double whole = std::trunc(double(a));
    return std::isnan(a)           ? 0
           : whole > INT32_MAX ? INT32_MAX
           : whole < INT32_MIN ? INT32_MIN
                               : int32_t(whole);
  });
  test("cvt.u64.u32", +[](uint32_t a) { return uint64_t(a); });
  test("cvt.u32.u64", +[](uint64_t a) { return uint32_t(a); });
  test("cvt.s64.s32", +[](int32_t a) { return int64_t(a); });
  test("cvt.u32.u16", +[](uint16_t a) { return uint32_t(a); });
  test("cvt.u16.u32", +[](uint32_t a) { return uint16_t(a); });
  test("cvt.rn.f64.s64", +[](int64_t a) { return double(a); });
  test("cvt.rn.f32.s32", +[](int32_t a) { return float(a); });
  test("cvt.rn.f32.u32", +[](uint32_t a) { return float(a); });
  test("cvt.rn.f32.s16", +[](int16_t a) { return float(a); });
  test("cvt.rn.f32.u16", +[](uint16_t a) { return float(a); });
  test("cvt.f64.f32", +[](float a) { return double(a); });
  test("cvt.rn.f32.f64", +[](double a) { return float(a); });
  test("cvt.rn.f16.f32", +[](float a) {
    return std::isnan(a) ? uint16_t(0x7fff) : uint16_t(bitsOf(_Float16(a)));
  });
  test("cvt.f32.f16", +[](uint16_t a) { return float(valueOf<_Float16>(a)); });
}

//===----------------------------------------------------------------------===//
// What crosses lanes
//===----------------------------------------------------------------------===//

const char addressOfLane[] = "\tmul.wide.u32 \t%rd3, %r0, 4;\n\tadd.s64 \t%rd4, %rd0, %rd3;\n";

std::vector<uint32_t> run(const std::string &body, const char *head = "") {
  std::vector<uint32_t> numbers(32);
  uint64_t memory = allocate(128);
  Loaded kernel(kernelOf(addressOfLane + body, head));
  CHECK(!cuMemsetD8Async(memory, 0, 128, stream));
  CHECK(!kernel.launch({memory}));
  CHECK(!cuMemcpyDtoHAsync_v2(numbers.data(), memory, 128, stream));
  CHECK(!cuStreamSynchronize(stream));
  cuMemFree_v2(memory);
  return numbers;
}

void testLanes() {
  // Lane 3 of each half: a segment of 16 lanes.
  auto numbers = run("\tshfl.sync.idx.b32 \t%r1, %r0, 3, 4127, -1;\n"
                     "\tst.global.b32 \t[%rd4], %r1;\n");
  for (uint32_t lane = 0; lane != 32; ++lane)
    CHECK(numbers[lane] == (lane & 16) + 3);
  // Lanes in two branches, which meet again.
  numbers = run("\tsetp.lt.u32 \t%p0, %r0, 5;\n\t@%p0 bra \t$L1;\n"
                "\tadd.s32 \t%r1, %r0, 100;\n\tbra.uni \t$L2;\n"
                "$L1:\n\tadd.s32 \t%r1, %r0, 200;\n$L2:\n"
                "\tshfl.sync.idx.b32 \t%r2, %r1, 4, 31, -1;\n"
                "\tadd.s32 \t%r3, %r1, %r2;\n\tst.global.b32 \t[%rd4], %r3;\n");
  for (uint32_t lane = 0; lane != 32; ++lane)
    CHECK(numbers[lane] == lane + (lane < 5 ? 200 : 100) + 204);
  // A loop of as many rounds as the lane's number.
  numbers = run("\tmov.b32 \t%r1, 0;\n\tmov.b32 \t%r2, 7;\n$L1:\n"
                "\tsetp.ge.u32 \t%p0, %r1, %r0;\n\t@%p0 bra \t$L2;\n"
                "\tadd.s32 \t%r1, %r1, 1;\n\tmad.lo.s32 \t%r2, %r2, 3, 1;\n"
                "\tbra.uni \t$L1;\n$L2:\n\tst.global.b32 \t[%rd4], %r2;\n");
  uint32_t expected = 7;
  for (uint32_t lane = 0; lane != 32; ++lane, expected = expected * 3 + 1)
    CHECK(numbers[lane] == expected);
  // Shared memory, read after a barrier, in vectors; and words from their halves.
  numbers = run("\tmov.b64 \t%rd5, s;\n\tadd.s64 \t%rd6, %rd5, %rd3;\n"
                "\tst.shared.b32 \t[%rd6], %r0;\n\tbar.warp.sync \t-1;\n"
                "\tand.b32 \t%r1, %r0, 28;\n\tmul.wide.u32 \t%rd7, %r1, 4;\n"
                "\tadd.s64 \t%rd8, %rd5, %rd7;\n"
                "\tld.shared.v4.b32 \t{%r2, %r3, %r4, %r5}, [%rd8];\n"
                "\tmov.b64 \t%rd9, {%r5, %r2};\n\tmov.b64 \t{%r6, %r7}, %rd9;\n"
                "\tmov.b64 \t{_, %r8}, %rd9;\n\tmad.lo.s32 \t%r9, %r6, 1000, %r8;\n"
                "\tst.global.b32 \t[%rd4], %r9;\n",
                "\t.shared .align 16 .b8 s[128];\n");
  for (uint32_t lane = 0; lane != 32; ++lane)
    CHECK(numbers[lane] == ((lane & 28) + 3) * 1000 + (lane & 28));
}

void testDriver() {
  size_t free, total;
  uint64_t memory = 0;
  CHECK(!cuMemGetInfo_v2(&free, &total));
  CHECK(cuMemAlloc_v2(&memory, total + 1) == 2 && memory == 0);
  size_t after;
  CHECK(!cuMemGetInfo_v2(&after, &total) && after == free);
  // Work is done when somebody waits for it.
  memory = allocate(4);
  uint32_t number = 7, read = 0;
  CHECK(!cuMemcpyHtoDAsync_v2(memory, &number, 4, stream));
  CHECK(!cuMemcpyDtoHAsync_v2(&read, memory, 4, stream));
  CHECK(read == 0);
  CHECK(!cuStreamSynchronize(stream) && read == 7);
  // A graph, twice.
  Loaded kernel(kernelOf("\tsetp.ne.b32 \t%p0, %r0, 0;\n\t@%p0 bra \t$L1;\n"
                         "\tld.global.b32 \t%r1, [%rd0];\n\tmul.lo.s32 \t%r2, %r1, 3;\n"
                         "\tst.global.b32 \t[%rd0], %r2;\n$L1:\n"));
  void *graph, *executable;
  CHECK(!cuStreamBeginCapture_v2(stream, 0) && !kernel.launch({memory}));
  CHECK(!cuStreamEndCapture(stream, &graph));
  CHECK(!cuGraphInstantiateWithFlags(&executable, graph, 0) && !cuGraphDestroy(graph));
  CHECK(!cuGraphLaunch(executable, stream) && !cuGraphLaunch(executable, stream));
  CHECK(!cuMemcpyDtoHAsync_v2(&read, memory, 4, stream));
  CHECK(!cuStreamSynchronize(stream) && read == 63);
  cuGraphExecDestroy(executable);
  cuMemFree_v2(memory);
  void *none;
  CHECK(cuModuleGetFunction(&none, kernel.module, "other") == 500);
  CHECK(cuModuleLoadDataEx(&none, "\177ELF", 0, nullptr, nullptr) == 209);
  CHECK(cuModuleLoadDataEx(&none, ".target sm_90\n", 0, nullptr, nullptr) == 209);
  uint64_t parameters[3] = {};
  size_t size = 8;
  void *extra[] = {reinterpret_cast<void *>(1), parameters, reinterpret_cast<void *>(2),
                   &size, nullptr};
  CHECK(cuLaunchKernel(kernel.function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, extra) == 1);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

const char shared[] = "\t.shared .align 16 .b8 s[128];\n";
const char storeShared[] = "\tmov.b64 \t%rd5, s;\n\tadd.s64 \t%rd6, %rd5, %rd3;\n"
                           "\tst.shared.b32 \t[%rd6], %r0;\n";
const char readNeighbour[] = "\txor.b64 \t%rd7, %rd3, 4;\n\tadd.s64 \t%rd8, %rd5, %rd7;\n"
                             "\tld.shared.b32 \t%r1, [%rd8];\n"
                             "\tst.global.b32 \t[%rd4], %r1;\n";

struct Case {
  const char *name;
  std::string body;
  const char *head = "";
  unsigned blocks = 1;
};

int fault(const char *name) {
  const std::vector<Case> cases = {
      {"outside", "\tst.global.b32 \t[%rd4+4], %r0;\n"},
      {"misaligned", "\tst.global.b32 \t[%rd4+2], %r0;\n"},
      {"released", "\tst.global.b32 \t[%rd1], %r0;\n"},
      {"unwritten", "\tld.global.b32 \t%r1, [%rd4];\n"},
      {"unwritten-shared", "\tmov.b64 \t%rd5, s;\n\tld.shared.b32 \t%r1, [%rd5];\n", shared},
      {"no-barrier", std::string(storeShared) + readNeighbour, shared},
      {"barrier", std::string(storeShared) + "\tbar.warp.sync \t-1;\n" + readNeighbour, shared},
      {"read-before-write",
       std::string(storeShared) + "\tbar.warp.sync \t-1;\n" + readNeighbour +
           "\tst.shared.b32 \t[%rd6], %r1;\n", shared},
      {"blocks", "\tst.global.b32 \t[%rd4], %r0;\n", "", 2},
      {"divergent-barrier", "\tsetp.lt.u32 \t%p0, %r0, 5;\n\t@%p0 bra \t$L1;\n"
                            "\tbar.warp.sync \t-1;\n\tbra.uni \t$L2;\n$L1:\n"
                            "\tbar.warp.sync \t-1;\n$L2:\n"},
      {"absent-lane", "\tsetp.lt.u32 \t%p0, %r0, 5;\n\t@%p0 bra \t$L1;\n"
                      "\tshfl.sync.idx.b32 \t%r1, %r0, 2, 31, -32;\n$L1:\n"},
      {"local", "\tmov.b64 \t%rd5, 8;\n\tst.local.b32 \t[%rd5], %r0;\n",
       "\t.local .align 8 .b8 l[8];\n"},
  };
  for (const Case &one : cases)
    if (one.name == std::string(name)) {
      uint64_t memory = allocate(128), gone = allocate(128);
      cuMemFree_v2(gone);
      Loaded kernel(kernelOf(addressOfLane + one.body, one.head));
      CHECK(!kernel.launch({memory, gone}, one.blocks));
      int status = cuStreamSynchronize(stream);
      // It stays so.
      CHECK(cuStreamSynchronize(stream) == status);
      printf("%s: %d\n", name, status);
      return 0;
    }
  // Text that it doesn't know.
  char log[256] = "";
  int options[] = {5, 6};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)}, *module;
  std::string ptx = kernelOf("\t" + std::string(name) + ";\n");
  printf("%d: ", cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, values));
  printf("%s\n", log);
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  CHECK(!cuInit(0) && !cuStreamCreate(&stream, 0));
  if (count > 1)
    return fault(arguments[1]);
  testInstructions();
  testLanes();
  testDriver();
  printf("%d instructions\n", tested);
  cuStreamDestroy_v2(stream);
}
