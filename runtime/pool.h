// Memory of cache pages.
#ifndef KVC_RUNTIME_POOL_H
#define KVC_RUNTIME_POOL_H

#include "kvc/kvc.h"
#include "memory.h"

namespace kvc {

// Pages of one size in one mapping. A page is named by its byte offset from the
// mapping's start, a multiple of 64.
struct CachePool {
  Mapping memory;
  int64_t pageStride; // bytes from page to page
  int64_t next;       // offset of the first page that nobody has taken
};

kvc_status createPool(CachePool *pool, int64_t pageBytes, int64_t pageCount);
void destroyPool(CachePool *pool);

// Takes a page. The pool must have one left: whoever creates it counts.
int64_t takePage(CachePool *pool);

} // namespace kvc

#endif
