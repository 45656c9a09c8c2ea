// What the machine could do at most, in the same process and at the same time.
#ifndef KVC_BENCH_ROOF_H
#define KVC_BENCH_ROOF_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Bytes to read: those of a mapped file, or memory of our own that was written.
class Bytes {
public:
  static Bytes file(const std::string &path);
  static Bytes memory(int64_t size);
  Bytes(Bytes &&other) noexcept;
  ~Bytes();

  const char *begin; // at a line
  int64_t size;      // a multiple of a line: a rest is left out

private:
  Bytes(void *mapped, int64_t size);
};

// Part of some bytes.
struct Span {
  const char *begin;
  int64_t size;
};

// Seconds in which `threads` read all of these once, each thread what it comes to. A
// step of decoding comes to few bytes again and again, and so does this.
double readSeconds(const std::vector<Span> &spans, int64_t threads);

// f32 operations a second of `threads` that do fused multiply-adds in registers, at
// the width that the CPU level uses; a multiply-add is two.
double fmaRate(bool wide, int64_t threads);

#endif
