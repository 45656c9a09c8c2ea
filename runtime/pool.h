// Memory of cache pages.
#ifndef KVC_RUNTIME_POOL_H
#define KVC_RUNTIME_POOL_H

#include "kvc/kvc.h"
#include "memory.h"

namespace kvc {

// Pages of one size in one mapping. A page is named by its byte offset from the
// mapping's start, a multiple of 64. Sequences hold pages, and several can hold
// the same one; a page that nobody holds is free.
struct CachePool {
  Allocator allocator; // that it comes from
  Mapping memory;
  int64_t pageStride; // bytes from page to page
  int64_t pageCount;
  int64_t positions;   // of one page
  bool poison;         // free pages hold bytes of 0xff
  int64_t *holders; // [pageCount], how many sequences hold the page
  int64_t *free;       // [pageCount], a stack of the free pages
  int64_t freeCount;
  int64_t *filled; // [pageCount], scratch: positions in use
  int32_t *tokens; // [pageCount, positions], whose keys and values they are
};

// Reserves a pool of `pageCount` pages with the geometry of the library, and
// touches none of its memory, since there may be too little.
kvc_status createPool(CachePool *pool, const Allocator &allocator,
                      const kvc_library *library, int64_t pageCount);
// Makes all pages free.
void fillPool(CachePool *pool, bool poison);
void destroyPool(CachePool *pool);

// Bytes of what the pool keeps beside the pages.
int64_t metadataBytes(const CachePool &pool);

// Takes a free page for one sequence. There must be one: whoever takes pages
// has counted before.
int64_t takePage(CachePool *pool);
// One more sequence holds the page, or one fewer.
void holdPage(CachePool *pool, int64_t page);
void dropPage(CachePool *pool, int64_t page);

inline int64_t &holdersOf(const CachePool &pool, int64_t page) {
  return pool.holders[page / pool.pageStride];
}
inline int32_t *tokensOf(const CachePool &pool, int64_t page) {
  return pool.tokens + page / pool.pageStride * pool.positions;
}

} // namespace kvc

#endif
