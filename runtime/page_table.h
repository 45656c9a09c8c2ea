// Which pages each sequence of a session holds: as many as its length needs.
#ifndef KVC_RUNTIME_PAGE_TABLE_H
#define KVC_RUNTIME_PAGE_TABLE_H

#include "session.h"

namespace kvc {

// Pages of `length` positions.
inline int64_t pagesFor(const kvc_session *session, int64_t length) {
  int64_t positions = session->pool.positions;
  return length / positions + (length % positions != 0);
}

// The table of a sequence, [pages_per_sequence].
inline int64_t *pagesOf(const kvc_session *session, int64_t sequence) {
  return session->pages +
         sequence * session->model->library->pages_per_sequence;
}

// True when appending writes to a page that another sequence holds, too, and
// therefore copies it first.
bool appendCopies(const kvc_session *session, int64_t sequence);

// Pages that appending `count` positions takes from the pool.
int64_t pagesToAppend(const kvc_session *session, int64_t sequence,
                      int64_t count);

// Takes these pages, and copies what appendCopies says. The pool must have
// them. Lengths stay: whoever fills the pages commits.
void takePagesToAppend(kvc_session *session, int64_t sequence, int64_t count);

// The page that appending would copy, -1 where there is none. A call that fails
// later gives it back: its other holders have it until then.
int64_t pageToCopy(const kvc_session *session, int64_t sequence);

// Gives the sequence, cut back to its former length, that page again in place of
// its copy, if it has one.
void restoreSharedPage(kvc_session *session, int64_t sequence, int64_t page);

// Forgets the positions from `length` on and drops their pages.
void cutSequence(kvc_session *session, int64_t sequence, int64_t length);

// Makes `to` a second holder of all that `from` holds.
void shareSequence(kvc_session *session, int64_t from, int64_t to);

// Makes each sequence i < count hold what order[i] held before.
void reorderSequences(kvc_session *session, const int64_t *order,
                      int64_t count);

// Copies a sequence to one of another session of the same model, whose capacity
// and pool must have the room.
void copySequence(const kvc_session *fromSession, int64_t from,
                  kvc_session *toSession, int64_t to);

// Fills the fields of pages in the report of a session.
void reportPages(const kvc_session *session, kvc_session_info *info);

} // namespace kvc

#endif
