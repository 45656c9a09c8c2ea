#include "threads.h"

#include "error.h"
#include "float_environment.h"

#include <atomic>
#include <linux/futex.h>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kvc {

// A region is cut into pieces, which threads claim one by one by counting
// `ticket` down. Ticket and region number are one word, so that a claim can only
// succeed in the region whose fields were read before it: while pieces are left
// to claim, the region lasts and its fields stand. The region ends when all its
// pieces are done; no thread need have seen it.
struct ThreadPool {
  kvc_executor executor; // first: the address of both is one
  Allocator allocator;     // that it comes from
  int32_t threads;
  int32_t started; // workers that exist
  int64_t numerics; // a kvc_numerics, in whose environment they run
  int spinRounds;  // of waiting before a thread sleeps
  pthread_t *workers;
  int64_t regions; // so far, written by who calls for them

  // Region number << 16 | pieces not claimed.
  alignas(64) std::atomic<uint64_t> ticket;

  // The region's fields, in the ticket's cache line. Relaxed atomics: a late
  // thread may read them while the next region is written, but its claim fails.
  std::atomic<kvc_task> task;
  std::atomic<void *> context;
  std::atomic<int64_t> count;
  std::atomic<int64_t> pieceTasks;

  // By workers: a futex, for the caller, who sleeps on it where `waits` is set.
  alignas(64) std::atomic<uint32_t> piecesDone;
  std::atomic<bool> waits;

  alignas(64) std::atomic<uint32_t> signal; // the workers' futex: counts wake-ups
  std::atomic<int32_t> sleepers;
  std::atomic<bool> stop;
};

namespace {

constexpr uint64_t unclaimedMask = 0xffff;

// Pieces for each thread: enough that a thread which is held up costs an eighth
// of its share, few enough that claiming costs little.
constexpr int64_t piecesPerThread = 8;

// Rounds of waiting before a thread sleeps: 0.1 to 0.2 ms, longer than the
// serial work between two regions of a model. Where there are more threads than
// CPUs, who waits takes a CPU from who works, and sleeps at once.
constexpr int spinRounds = 4096;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

void futexWait(std::atomic<uint32_t> *word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

// Claims and does pieces until none is left; returns how many.
uint32_t doPieces(ThreadPool *pool) {
  uint32_t finished = 0;
  uint64_t ticket = pool->ticket.load(std::memory_order_acquire);
  while (uint64_t unclaimed = ticket & unclaimedMask) {
    kvc_task task = pool->task.load(std::memory_order_relaxed);
    void *context = pool->context.load(std::memory_order_relaxed);
    int64_t count = pool->count.load(std::memory_order_relaxed);
    int64_t size = pool->pieceTasks.load(std::memory_order_relaxed);
    if (!pool->ticket.compare_exchange_weak(ticket, ticket - 1,
                                            std::memory_order_acq_rel,
                                            std::memory_order_acquire))
      continue;
    int64_t begin = (int64_t(unclaimed) - 1) * size;
    int64_t end = begin + size < count ? begin + size : count;
    task(context, begin, end);
    ++finished;
    ticket = pool->ticket.load(std::memory_order_acquire);
  }
  return finished;
}

bool hasWork(ThreadPool *pool) {
  return (pool->ticket.load(std::memory_order_seq_cst) & unclaimedMask) ||
         pool->stop.load(std::memory_order_relaxed);
}

// A worker counts itself among the sleepers before it looks at the ticket for
// the last time, and the caller looks at the sleepers after it has written the
// ticket: one of the two sees the other. Where the caller sets the count to 0 behind
// the worker, the signal has changed since the worker read it.
void awaitWork(ThreadPool *pool) {
  for (int round = 0; round < pool->spinRounds; ++round) {
    if (hasWork(pool))
      return;
    pause();
  }
  for (;;) {
    uint32_t signal = pool->signal.load(std::memory_order_seq_cst);
    pool->sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (hasWork(pool))
      return;
    futexWait(&pool->signal, signal);
    if (hasWork(pool))
      return;
  }
}

// Who is woken may have to wait for a CPU: it no longer counts, or each region until
// then would wake it again. Who has come by itself still counts, and is woken in vain.
void wakeSleepers(ThreadPool *pool) {
  if (pool->sleepers.load(std::memory_order_seq_cst) == 0)
    return;
  pool->sleepers.store(0, std::memory_order_seq_cst);
  pool->signal.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(&pool->signal);
}

// The caller waits for the pieces that workers have claimed. It says that it sleeps
// before the kernel compares the count for the last time, and a worker counts
// before it looks: one of the two sees the other.
void awaitPieces(ThreadPool *pool, uint32_t pieces) {
  auto done = [&] { return pool->piecesDone.load(std::memory_order_seq_cst); };
  for (int round = 0; round < pool->spinRounds; ++round) {
    if (done() == pieces)
      return;
    pause();
  }
  pool->waits.store(true, std::memory_order_seq_cst);
  for (uint32_t seen; (seen = done()) != pieces;)
    futexWait(&pool->piecesDone, seen);
  pool->waits.store(false, std::memory_order_relaxed);
}

void *runWorker(void *argument) {
  auto *pool = static_cast<ThreadPool *>(argument);
  FloatEnvironment environment(pool->numerics);
  while (!pool->stop.load(std::memory_order_relaxed)) {
    if (uint32_t finished = doPieces(pool)) {
      pool->piecesDone.fetch_add(finished, std::memory_order_seq_cst);
      if (pool->waits.load(std::memory_order_seq_cst))
        futexWakeAll(&pool->piecesDone);
    }
    awaitWork(pool);
  }
  return nullptr;
}

void parallelFor(const kvc_executor *self, kvc_task task, void *context,
                 int64_t count) {
  auto *pool = reinterpret_cast<ThreadPool *>(const_cast<kvc_executor *>(self));
  if (count <= 0)
    return;
  pool->regions += count > 1;
  if (count == 1 || pool->threads == 1) {
    task(context, 0, count);
    return;
  }
  int64_t size = count / (pool->threads * piecesPerThread);
  size = size ? size : 1;
  int64_t pieces = (count - 1) / size + 1;
  pool->task.store(task, std::memory_order_relaxed);
  pool->context.store(context, std::memory_order_relaxed);
  pool->count.store(count, std::memory_order_relaxed);
  pool->pieceTasks.store(size, std::memory_order_relaxed);
  pool->piecesDone.store(0, std::memory_order_relaxed);
  uint64_t region = pool->ticket.load(std::memory_order_relaxed) >> 16;
  pool->ticket.store((region + 1) << 16 | uint64_t(pieces),
                     std::memory_order_seq_cst);
  wakeSleepers(pool);

  awaitPieces(pool, uint32_t(pieces) - doPieces(pool));
}

// Workers take no signals, which are for the application's own threads, but those
// of their own faults, so that its handlers see them.
bool startWorkers(ThreadPool *pool) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (int fault : faults)
    sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  while (pool->started < pool->threads - 1 &&
         pthread_create(&pool->workers[pool->started], nullptr, runWorker,
                        pool) == 0)
    ++pool->started;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pool->started == pool->threads - 1;
}

} // namespace

// The most pieces: count / floor(count / n) < 2 n for n = threads * 8.
static_assert(2 * maxThreads * piecesPerThread <= int64_t(unclaimedMask),
              "pieces must fit a ticket");

int32_t allowedCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  int count = CPU_COUNT(&set);
  return count < maxThreads ? count : maxThreads;
}

static_assert(alignof(ThreadPool) <= lineBytes, "see allocateLines");

kvc_status createThreads(const Allocator &allocator, int32_t threads,
                         int64_t numerics, ThreadPool **out_pool) {
  void *memory = allocateLines(allocator, sizeof(ThreadPool));
  auto *workers = allocate<pthread_t>(allocator, threads - 1);
  if (!memory || !workers) {
    deallocate(allocator, memory);
    deallocate(allocator, workers);
    return fail(KVC_OUT_OF_MEMORY, "no memory for %d threads", threads);
  }
  auto *pool = new (memory) ThreadPool{};
  pool->executor.parallel_for = parallelFor;
  pool->allocator = allocator;
  pool->threads = threads;
  pool->numerics = numerics;
  pool->spinRounds = threads <= allowedCpus() ? spinRounds : 0;
  pool->workers = workers;
  if (!startWorkers(pool)) {
    int32_t started = pool->started;
    destroyThreads(pool);
    return fail(KVC_OUT_OF_MEMORY,
                "expected the system to start %d threads, but it started %d",
                threads - 1, started);
  }
  *out_pool = pool;
  return KVC_OK;
}

void destroyThreads(ThreadPool *pool) {
  if (!pool)
    return;
  pool->stop.store(true, std::memory_order_seq_cst);
  wakeSleepers(pool);
  for (int32_t i = 0; i < pool->started; ++i)
    pthread_join(pool->workers[i], nullptr);
  forgetThreads(pool);
}

void forgetThreads(ThreadPool *pool) {
  if (!pool)
    return;
  deallocate(pool->allocator, pool->workers);
  deallocate(pool->allocator, pool);
}

const kvc_executor *executorOf(ThreadPool *pool) { return &pool->executor; }

int64_t regionsOf(const ThreadPool *pool) { return pool->regions; }

} // namespace kvc
