// Pages of a group of layers, and which of them each sequence holds.
#ifndef KVC_RUNTIME_POOL_H
#define KVC_RUNTIME_POOL_H

#include "kvc/kvc.h"
#include "memory.h"

namespace kvc {

// Pages of one size, behind each other. A page is named by its byte offset in
// `memory`, a multiple of 64. Sequences hold pages, and several can hold the same
// one; a page that nobody holds is free.
struct PagePool {
  const kvc_group *group; // what a page holds
  char *memory;
  int64_t firstPage;  // offset of
  int64_t pageStride; // bytes from page to page
  int64_t pageCount;
  bool poison;        // free pages hold bytes of 0xff
  int64_t *holders;   // [pageCount], how many sequences hold the page
  int64_t *free;      // [pageCount], a stack of the free pages
  int64_t freeCount;
  int64_t *counts; // [pageCount], scratch
  // The page of index i of sequence s at [s * tableStride + i], -1 where it holds
  // none: where none of its positions stands.
  int64_t *table;
  int64_t *newTable; // the same, scratch of a reordering
  int64_t tableStride;
};

// Gives a pool its sizes. It follows what takes `*bytes` bytes of its memory, and
// adds its own.
kvc_status sizePool(PagePool *pool, const kvc_group *group, int64_t pageCount,
                    int64_t *bytes);
// Reserves its lists, and touches none of them, since there may be too little.
kvc_status reservePool(PagePool *pool, const Allocator &allocator);
// Makes all pages free, which nobody holds; `memory` and tables are there.
void fillPool(PagePool *pool, int64_t sequences, bool poison);
void destroyPool(PagePool *pool, const Allocator &allocator);

// Takes a free page for one sequence. There must be one: whoever takes pages
// has counted before.
int64_t takePage(PagePool *pool);
// One more sequence holds the page, or one fewer.
void holdPage(PagePool *pool, int64_t page);
void dropPage(PagePool *pool, int64_t page);

inline int64_t numberOf(const PagePool &pool, int64_t page) {
  return (page - pool.firstPage) / pool.pageStride;
}
inline int64_t &holdersOf(const PagePool &pool, int64_t page) {
  return pool.holders[numberOf(pool, page)];
}
// The table of a sequence, [pages_per_sequence].
inline int64_t *pagesOf(const PagePool &pool, int64_t sequence) {
  return pool.table + sequence * pool.tableStride;
}

} // namespace kvc

#endif
