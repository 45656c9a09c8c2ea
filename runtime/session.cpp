#include "session.h"

#include "cancellation.h"
#include "cpu.h"
#include "error.h"
#include "memory.h"
#include "page_table.h"
#include "params.h"
#include "turn.h"

#include <stdlib.h>
#include <new>
#include <pthread.h>
#include <unistd.h>

namespace kvc {
namespace {

kvc_status checkParams(const kvc_library *library,
                       const kvc_session_params &params) {
  if (params.sequences < 1 || params.sequences > INT32_MAX)
    return fail(KVC_INVALID_ARGUMENT,
                "expected sequences to be in 1..%d, or 0 for one, but got %lld",
                INT32_MAX, static_cast<long long>(params.sequences));
  if (params.capacity < 0 || params.capacity > library->capacity)
    return fail(
        KVC_INVALID_ARGUMENT,
        "expected capacity to be in 1..%lld (the model's), or 0 for all "
        "of it, but got %lld",
        static_cast<long long>(library->capacity),
        static_cast<long long>(params.capacity));
  if (params.threads < 0 || params.threads > maxThreads)
    return fail(
        KVC_INVALID_ARGUMENT,
        "expected threads to be in 1..%d, or 0 for one on each CPU, but "
        "got %d",
        maxThreads, params.threads);
  if (params.executor && params.threads)
    return fail(KVC_INVALID_ARGUMENT,
                "expected threads to be 0 with an executor, which has its own, but "
                "got %d",
                params.threads);
  if (params.executor && !params.executor->parallel_for)
    return failNull("executor->parallel_for");
  if (params.poison != 0 && params.poison != 1)
    return fail(KVC_INVALID_ARGUMENT,
                "expected poison to be 0 or 1, but got %d", params.poison);
  return KVC_OK;
}

// Pages of all sequences at capacity; the most that 64 bits hold, where they hold
// fewer.
int64_t allPages(const kvc_group &group, int64_t capacity, int64_t sequences) {
  int64_t all, each = pagesOfRange(group, 0, capacity);
  return multiply(sequences, each, &all) ? all : INT64_MAX;
}

int64_t capacityOf(const kvc_library *library, const kvc_session_params &params) {
  return params.capacity ? params.capacity : library->capacity;
}

kvc_status checkPoolPages(const kvc_library *library,
                          const kvc_session_params &params) {
  int64_t all = 0;
  for (int64_t i = 0; i < library->groups_count; ++i) {
    int64_t mine = allPages(library->groups[i], capacityOf(library, params),
                            params.sequences);
    all = all < mine ? mine : all;
  }
  if (params.pool_pages < 0 || params.pool_pages > all)
    return fail(KVC_INVALID_ARGUMENT,
                "expected pool_pages to be in 1..%lld (%lld for each of %lld "
                "sequences), or 0 for all of them, but got %lld",
                static_cast<long long>(all),
                static_cast<long long>(all / params.sequences),
                static_cast<long long>(params.sequences),
                static_cast<long long>(params.pool_pages));
  return KVC_OK;
}

// A token is four bytes; a fork copies none of the pages that it doesn't write to.
kvc_group groupOfTokens(const kvc_library *library) {
  static const kvc_section section = {0, 1, 1, 1, sizeof(int32_t)};
  constexpr int64_t positions = lineBytes;
  kvc_group group = {};
  group.positions_per_page = positions;
  group.pages_per_sequence = (library->capacity - 1) / positions + 1;
  group.page_bytes = positions * section.bytes;
  group.sections_count = 1;
  group.sections = &section;
  return group;
}

// The pages of the library's groups, the largest part.
kvc_status reserveCache(kvc_session *session, const kvc_session_params &params) {
  const kvc_library *library = session->model->library;
  int64_t bytes = 0;
  bool hugePages = true;
  for (int64_t i = 0; i < library->groups_count; ++i) {
    const kvc_group *group = &library->groups[i];
    int64_t pages = allPages(*group, session->capacity, session->sequences);
    if (params.pool_pages && params.pool_pages < pages)
      pages = params.pool_pages;
    if (kvc_status status = sizePool(&session->pools[i], group, pages, &bytes))
      return status;
    // Capacity that nobody uses shall cost nothing. Pages of the cache are filled
    // one after another, so that one huge page holding several is; but the
    // positions of one as large as a contiguous cache are scattered over all of it.
    hugePages &= group->page_bytes <= hugePageBytes;
  }
  if (map(session->allocator, &session->cache, bytes, hugePages))
    return KVC_OK;
  return fail(KVC_OUT_OF_MEMORY,
              "no memory for a cache of %lld bytes, %lld sequences of %lld "
              "positions: a model compiled with a smaller --capacity takes less",
              static_cast<long long>(bytes),
              static_cast<long long>(session->sequences),
              static_cast<long long>(session->capacity));
}

kvc_status reserveTokens(kvc_session *session) {
  PagePool *pool = &tokenPool(session);
  session->tokenGroup = groupOfTokens(session->model->library);
  int64_t bytes = 0;
  int64_t pages =
      allPages(session->tokenGroup, session->capacity, session->sequences);
  if (kvc_status status = sizePool(pool, &session->tokenGroup, pages, &bytes))
    return status;
  if (map(session->allocator, &session->tokenPages, bytes, /*hugePages=*/false))
    return KVC_OK;
  return fail(KVC_OUT_OF_MEMORY, "no memory for %lld bytes of tokens",
              static_cast<long long>(bytes));
}

// Reserves the pools and their tables.
kvc_status reservePages(kvc_session *session,
                        const kvc_session_params &params) {
  const Allocator &allocator = session->allocator;
  int64_t groups = session->model->library->groups_count;
  session->pools = allocate<PagePool>(allocator, groups + 1);
  if (!session->pools)
    return fail(KVC_OUT_OF_MEMORY, "no memory for %lld groups of layers",
                static_cast<long long>(groups));
  if (kvc_status status = reserveCache(session, params))
    return status;
  if (kvc_status status = reserveTokens(session))
    return status;
  for (PagePool &pool : allPools(session))
    if (kvc_status status = reservePool(&pool, allocator))
      return status;
  for (PagePool &pool : groupPools(session))
    session->tablePages += pool.group->pages_per_sequence;
  int64_t tokenPages = session->tokenGroup.pages_per_sequence;
  int64_t entries, tokenEntries;
  if (!multiply(session->sequences, session->tablePages, &entries) ||
      !multiply(session->sequences, tokenPages, &tokenEntries) ||
      !(session->tables = allocate<int64_t>(allocator, entries)) ||
      !(session->newTables = allocate<int64_t>(allocator, entries)) ||
      !(session->tokenTables = allocate<int64_t>(allocator, tokenEntries)) ||
      !(session->newTokenTables = allocate<int64_t>(allocator, tokenEntries)))
    return fail(KVC_OUT_OF_MEMORY,
                "no memory for the page tables of %lld sequences with %lld "
                "pages each",
                static_cast<long long>(session->sequences),
                static_cast<long long>(session->tablePages));
  int64_t column = 0;
  for (PagePool &pool : groupPools(session)) {
    pool.memory = session->cache.address;
    pool.table = session->tables + column;
    pool.newTable = session->newTables + column;
    pool.tableStride = session->tablePages;
    column += pool.group->pages_per_sequence;
  }
  PagePool &tokens = tokenPool(session);
  tokens.memory = session->tokenPages.address;
  tokens.table = session->tokenTables;
  tokens.newTable = session->newTokenTables;
  tokens.tableStride = tokenPages;
  return KVC_OK;
}

kvc_status reserveBuffers(kvc_session *session) {
  const Allocator &allocator = session->allocator;
  const kvc_library *library = session->model->library;
  session->lengths = allocate<int64_t>(allocator, session->sequences);
  session->computed = allocate<int64_t>(allocator, session->sequences);
  session->planned = allocate<int64_t>(allocator, session->sequences);
  session->reached = allocate<int64_t>(allocator, session->sequences);
  session->newLengths = allocate<int64_t>(allocator, session->sequences);
  session->newReached = allocate<int64_t>(allocator, session->sequences);
  session->tokens = allocate<int32_t>(allocator, library->max_tokens);
  session->sequenceOf = allocate<int32_t>(allocator, library->max_tokens);
  session->outputs = allocate<int64_t>(allocator, library->max_tokens);
  if (!session->lengths || !session->computed || !session->planned ||
      !session->reached || !session->newLengths || !session->newReached ||
      !session->tokens || !session->sequenceOf || !session->outputs)
    return fail(KVC_OUT_OF_MEMORY, "no memory for %lld sequences",
                static_cast<long long>(session->sequences));
  if (!map(allocator, &session->workspace, library->workspace_bytes,
           /*hugePages=*/true))
    return fail(KVC_OUT_OF_MEMORY, "no memory for a workspace of %lld bytes",
                static_cast<long long>(library->workspace_bytes));
  int64_t rowBytes = library->vocab * bytesOf(library->arithmetic);
  if (!map(allocator, &session->logits, rowBytes, /*hugePages=*/false))
    return fail(KVC_OUT_OF_MEMORY,
                "no memory for a row of %lld bytes of logits",
                static_cast<long long>(rowBytes));
  return KVC_OK;
}

kvc_status fill(kvc_session *session, const kvc_session_params &params) {
  const kvc_model *model = session->model;
  session->capacity = capacityOf(model->library, params);
  session->sequences = params.sequences;
  session->threadCount = params.executor  ? 0
                         : params.threads ? params.threads
                                          : allowedCpus();
  kvc_status status = KVC_OK;
  const char *level = params.cpu_level, *named = "cpu_level";
  if (!level) {
    level = getenv("KVC_CPU");
    named = "KVC_CPU";
  }
  session->kernels =
      level && *level ? kernelsOfLevel(model->library, named, level, &status)
                      : model->kernels;
  if (status == KVC_OK)
    status = reservePages(session, params);
  if (status == KVC_OK)
    status = reserveBuffers(session);
  if (status == KVC_OK && params.executor)
    session->application = wrapExecutor(params.executor, model->library->numerics);
  else if (status == KVC_OK)
    status = createThreads(session->allocator, session->threadCount,
                           model->library->numerics, &session->threads);
  if (status != KVC_OK)
    return status;
  // All is there: now it may be touched.
  for (PagePool &pool : allPools(session))
    fillPool(&pool, session->sequences, params.poison);
  if (params.poison)
    memset(session->workspace.address, 0xff, size_t(session->workspace.bytes));
  return KVC_OK;
}

// How many forks led from the first process to this one. Asking the system for the
// process would be a call in each step.
std::atomic<int64_t> forks{0};

// False when the system has no memory for it.
bool countForks() {
  static std::atomic<bool> counting{false};
  if (counting.load(std::memory_order_acquire))
    return true;
  auto count = [] { forks.fetch_add(1, std::memory_order_relaxed); };
  if (pthread_atfork(nullptr, nullptr, count) != 0)
    return false;
  counting.store(true, std::memory_order_release); // twice would be fine, too
  return true;
}

// Bytes of what is kept for sequences beside their pages.
int64_t metadataBytes(const kvc_session *session) {
  int64_t numbers = 6; // lengths, reached, both anew, computed and planned
  int64_t lists = 0;
  for (const PagePool &pool : allPools(session)) {
    numbers += 2 * pool.group->pages_per_sequence; // table and newTable
    lists += 3 * pool.pageCount;                   // holders, free and counts
  }
  return int64_t(sizeof(int64_t)) * (numbers * session->sequences + lists) +
         session->tokenPages.bytes;
}

} // namespace

bool isInherited(const kvc_session *session) {
  return session->forks != forks.load(std::memory_order_relaxed);
}

kvc_status checkSession(const kvc_session *session) {
  if (!session)
    return failNull("session");
  if (session->tag != kvc_session::sessionTag)
    return fail(KVC_INVALID_ARGUMENT,
                "expected session to be a session, but got another thing");
  if (isInherited(session))
    return fail(KVC_INVALID_ARGUMENT,
                "expected a session that this process created, but got one that "
                "it inherited from process %d by fork",
                int(session->process));
  return KVC_OK;
}

kvc_status checkSequence(const kvc_session *session, int64_t sequence) {
  if (sequence < 0 || sequence >= session->sequences)
    return fail(KVC_INVALID_ARGUMENT,
                "expected sequence to be in 0..%lld, but got %lld",
                static_cast<long long>(session->sequences - 1),
                static_cast<long long>(sequence));
  return KVC_OK;
}

} // namespace kvc

using namespace kvc;

kvc_status kvc_session_create(const kvc_model *model,
                              const kvc_session_params *params,
                              kvc_session **out_session) {
  Uncancelled uncancelled;
  if (kvc_status status = checkModel(model))
    return status;
  if (!out_session)
    return failNull("out_session");
  kvc_session_params values;
  if (kvc_status status = readParams(&values, params, "kvc_session_params"))
    return status;
  if (values.sequences == 0)
    values.sequences = 1;
  if (kvc_status status = checkParams(model->library, values))
    return status;
  if (kvc_status status = checkPoolPages(model->library, values))
    return status;
  Allocator allocator;
  if (kvc_status status =
          readAllocator(&allocator, values.allocator, model->allocator))
    return status;
  void *memory =
      countForks() ? allocateBytes(allocator, sizeof(kvc_session)) : nullptr;
  if (!memory)
    return fail(KVC_OUT_OF_MEMORY, "no memory for a session");
  auto *session = new (memory) kvc_session{};
  session->tag = kvc_session::sessionTag;
  session->process = getpid();
  session->forks = forks.load(std::memory_order_relaxed);
  session->allocator = allocator;
  session->model = model;
  retainModel(model);
  if (kvc_status status = fill(session, values)) {
    kvc_session_destroy(session);
    return status;
  }
  *out_session = session;
  return KVC_OK;
}

void kvc_session_destroy(kvc_session *session) {
  Uncancelled uncancelled;
  if (!session || session->tag != kvc_session::sessionTag || isInUse(session))
    return;
  if (isInherited(session))
    forgetThreads(session->threads);
  else
    destroyThreads(session->threads);
  const Allocator allocator = session->allocator;
  unmap(allocator, &session->logits);
  unmap(allocator, &session->workspace);
  deallocate(allocator, session->outputs);
  deallocate(allocator, session->sequenceOf);
  deallocate(allocator, session->tokens);
  deallocate(allocator, session->newReached);
  deallocate(allocator, session->newLengths);
  deallocate(allocator, session->reached);
  deallocate(allocator, session->planned);
  deallocate(allocator, session->computed);
  deallocate(allocator, session->lengths);
  deallocate(allocator, session->newTokenTables);
  deallocate(allocator, session->tokenTables);
  deallocate(allocator, session->newTables);
  deallocate(allocator, session->tables);
  if (session->pools)
    for (PagePool &pool : allPools(session))
      destroyPool(&pool, allocator);
  unmap(allocator, &session->tokenPages);
  unmap(allocator, &session->cache);
  deallocate(allocator, session->pools);
  releaseModel(session->model);
  session->tag = 0;
  deallocate(allocator, session);
}

kvc_status kvc_session_query(const kvc_session *session,
                             kvc_session_info *out_info) {
  Turn turn(session, Use::reading);
  if (turn.status != KVC_OK)
    return turn.status;
  if (!out_info)
    return failNull("out_info");
  kvc_session_info info;
  kvc_session_info_init(&info);
  info.threads = session->threadCount;
  info.sequences = session->sequences;
  info.capacity = session->capacity;
  info.cpu_level = session->kernels->level;
  for (int64_t i = 0; i < session->sequences; ++i)
    info.cache_bytes += bytesHeld(session, i);
  info.cache_reserved_bytes = session->cache.bytes;
  info.workspace_bytes = session->workspace.bytes;
  reportPages(session, &info);
  info.metadata_bytes = metadataBytes(session);
  info.parallel_regions = session->regions;
  return writeInfo(out_info, info, "kvc_session_info");
}

kvc_status kvc_session_capacity(const kvc_session *session,
                                int64_t *out_capacity) {
  if (kvc_status status = checkSession(session))
    return status;
  if (!out_capacity)
    return failNull("out_capacity");
  *out_capacity = session->capacity;
  return KVC_OK;
}

kvc_status kvc_session_reset(kvc_session *session) {
  Turn turn(session, Use::changing);
  if (turn.status != KVC_OK)
    return turn.status;
  for (int64_t i = 0; i < session->sequences; ++i)
    cutSequence(session, i, 0);
  return KVC_OK;
}
