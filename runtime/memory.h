// Checked sizes, and memory from the application's allocator or the system.
#ifndef KVC_RUNTIME_MEMORY_H
#define KVC_RUNTIME_MEMORY_H

#include "kvc/kvc.h"

namespace kvc {

// Products and sums of sizes; false when 64 bits don't hold them.
inline bool multiply(int64_t a, int64_t b, int64_t *product) {
  return !__builtin_mul_overflow(a, b, product);
}
inline bool add(int64_t a, int64_t b, int64_t *sum) {
  return !__builtin_add_overflow(a, b, sum);
}

// The alignment of a cache line, and the most that anything here needs.
constexpr int64_t lineBytes = 64;

// The system's huge pages, where it has them.
constexpr int64_t hugePageBytes = 2 << 20;

// Where something has its memory from, and gives it back to. `allocate` is NULL:
// the system.
using Allocator = kvc_allocator;

// The allocator that a caller gave, or `standard`; error when a function of it is
// missing.
kvc_status readAllocator(Allocator *allocator, const kvc_allocator *given,
                         const Allocator &standard);

// Zeroed memory at the alignment of any C type, or of a line; NULL when there
// is none. Nothing at all still has an address. Release it with deallocate().
void *allocateBytes(const Allocator &allocator, int64_t bytes);
void *allocateLines(const Allocator &allocator, int64_t bytes);
// NULL is fine, and so is an allocator that stands in the memory itself.
void deallocate(Allocator allocator, void *memory);

// A zeroed array of `count` elements.
template <typename T> T *allocate(const Allocator &allocator, int64_t count) {
  int64_t bytes;
  if (!multiply(count, int64_t(sizeof(T)), &bytes))
    return nullptr;
  return static_cast<T *>(allocateBytes(allocator, bytes));
}

// Zeroed memory that starts at a line. From the system it comes in whole pages
// of the system, which take physical memory only where they are touched. NULL
// address: none, or not yet.
struct Mapping {
  char *address;
  int64_t bytes;
  void *base; // what was mapped, which begins no later
  int64_t mapped;
};

// False when there is none. Huge pages make touched memory cheaper to walk and
// more of it: right for what is used in full, if it is as large as one.
bool map(const Allocator &allocator, Mapping *mapping, int64_t bytes,
         bool hugePages);
void unmap(const Allocator &allocator, Mapping *mapping);

} // namespace kvc

#endif
