#include "memory.h"

#include "error.h"

#include <atomic>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace kvc {
namespace {

kvc_allocator hook;        // allocate is NULL: the system
std::atomic<int64_t> live; // blocks that were given out

void *count(void *memory) {
  if (memory)
    live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

// From the hook. Memory at another alignment is as good as none.
void *ask(int64_t bytes) {
  void *memory = hook.allocate(hook.user, bytes ? bytes : 1);
  if (!memory)
    return nullptr;
  if (reinterpret_cast<uintptr_t>(memory) % lineBytes != 0) {
    hook.release(hook.user, memory);
    return nullptr;
  }
  return memset(memory, 0, size_t(bytes));
}

} // namespace

void *allocateBytes(int64_t bytes) {
  return count(hook.allocate ? ask(bytes)
                             : calloc(bytes ? size_t(bytes) : 1, 1));
}

void *allocateLines(int64_t bytes) {
  if (hook.allocate)
    return count(ask(bytes));
  size_t lines = size_t(bytes ? (bytes - 1) / lineBytes + 1 : 1);
  void *memory = aligned_alloc(lineBytes, lines * lineBytes);
  return count(memory ? memset(memory, 0, lines * lineBytes) : nullptr);
}

void deallocate(void *memory) {
  if (!memory)
    return;
  if (hook.allocate)
    hook.release(hook.user, memory);
  else
    free(memory);
  live.fetch_sub(1, std::memory_order_release);
}

bool map(Mapping *mapping, int64_t bytes, bool hugePages) {
  size_t size = bytes ? size_t(bytes) : 1;
  void *address;
  if (hook.allocate) {
    address = ask(bytes);
  } else {
    address = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
      address = nullptr;
    else if (hugePages)
      madvise(address, size, MADV_HUGEPAGE);
  }
  if (!count(address))
    return false;
  *mapping = {static_cast<char *>(address), bytes};
  return true;
}

void unmap(Mapping *mapping) {
  if (hook.allocate) {
    deallocate(mapping->address);
  } else if (mapping->address) {
    munmap(mapping->address, mapping->bytes ? size_t(mapping->bytes) : 1);
    live.fetch_sub(1, std::memory_order_release);
  }
  *mapping = {nullptr, 0};
}

} // namespace kvc

using namespace kvc;

kvc_status kvc_set_allocator(const kvc_allocator *allocator) {
  if (allocator && !allocator->allocate)
    return failNull("allocator->allocate");
  if (allocator && !allocator->release)
    return failNull("allocator->release");
  if (int64_t blocks = live.load(std::memory_order_acquire))
    return fail(KVC_BUSY,
                "expected no model, session or sampler to be alive when the "
                "allocator is set, but %lld blocks of memory are in use",
                static_cast<long long>(blocks));
  hook = allocator ? *allocator : kvc_allocator{};
  return KVC_OK;
}
