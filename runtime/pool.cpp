#include "pool.h"

#include "error.h"

namespace kvc {

constexpr int64_t pageAlignment = 64;

kvc_status createPool(CachePool *pool, int64_t pageBytes, int64_t pageCount) {
  *pool = {};
  int64_t rounded, bytes;
  if (!add(pageBytes, pageAlignment - 1, &rounded) ||
      !multiply(rounded / pageAlignment * pageAlignment, pageCount, &bytes))
    return fail(
        KVC_OUT_OF_MEMORY,
        "expected the cache's size to fit 64 bits, but got %lld pages of "
        "%lld bytes",
        static_cast<long long>(pageCount), static_cast<long long>(pageBytes));
  // Small pages, since capacity that nobody uses shall cost nothing.
  if (!map(&pool->memory, bytes, /*hugePages=*/false))
    return fail(KVC_OUT_OF_MEMORY, "no memory for a cache of %lld bytes",
                static_cast<long long>(bytes));
  pool->pageStride = rounded / pageAlignment * pageAlignment;
  return KVC_OK;
}

void destroyPool(CachePool *pool) { unmap(&pool->memory); }

int64_t takePage(CachePool *pool) {
  int64_t offset = pool->next;
  pool->next += pool->pageStride;
  return offset;
}

} // namespace kvc
