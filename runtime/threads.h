// A pool of threads that runs the parallel regions of generated code.
#ifndef KVC_RUNTIME_THREADS_H
#define KVC_RUNTIME_THREADS_H

#include "memory.h"

namespace kvc {

// Threads of one pool at most, caller included.
constexpr int32_t maxThreads = 1024;

struct ThreadPool;

// How many CPUs this process may run on, at most maxThreads.
int32_t allowedCpus();

// A pool of `threads` in 1..maxThreads, of which the caller of a region is one; the
// others run in the environment of `numerics`, a kvc_numerics.
kvc_status createThreads(const Allocator &allocator, int32_t threads,
                         int64_t numerics, ThreadPool **out_pool);
void destroyThreads(ThreadPool *pool); // NULL is fine
// Destroys the pool of a parent process, whose threads this one doesn't have.
void forgetThreads(ThreadPool *pool); // NULL is fine

// Regions run one after another, from one thread at a time; a task starts none.
const kvc_executor *executorOf(ThreadPool *pool);

// How many regions of several tasks there have been; to be asked between them.
int64_t regionsOf(const ThreadPool *pool);

} // namespace kvc

#endif
