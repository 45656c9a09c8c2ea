#include "page_table.h"

#include <string.h>

namespace kvc {
namespace {

// Copies the first `used` positions of a page. See kvc_library.layout for the
// order of keys and values.
void copyPositions(const kvc_library *library, const char *from, char *to,
                   int64_t used) {
  constexpr int64_t lanes = 16;
  int64_t positions = library->positions_per_page;
  int64_t rows = library->layers * library->kv_heads;
  int64_t keyBytes = library->key_width * bytesOf(library->cache_type);
  int64_t valueBytes = library->value_width * bytesOf(library->cache_type);
  int64_t keys = (used + lanes - 1) / lanes * lanes;
  if (keys > positions)
    keys = positions;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t key = row * positions * keyBytes;
    int64_t value = rows * positions * keyBytes + row * positions * valueBytes;
    memcpy(to + key, from + key, size_t(keys * keyBytes));
    memcpy(to + value, from + value, size_t(used * valueBytes));
  }
}

// Gives the sequence a page of its own in place of the last one.
void copyLastPage(kvc_session *session, int64_t sequence) {
  CachePool *pool = &session->pool;
  int64_t length = session->lengths[sequence];
  int64_t used = length % pool->positions;
  int64_t *entry = pagesOf(session, sequence) + length / pool->positions;
  int64_t shared = *entry;
  *entry = takePage(pool);
  copyPositions(session->model->library, pool->memory.address + shared,
                pool->memory.address + *entry, used);
  memcpy(tokensOf(*pool, *entry), tokensOf(*pool, shared),
         size_t(used) * sizeof(int32_t));
  dropPage(pool, shared);
}

} // namespace

bool appendCopies(const kvc_session *session, int64_t sequence) {
  const CachePool &pool = session->pool;
  int64_t length = session->lengths[sequence];
  return length % pool.positions != 0 &&
         referencesOf(pool, pagesOf(session,
                                    sequence)[length / pool.positions]) > 1;
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
  for (int64_t page = pagesFor(session, length); page < end; ++page)
    pages[page] = takePage(&session->pool);
}

void cutSequence(kvc_session *session, int64_t sequence, int64_t length) {
  int64_t *pages = pagesOf(session, sequence);
  int64_t kept = pagesFor(session, length);
  for (int64_t page = pagesFor(session, session->lengths[sequence]);
       page-- > kept;) {
    dropPage(&session->pool, pages[page]);
    pages[page] = -1;
  }
  session->lengths[sequence] = session->computed[sequence] = length;
}

void shareSequence(kvc_session *session, int64_t from, int64_t to) {
  if (from == to)
    return;
  cutSequence(session, to, 0);
  int64_t count = pagesFor(session, session->lengths[from]);
  for (int64_t page = 0; page < count; ++page) {
    pagesOf(session, to)[page] = pagesOf(session, from)[page];
    holdPage(&session->pool, pagesOf(session, from)[page]);
  }
  session->lengths[to] = session->computed[to] = session->lengths[from];
}

} // namespace kvc
