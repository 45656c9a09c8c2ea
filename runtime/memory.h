// Checked sizes, zeroed arrays, and memory straight from the system.
#ifndef KVC_RUNTIME_MEMORY_H
#define KVC_RUNTIME_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

namespace kvc {

// Products and sums of sizes; false when 64 bits don't hold them.
inline bool multiply(int64_t a, int64_t b, int64_t *product) {
  return !__builtin_mul_overflow(a, b, product);
}
inline bool add(int64_t a, int64_t b, int64_t *sum) {
  return !__builtin_add_overflow(a, b, sum);
}

// A zeroed array of `count` elements, NULL when there is no memory; release
// with free(). An empty array still has an address.
template <typename T> T *allocate(int64_t count) {
  return static_cast<T *>(calloc(count ? size_t(count) : 1, sizeof(T)));
}

// Zeroed memory in whole pages of the system, which takes physical memory only
// where it is touched. NULL address: none, or not yet.
struct Mapping {
  char *address;
  int64_t bytes;
};

// False when the system refuses. Huge pages make touched memory cheaper to walk
// and more of it: right for what is used in full.
inline bool map(Mapping *mapping, int64_t bytes, bool hugePages) {
  size_t size = bytes ? size_t(bytes) : 1;
  void *address = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return false;
  if (hugePages)
    madvise(address, size, MADV_HUGEPAGE);
  *mapping = {static_cast<char *>(address), bytes};
  return true;
}

inline void unmap(Mapping *mapping) {
  if (mapping->address)
    munmap(mapping->address, mapping->bytes ? size_t(mapping->bytes) : 1);
  *mapping = {nullptr, 0};
}

} // namespace kvc

#endif
