#include "page_table.h"

#include "error.h"

#include <stdio.h>
#include <string.h>

namespace kvc {
namespace {

// Copies `count` positions from place `at` of a page on.
void copyPlaces(const PagePool &from, int64_t fromPage, const PagePool &to,
                int64_t toPage, int64_t at, int64_t count) {
  const char *source = from.memory + fromPage;
  char *target = to.memory + toPage;
  forEachRun(*from.group, at, count, [&](int64_t offset, int64_t bytes) {
    memcpy(target + offset, source + offset, size_t(bytes));
  });
}

// Gives the sequence a page of its own in place of the one of index `index`.
void copyPage(const kvc_session *session, PagePool *pool, int64_t sequence,
              int64_t index) {
  int64_t *entry = pagesOf(*pool, sequence) + index;
  int64_t shared = *entry;
  *entry = takePage(pool);
  forEachPlace(*pool->group, index, oldestOf(session, *pool, sequence),
               session->lengths[sequence], [&](int64_t at, int64_t count) {
                 copyPlaces(*pool, shared, *pool, *entry, at, count);
               });
  dropPage(pool, shared);
}

// Holds in `to` what is held in `from`; both are tables of one sequence.
void holdAll(PagePool *pool, const int64_t *from, int64_t *to) {
  for (int64_t i = 0; i < pool->group->pages_per_sequence; ++i)
    if ((to[i] = from[i]) >= 0)
      holdPage(pool, to[i]);
}

} // namespace

int64_t pagesHeld(const PagePool &pool, int64_t sequence) {
  int64_t held = 0;
  for (int64_t i = 0; i < pool.group->pages_per_sequence; ++i)
    held += pagesOf(pool, sequence)[i] >= 0;
  return held;
}

int64_t pagesHeldAlone(const PagePool &pool, int64_t sequence) {
  int64_t alone = 0;
  for (int64_t i = 0; i < pool.group->pages_per_sequence; ++i)
    if (int64_t page = pagesOf(pool, sequence)[i]; page >= 0)
      alone += holdersOf(pool, page) == 1;
  return alone;
}

int64_t bytesHeld(const kvc_session *session, int64_t sequence) {
  int64_t bytes = 0;
  for (const PagePool &pool : groupPools(session))
    bytes += (session->lengths[sequence] - oldestOf(session, pool, sequence)) *
             bytesPerPosition(*pool.group);
  return bytes;
}

PagesTaken pagesToAppend(const kvc_session *session, const PagePool &pool,
                         int64_t sequence, int64_t count, int64_t *unshared) {
  PagesTaken taken = {};
  int64_t length = session->lengths[sequence];
  forEachPage(*pool.group, length, length + count, [&](int64_t index) {
    int64_t page = pagesOf(pool, sequence)[index];
    if (page < 0) {
      ++taken.all;
      return;
    }
    int64_t gone = unshared ? unshared[numberOf(pool, page)] : 0;
    if (holdersOf(pool, page) - gone == 1)
      return;
    ++taken.all;
    ++taken.copies;
    if (unshared)
      ++unshared[numberOf(pool, page)];
  });
  return taken;
}

kvc_status checkFree(const kvc_session *session, const PagePool &pool,
                     int64_t pages) {
  if (pages <= pool.freeCount)
    return KVC_OK;
  char group[40] = "";
  if (session->model->library->groups_count > 1)
    snprintf(group, sizeof group, " of group %d", int(&pool - session->pools));
  return fail(KVC_OUT_OF_CAPACITY,
              "the pool%s has %lld of %lld pages free and the call takes %lld",
              group, static_cast<long long>(pool.freeCount),
              static_cast<long long>(pool.pageCount),
              static_cast<long long>(pages));
}

void takePagesToAppend(kvc_session *session, int64_t sequence, int64_t count) {
  int64_t length = session->lengths[sequence];
  for (PagePool &pool : allPools(session))
    forEachPage(*pool.group, length, length + count, [&](int64_t index) {
      int64_t *entry = pagesOf(pool, sequence) + index;
      if (*entry < 0)
        *entry = takePage(&pool);
      else if (holdersOf(pool, *entry) > 1)
        copyPage(session, &pool, sequence, index);
    });
}

void setLength(kvc_session *session, int64_t sequence, int64_t length) {
  session->lengths[sequence] = session->computed[sequence] = length;
  if (session->reached[sequence] < length)
    session->reached[sequence] = length;
}

int64_t shortestLength(const kvc_session *session, int64_t sequence) {
  int64_t shortest = 1;
  for (const PagePool &pool : groupPools(session)) {
    int64_t mine = shortestOf(*pool.group, session->reached[sequence]);
    shortest = shortest < mine ? mine : shortest;
  }
  return shortest;
}

void cutSequence(kvc_session *session, int64_t sequence, int64_t length) {
  session->lengths[sequence] = session->computed[sequence] = length;
  bool forgot = false;
  for (const PagePool &pool : groupPools(session))
    forgot |= oldestOf(session, pool, sequence) > 0;
  if (length == 0 || !forgot)
    session->reached[sequence] = length;
  for (PagePool &pool : allPools(session)) {
    int64_t oldest = oldestOf(session, pool, sequence);
    for (int64_t i = 0; i < pool.group->pages_per_sequence; ++i) {
      int64_t *entry = pagesOf(pool, sequence) + i;
      if (*entry < 0)
        continue;
      bool isEmpty = true;
      forEachPlace(*pool.group, i, oldest, length,
                   [&](int64_t, int64_t) { isEmpty = false; });
      if (!isEmpty)
        continue;
      dropPage(&pool, *entry);
      *entry = -1;
    }
  }
}

void rememberPages(kvc_session *session, int64_t sequence) {
  for (PagePool &pool : allPools(session))
    memcpy(pool.newTable, pagesOf(pool, sequence),
           size_t(pool.group->pages_per_sequence) * sizeof(int64_t));
}

void restorePages(kvc_session *session, int64_t sequence, int64_t length) {
  cutSequence(session, sequence, length);
  for (PagePool &pool : allPools(session))
    for (int64_t i = 0; i < pool.group->pages_per_sequence; ++i) {
      int64_t *entry = pagesOf(pool, sequence) + i;
      // None: its positions are written over.
      if (*entry < 0 || *entry == pool.newTable[i])
        continue;
      dropPage(&pool, *entry);
      *entry = pool.newTable[i];
      holdPage(&pool, *entry);
    }
}

void shareSequence(kvc_session *session, int64_t from, int64_t to) {
  if (from == to)
    return;
  cutSequence(session, to, 0);
  for (PagePool &pool : allPools(session))
    holdAll(&pool, pagesOf(pool, from), pagesOf(pool, to));
  session->lengths[to] = session->computed[to] = session->lengths[from];
  session->reached[to] = session->reached[from];
}

void reorderSequences(kvc_session *session, const int64_t *order,
                      int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    session->newLengths[i] = session->lengths[order[i]];
    session->newReached[i] = session->reached[order[i]];
    for (PagePool &pool : allPools(session))
      holdAll(&pool, pagesOf(pool, order[i]),
              pool.newTable + i * pool.tableStride);
  }
  for (int64_t i = 0; i < count; ++i) {
    cutSequence(session, i, 0);
    for (PagePool &pool : allPools(session))
      memcpy(pagesOf(pool, i), pool.newTable + i * pool.tableStride,
             size_t(pool.group->pages_per_sequence) * sizeof(int64_t));
    session->lengths[i] = session->computed[i] = session->newLengths[i];
    session->reached[i] = session->newReached[i];
  }
}

void copySequence(const kvc_session *fromSession, int64_t from,
                  kvc_session *toSession, int64_t to) {
  int64_t length = fromSession->lengths[from];
  int64_t reached = fromSession->reached[from];
  cutSequence(toSession, to, 0);
  takePagesFor(toSession, to, length, reached);
  PagePool *target = toSession->pools;
  for (const PagePool &pool : allPools(fromSession)) {
    for (int64_t i = 0; i < pool.group->pages_per_sequence; ++i)
      forEachPlace(*pool.group, i, oldestOf(*pool.group, reached), length,
                   [&](int64_t at, int64_t count) {
                     copyPlaces(pool, pagesOf(pool, from)[i], *target,
                                pagesOf(*target, to)[i], at, count);
                   });
    ++target;
  }
}

void takePagesFor(kvc_session *session, int64_t sequence, int64_t length,
                  int64_t reached) {
  for (PagePool &pool : allPools(session))
    forEachPage(*pool.group, oldestOf(*pool.group, reached), length,
                [&](int64_t index) {
                  pagesOf(pool, sequence)[index] = takePage(&pool);
                });
  session->lengths[sequence] = session->computed[sequence] = length;
  session->reached[sequence] = reached;
}

void reportPages(const kvc_session *session, kvc_session_info *info) {
  for (const PagePool &pool : groupPools(session)) {
    memset(pool.counts, 0, size_t(pool.pageCount) * sizeof(int64_t));
    for (int64_t s = 0; s < session->sequences; ++s)
      for (int64_t i = 0; i < pool.group->pages_per_sequence; ++i) {
        int64_t page = pagesOf(pool, s)[i], used = 0;
        if (page < 0)
          continue;
        forEachPlace(*pool.group, i, oldestOf(session, pool, s),
                     session->lengths[s],
                     [&](int64_t, int64_t count) { used += count; });
        int64_t *filled = &pool.counts[numberOf(pool, page)];
        if (*filled < used)
          *filled = used;
      }
    int64_t positions = 0;
    for (int64_t i = 0; i < pool.pageCount; ++i) {
      positions += pool.counts[i];
      info->partial_pages +=
          pool.counts[i] > 0 && pool.counts[i] < pool.group->positions_per_page;
    }
    int64_t live = pool.pageCount - pool.freeCount;
    info->pages += pool.pageCount;
    info->live_pages += live;
    info->live_bytes += live * pool.pageStride;
    info->slack_bytes +=
        live * pool.pageStride - positions * bytesPerPosition(*pool.group);
  }
}

} // namespace kvc
