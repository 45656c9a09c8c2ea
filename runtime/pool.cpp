#include "pool.h"

#include "error.h"

#include <string.h>

namespace kvc {

kvc_status sizePool(PagePool *pool, const kvc_group *group, int64_t pageCount,
                    int64_t *bytes) {
  pool->group = group;
  pool->pageCount = pageCount;
  pool->firstPage = *bytes;
  int64_t pageBytes = group->page_bytes;
  int64_t rounded, all;
  if (!add(pageBytes, lineBytes - 1, &rounded) ||
      !multiply(rounded / lineBytes * lineBytes, pageCount, &all) ||
      !add(*bytes, all, bytes))
    return fail(
        KVC_OUT_OF_MEMORY,
        "expected the cache's size to fit 64 bits, but got %lld pages of "
        "%lld bytes",
        static_cast<long long>(pageCount), static_cast<long long>(pageBytes));
  pool->pageStride = rounded / lineBytes * lineBytes;
  return KVC_OK;
}

kvc_status reservePool(PagePool *pool, const Allocator &allocator) {
  pool->holders = allocate<int64_t>(allocator, pool->pageCount);
  pool->free = allocate<int64_t>(allocator, pool->pageCount);
  pool->counts = allocate<int64_t>(allocator, pool->pageCount);
  if (!pool->holders || !pool->free || !pool->counts)
    return fail(KVC_OUT_OF_MEMORY, "no memory for the lists of %lld pages",
                static_cast<long long>(pool->pageCount));
  return KVC_OK;
}

void fillPool(PagePool *pool, int64_t sequences, bool poison) {
  for (int64_t i = pool->pageCount; i-- > 0;) // the first page is taken first
    pool->free[pool->freeCount++] = pool->firstPage + i * pool->pageStride;
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t i = 0; i < pool->group->pages_per_sequence; ++i)
      pagesOf(*pool, s)[i] = -1;
  pool->poison = poison;
  if (poison)
    memset(pool->memory + pool->firstPage, 0xff,
           size_t(pool->pageCount * pool->pageStride));
}

void destroyPool(PagePool *pool, const Allocator &allocator) {
  deallocate(allocator, pool->counts);
  deallocate(allocator, pool->free);
  deallocate(allocator, pool->holders);
}

int64_t takePage(PagePool *pool) {
  int64_t page = pool->free[--pool->freeCount];
  holdersOf(*pool, page) = 1;
  return page;
}

void holdPage(PagePool *pool, int64_t page) { ++holdersOf(*pool, page); }

void dropPage(PagePool *pool, int64_t page) {
  if (--holdersOf(*pool, page) > 0)
    return;
  if (pool->poison)
    memset(pool->memory + page, 0xff, size_t(pool->pageStride));
  pool->free[pool->freeCount++] = page;
}

} // namespace kvc
