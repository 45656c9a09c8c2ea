#include "pool.h"

#include "error.h"

#include <string.h>

namespace kvc {

kvc_status createPool(CachePool *pool, const Allocator &allocator,
                      const kvc_library *library, int64_t pageCount) {
  *pool = {};
  pool->allocator = allocator;
  int64_t pageBytes = library->page_bytes;
  int64_t rounded, bytes, tokens;
  if (!add(pageBytes, lineBytes - 1, &rounded) ||
      !multiply(rounded / lineBytes * lineBytes, pageCount, &bytes))
    return fail(
        KVC_OUT_OF_MEMORY,
        "expected the cache's size to fit 64 bits, but got %lld pages of "
        "%lld bytes",
        static_cast<long long>(pageCount), static_cast<long long>(pageBytes));
  // Capacity that nobody uses shall cost nothing. Pages of the cache are filled one
  // after another, so that one huge page holding several is; but the positions of
  // one as large as a contiguous cache are scattered over all of it.
  bool hugePages = pageBytes <= hugePageBytes;
  if (!map(allocator, &pool->memory, bytes, hugePages))
    return fail(KVC_OUT_OF_MEMORY,
                "no memory for a cache of %lld bytes, %lld pages of %lld "
                "positions: a model compiled with a smaller --capacity takes less",
                static_cast<long long>(bytes),
                static_cast<long long>(pageCount),
                static_cast<long long>(library->positions_per_page));
  pool->pageStride = rounded / lineBytes * lineBytes;
  pool->pageCount = pageCount;
  pool->positions = library->positions_per_page;
  pool->holders = allocate<int64_t>(allocator, pageCount);
  pool->free = allocate<int64_t>(allocator, pageCount);
  pool->filled = allocate<int64_t>(allocator, pageCount);
  if (multiply(pageCount, pool->positions, &tokens))
    pool->tokens = allocate<int32_t>(allocator, tokens);
  if (!pool->holders || !pool->free || !pool->filled ||
      !pool->tokens)
    return fail(KVC_OUT_OF_MEMORY, "no memory for the lists of %lld pages",
                static_cast<long long>(pageCount));
  return KVC_OK;
}

void fillPool(CachePool *pool, bool poison) {
  for (int64_t i = pool->pageCount; i-- > 0;) // the first page is taken first
    pool->free[pool->freeCount++] = i * pool->pageStride;
  pool->poison = poison;
  if (poison)
    memset(pool->memory.address, 0xff, size_t(pool->memory.bytes));
}

void destroyPool(CachePool *pool) {
  deallocate(pool->allocator, pool->tokens);
  deallocate(pool->allocator, pool->filled);
  deallocate(pool->allocator, pool->free);
  deallocate(pool->allocator, pool->holders);
  unmap(pool->allocator, &pool->memory);
}

int64_t metadataBytes(const CachePool &pool) {
  return pool.pageCount *
         int64_t(3 * sizeof(int64_t) + // holders, free, filled
                 sizeof *pool.tokens * size_t(pool.positions));
}

int64_t takePage(CachePool *pool) {
  int64_t page = pool->free[--pool->freeCount];
  holdersOf(*pool, page) = 1;
  return page;
}

void holdPage(CachePool *pool, int64_t page) { ++holdersOf(*pool, page); }

void dropPage(CachePool *pool, int64_t page) {
  if (--holdersOf(*pool, page) > 0)
    return;
  if (pool->poison)
    memset(pool->memory.address + page, 0xff, size_t(pool->pageStride));
  pool->free[pool->freeCount++] = page;
}

} // namespace kvc
