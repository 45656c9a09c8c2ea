// What each sequence of a session holds: pages in every group of layers, and its
// tokens, which are a group of their own. A page is held where a position stands in
// it. Nothing here knows a layout but by its description (kvc_group).
#ifndef KVC_RUNTIME_PAGE_TABLE_H
#define KVC_RUNTIME_PAGE_TABLE_H

#include "page_layout.h"
#include "session.h"

namespace kvc {

// The pools of the library's groups, without that of tokens.
struct GroupPools {
  PagePool *first, *last;
  PagePool *begin() const { return first; }
  PagePool *end() const { return last; }
};
inline GroupPools groupPools(const kvc_session *session) {
  return {session->pools, session->pools + session->model->library->groups_count};
}
// All of them.
inline GroupPools allPools(const kvc_session *session) {
  GroupPools groups = groupPools(session);
  return {groups.first, groups.last + 1};
}
inline PagePool &tokenPool(const kvc_session *session) {
  return session->pools[session->model->library->groups_count];
}

// The first position that a sequence holds in a group: it holds [oldest, length).
inline int64_t oldestOf(const kvc_session *session, const PagePool &pool,
                        int64_t sequence) {
  return oldestOf(*pool.group, session->reached[sequence]);
}

// The token at a position, whose page is held.
inline int32_t &tokenAt(const kvc_session *session, int64_t sequence,
                        int64_t position) {
  const PagePool &pool = tokenPool(session);
  int64_t positions = pool.group->positions_per_page;
  char *page = pool.memory + pagesOf(pool, sequence)[position / positions];
  return reinterpret_cast<int32_t *>(page)[position % positions];
}

// Calls visit(page, at, count) for the positions that a sequence holds in a pool,
// `count` of them from place `at` of a page on, page by page.
template <typename Visit>
void forEachHeld(const kvc_session *session, const PagePool &pool,
                 int64_t sequence, Visit visit) {
  int64_t oldest = oldestOf(session, pool, sequence);
  int64_t length = session->lengths[sequence];
  for (int64_t i = 0; i < pool.group->pages_per_sequence; ++i)
    if (int64_t page = pagesOf(pool, sequence)[i]; page >= 0)
      forEachPlace(*pool.group, i, oldest, length,
                   [&](int64_t at, int64_t count) { visit(page, at, count); });
}

// Pages that a sequence holds, and those that it alone holds.
int64_t pagesHeld(const PagePool &pool, int64_t sequence);
int64_t pagesHeldAlone(const PagePool &pool, int64_t sequence);

// Bytes of the keys and values that a sequence holds.
int64_t bytesHeld(const kvc_session *session, int64_t sequence);

// Pages that appending `count` positions takes from the pool, those among them that
// are copies: of pages that are written to and that another sequence holds, too.
// `unshared` [pageCount] counts holders that are as good as gone; NULL: none.
struct PagesTaken {
  int64_t all, copies;
};
PagesTaken pagesToAppend(const kvc_session *session, const PagePool &pool,
                         int64_t sequence, int64_t count,
                         int64_t *unshared = nullptr);

// Error unless the pool has them.
kvc_status checkFree(const kvc_session *session, const PagePool &pool,
                     int64_t pages);

// Takes these pages in all pools, and copies what is shared. The pools must have
// them. Lengths stay: whoever fills the pages commits.
void takePagesToAppend(kvc_session *session, int64_t sequence, int64_t count);

// The sequence's length is `length` now, at least the one before.
void setLength(kvc_session *session, int64_t sequence, int64_t length);

// The shortest length above 0 that the sequence can be cut back to: from there on
// every token finds what its group's window promises.
int64_t shortestLength(const kvc_session *session, int64_t sequence);

// Forgets the positions from `length` on and drops their pages. The length is 0 or
// at least the shortest one.
void cutSequence(kvc_session *session, int64_t sequence, int64_t length);

// Remembers which pages a sequence holds; and gives it those again, where it holds
// copies of them, cut back to its length then. Other sequences have stayed as they
// were between the two.
void rememberPages(kvc_session *session, int64_t sequence);
void restorePages(kvc_session *session, int64_t sequence, int64_t length);

// Makes `to` a second holder of all that `from` holds.
void shareSequence(kvc_session *session, int64_t from, int64_t to);

// Makes each sequence i < count hold what order[i] held before.
void reorderSequences(kvc_session *session, const int64_t *order,
                      int64_t count);

// Copies a sequence to one of another session of the same model, whose capacity
// and pools must have the room.
void copySequence(const kvc_session *fromSession, int64_t from,
                  kvc_session *toSession, int64_t to);

// Gives an empty sequence the pages of `length` positions, of those that had
// `reached` once. The pools must have them.
void takePagesFor(kvc_session *session, int64_t sequence, int64_t length,
                  int64_t reached);

// Fills the fields of pages in the report of a session.
void reportPages(const kvc_session *session, kvc_session_info *info);

} // namespace kvc

#endif
