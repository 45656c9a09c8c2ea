#include "memory.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace kvc {

kvc_status readAllocator(Allocator *allocator, const kvc_allocator *given,
                         const Allocator &standard) {
  if (given && !given->allocate)
    return failNull("allocator->allocate");
  if (given && !given->release)
    return failNull("allocator->release");
  *allocator = given ? *given : standard;
  return KVC_OK;
}

// From the application. Memory at another alignment is as good as none.
static void *ask(const Allocator &allocator, int64_t bytes) {
  void *memory = allocator.allocate(allocator.user, bytes ? bytes : 1);
  if (!memory)
    return nullptr;
  if (reinterpret_cast<uintptr_t>(memory) % lineBytes != 0) {
    allocator.release(allocator.user, memory);
    return nullptr;
  }
  return memset(memory, 0, size_t(bytes));
}

void *allocateBytes(const Allocator &allocator, int64_t bytes) {
  return allocator.allocate ? ask(allocator, bytes)
                            : calloc(bytes ? size_t(bytes) : 1, 1);
}

void *allocateLines(const Allocator &allocator, int64_t bytes) {
  if (allocator.allocate)
    return ask(allocator, bytes);
  size_t lines = size_t(bytes ? (bytes - 1) / lineBytes + 1 : 1);
  void *memory = aligned_alloc(lineBytes, lines * lineBytes);
  return memory ? memset(memory, 0, lines * lineBytes) : nullptr;
}

void deallocate(Allocator allocator, void *memory) {
  if (memory && allocator.allocate)
    allocator.release(allocator.user, memory);
  else
    free(memory);
}

bool map(const Allocator &allocator, Mapping *mapping, int64_t bytes,
         bool hugePages) {
  if (allocator.allocate) {
    void *address = ask(allocator, bytes);
    *mapping = {static_cast<char *>(address), bytes, address, 0};
    return address;
  }
  // Huge pages begin at multiples of their size. What is mapped to reach the first is
  // never touched.
  bool huge = hugePages && bytes >= hugePageBytes;
  int64_t size;
  if (!add(bytes ? bytes : 1, huge ? hugePageBytes : 0, &size))
    return false;
  void *base = mmap(nullptr, size_t(size), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return false;
  auto *address = static_cast<char *>(base);
  if (huge) {
    address += -reinterpret_cast<uintptr_t>(base) % uintptr_t(hugePageBytes);
    madvise(address, size_t(bytes), MADV_HUGEPAGE); // a wish: small ones do, too
  }
  *mapping = {address, bytes, base, size};
  return true;
}

void unmap(const Allocator &allocator, Mapping *mapping) {
  if (allocator.allocate)
    deallocate(allocator, mapping->base);
  else if (mapping->base)
    munmap(mapping->base, size_t(mapping->mapped));
  *mapping = {};
}

} // namespace kvc
