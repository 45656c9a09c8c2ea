#include "page_table.h"

#include "page_layout.h"

#include <string.h>

namespace kvc {
namespace {

// Copies the first `used` positions of a page to one of `to`, with tokens.
void copyPage(const kvc_session *session, int64_t fromPage, kvc_session *to,
              int64_t toPage, int64_t used) {
  const char *source = session->pool.memory.address + fromPage;
  char *target = to->pool.memory.address + toPage;
  forEachRun(session->model->library, used, [&](int64_t at, int64_t bytes) {
    memcpy(target + at, source + at, size_t(bytes));
  });
  memcpy(tokensOf(to->pool, toPage), tokensOf(session->pool, fromPage),
         size_t(used) * sizeof(int32_t));
}

// The table's entry of the page that the sequence's next position stands in.
int64_t *lastPage(const kvc_session *session, int64_t sequence) {
  return pagesOf(session, sequence) +
         session->lengths[sequence] / session->pool.positions;
}

// Gives the sequence a page of its own in place of the last one.
void copyLastPage(kvc_session *session, int64_t sequence) {
  CachePool *pool = &session->pool;
  int64_t *entry = lastPage(session, sequence);
  int64_t shared = *entry;
  *entry = takePage(pool);
  copyPage(session, shared, session, *entry,
           session->lengths[sequence] % pool->positions);
  dropPage(pool, shared);
}

} // namespace

bool appendCopies(const kvc_session *session, int64_t sequence) {
  const CachePool &pool = session->pool;
  return session->lengths[sequence] % pool.positions != 0 &&
         holdersOf(pool, *lastPage(session, sequence)) > 1;
}

int64_t pagesToAppend(const kvc_session *session, int64_t sequence,
                      int64_t count) {
  int64_t length = session->lengths[sequence];
  return pagesFor(session, length + count) - pagesFor(session, length) +
         appendCopies(session, sequence);
}

void takePagesToAppend(kvc_session *session, int64_t sequence, int64_t count) {
  int64_t length = session->lengths[sequence];
  if (appendCopies(session, sequence))
    copyLastPage(session, sequence);
  int64_t *pages = pagesOf(session, sequence);
  int64_t end = pagesFor(session, length + count);
  for (int64_t i = pagesFor(session, length); i < end; ++i)
    pages[i] = takePage(&session->pool);
}

int64_t pageToCopy(const kvc_session *session, int64_t sequence) {
  return appendCopies(session, sequence) ? *lastPage(session, sequence) : -1;
}

void restoreSharedPage(kvc_session *session, int64_t sequence, int64_t page) {
  int64_t *entry = lastPage(session, sequence);
  if (*entry == page)
    return;
  dropPage(&session->pool, *entry);
  holdPage(&session->pool, page);
  *entry = page;
}

void cutSequence(kvc_session *session, int64_t sequence, int64_t length) {
  int64_t *pages = pagesOf(session, sequence);
  int64_t kept = pagesFor(session, length);
  for (int64_t i = pagesFor(session, session->lengths[sequence]); i-- > kept;) {
    dropPage(&session->pool, pages[i]);
    pages[i] = -1;
  }
  session->lengths[sequence] = session->computed[sequence] = length;
}

void shareSequence(kvc_session *session, int64_t from, int64_t to) {
  if (from == to)
    return;
  cutSequence(session, to, 0);
  int64_t count = pagesFor(session, session->lengths[from]);
  for (int64_t i = 0; i < count; ++i) {
    int64_t page = pagesOf(session, from)[i];
    holdPage(&session->pool, page);
    pagesOf(session, to)[i] = page;
  }
  session->lengths[to] = session->computed[to] = session->lengths[from];
}

void reorderSequences(kvc_session *session, const int64_t *order,
                      int64_t count) {
  int64_t perSequence = session->model->library->pages_per_sequence;
  size_t tableBytes = size_t(perSequence) * sizeof(int64_t);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t *pages = pagesOf(session, order[i]);
    session->reorderedLengths[i] = session->lengths[order[i]];
    memcpy(session->reorderedPages + i * perSequence, pages, tableBytes);
    for (int64_t j = 0; j < perSequence && pages[j] >= 0; ++j)
      holdPage(&session->pool, pages[j]);
  }
  for (int64_t i = 0; i < count; ++i) {
    cutSequence(session, i, 0);
    memcpy(pagesOf(session, i), session->reorderedPages + i * perSequence,
           tableBytes);
    session->lengths[i] = session->computed[i] = session->reorderedLengths[i];
  }
}

void copySequence(const kvc_session *fromSession, int64_t from,
                  kvc_session *toSession, int64_t to) {
  int64_t length = fromSession->lengths[from];
  int64_t positions = toSession->pool.positions;
  cutSequence(toSession, to, 0);
  takePagesToAppend(toSession, to, length);
  for (int64_t i = 0; i * positions < length; ++i) {
    int64_t left = length - i * positions;
    copyPage(fromSession, pagesOf(fromSession, from)[i], toSession,
             pagesOf(toSession, to)[i], left < positions ? left : positions);
  }
  toSession->lengths[to] = toSession->computed[to] = length;
}

void reportPages(const kvc_session *session, kvc_session_info *info) {
  const CachePool &pool = session->pool;
  memset(pool.filled, 0, size_t(pool.pageCount) * sizeof(int64_t));
  for (int64_t i = 0; i < session->sequences; ++i)
    for (int64_t first = 0; first < session->lengths[i];
         first += pool.positions) {
      int64_t left = session->lengths[i] - first;
      int64_t page = pagesOf(session, i)[first / pool.positions];
      int64_t *filled = &pool.filled[page / pool.pageStride];
      int64_t used = left < pool.positions ? left : pool.positions;
      if (*filled < used)
        *filled = used;
    }
  int64_t positions = 0;
  for (int64_t i = 0; i < pool.pageCount; ++i) {
    positions += pool.filled[i];
    info->partial_pages += pool.filled[i] > 0 && pool.filled[i] < pool.positions;
  }
  info->pages = pool.pageCount;
  info->live_pages = pool.pageCount - pool.freeCount;
  info->live_bytes = info->live_pages * pool.pageStride;
  info->slack_bytes =
      info->live_bytes - positions * session->model->cacheBytesPerPosition;
}

} // namespace kvc
