// Operations on single sequences and on their order.
#include "error.h"
#include "page_table.h"
#include "params.h"
#include "turn.h"

#include <string.h>

using namespace kvc;

namespace {

kvc_status checkSameModel(const kvc_session *from, const kvc_session *to) {
  const uint8_t *expected = from->model->library->identity;
  const uint8_t *got = to->model->library->identity;
  if (memcmp(expected, got, KVC_IDENTITY_BYTES) == 0)
    return KVC_OK;
  return fail(KVC_INCOMPATIBLE,
              "expected to_session to be of a model with identity %016llx... "
              "(that of from_session), but got %016llx...",
              startOf(expected), startOf(got));
}

kvc_status checkFits(const kvc_session *fromSession, int64_t from,
                     const kvc_session *session, int64_t sequence) {
  int64_t length = fromSession->lengths[from];
  if (length > session->capacity)
    return fail(KVC_OUT_OF_CAPACITY,
                "sequence %lld of to_session has %lld positions and the copy "
                "takes %lld",
                static_cast<long long>(sequence),
                static_cast<long long>(session->capacity),
                static_cast<long long>(length));
  for (const PagePool &pool : groupPools(session)) {
    // Those that come back when the sequence is emptied are free then.
    int64_t free = pool.freeCount + pagesHeldAlone(pool, sequence);
    int64_t oldest = oldestOf(*pool.group, fromSession->reached[from]);
    int64_t takes = pagesOfRange(*pool.group, oldest, length);
    if (takes > free)
      return fail(KVC_OUT_OF_CAPACITY,
                  "the pool of to_session has %lld of %lld pages for sequence "
                  "%lld and the copy takes %lld",
                  static_cast<long long>(free),
                  static_cast<long long>(pool.pageCount),
                  static_cast<long long>(sequence),
                  static_cast<long long>(takes));
  }
  return KVC_OK;
}

// Positions that fit behind the sequence's last one.
int64_t roomOf(const kvc_session *session, int64_t sequence) {
  int64_t room = session->capacity - session->lengths[sequence];
  for (const PagePool &pool : groupPools(session)) {
    // The more positions, the more pages: the most that fit lie in [fits, room].
    for (int64_t fits = 0; fits < room;) {
      int64_t middle = fits + (room - fits + 1) / 2;
      if (pagesToAppend(session, pool, sequence, middle).all <= pool.freeCount)
        fits = middle;
      else
        room = middle - 1;
    }
  }
  return room;
}

} // namespace

kvc_status kvc_sequence_length(const kvc_session *session, int64_t sequence,
                               int64_t *out_length) {
  Turn turn(session, Use::reading, sequence);
  if (turn.status != KVC_OK)
    return turn.status;
  if (!out_length)
    return failNull("out_length");
  *out_length = session->lengths[sequence];
  return KVC_OK;
}

kvc_status kvc_sequence_truncate(kvc_session *session, int64_t sequence,
                                 int64_t length) {
  Turn turn(session, Use::changing, sequence);
  if (turn.status != KVC_OK)
    return turn.status;
  if (length < 0 || length > session->lengths[sequence])
    return fail(KVC_INVALID_ARGUMENT,
                "expected length to be in 0..%lld (that of sequence %lld), but "
                "got %lld",
                static_cast<long long>(session->lengths[sequence]),
                static_cast<long long>(sequence),
                static_cast<long long>(length));
  int64_t shortest = shortestLength(session, sequence);
  if (length != 0 && length < shortest)
    return fail(KVC_INVALID_ARGUMENT,
                "expected length to be 0 or in %lld..%lld, since sequence %lld has "
                "forgotten what a token before needs, but got %lld",
                static_cast<long long>(shortest),
                static_cast<long long>(session->lengths[sequence]),
                static_cast<long long>(sequence),
                static_cast<long long>(length));
  cutSequence(session, sequence, length);
  return KVC_OK;
}

kvc_status kvc_sequence_remove(kvc_session *session, int64_t sequence) {
  return kvc_sequence_truncate(session, sequence, 0);
}

kvc_status kvc_sequence_fork(kvc_session *session, int64_t from, int64_t to) {
  Turn turn(session, Use::changing, from);
  if (turn.status != KVC_OK)
    return turn.status;
  if (kvc_status status = checkSequence(session, to))
    return status;
  shareSequence(session, from, to);
  return KVC_OK;
}

kvc_status kvc_session_reorder(kvc_session *session, const int64_t *order,
                               int64_t count) {
  Turn turn(session, Use::changing);
  if (turn.status != KVC_OK)
    return turn.status;
  if (count < 0 || count > session->sequences)
    return fail(KVC_INVALID_ARGUMENT,
                "expected count to be in 0..%lld, but got %lld",
                static_cast<long long>(session->sequences),
                static_cast<long long>(count));
  if (count > 0 && !order)
    return failNull("order");
  for (int64_t i = 0; i < count; ++i)
    if (order[i] < 0 || order[i] >= session->sequences)
      return fail(KVC_INVALID_ARGUMENT,
                  "expected order[%lld] to be in 0..%lld, but got %lld",
                  static_cast<long long>(i),
                  static_cast<long long>(session->sequences - 1),
                  static_cast<long long>(order[i]));
  reorderSequences(session, order, count);
  return KVC_OK;
}

kvc_status kvc_sequence_copy(const kvc_session *from_session, int64_t from,
                             kvc_session *to_session, int64_t to) {
  if (from_session == to_session)
    return kvc_sequence_fork(to_session, from, to);
  Turn fromTurn(from_session, Use::reading);
  if (fromTurn.status != KVC_OK)
    return fromTurn.status;
  Turn toTurn(to_session, Use::changing);
  if (toTurn.status != KVC_OK)
    return toTurn.status;
  if (kvc_status status = checkSequence(from_session, from))
    return status;
  if (kvc_status status = checkSequence(to_session, to))
    return status;
  if (kvc_status status = checkSameModel(from_session, to_session))
    return status;
  if (kvc_status status = checkFits(from_session, from, to_session, to))
    return status;
  copySequence(from_session, from, to_session, to);
  return KVC_OK;
}

kvc_status kvc_sequence_tokens(const kvc_session *session, int64_t sequence,
                               int64_t first, int64_t count,
                               int32_t *out_tokens) {
  Turn turn(session, Use::reading, sequence);
  if (turn.status != KVC_OK)
    return turn.status;
  int64_t length = session->lengths[sequence];
  if (first < 0 || first > length)
    return fail(KVC_INVALID_ARGUMENT,
                "expected first to be in 0..%lld (the length of sequence "
                "%lld), but got %lld",
                static_cast<long long>(length),
                static_cast<long long>(sequence),
                static_cast<long long>(first));
  if (count < 0 || count > length - first)
    return fail(KVC_INVALID_ARGUMENT,
                "expected count to be in 0..%lld (the positions of sequence "
                "%lld from %lld on), but got %lld",
                static_cast<long long>(length - first),
                static_cast<long long>(sequence),
                static_cast<long long>(first), static_cast<long long>(count));
  if (count > 0 && !out_tokens)
    return failNull("out_tokens");
  for (int64_t i = 0; i < count; ++i)
    out_tokens[i] = tokenAt(session, sequence, first + i);
  return KVC_OK;
}

kvc_status kvc_sequence_query(const kvc_session *session, int64_t sequence,
                              kvc_sequence_info *out_info) {
  Turn turn(session, Use::reading, sequence);
  if (turn.status != KVC_OK)
    return turn.status;
  if (!out_info)
    return failNull("out_info");
  kvc_sequence_info info;
  kvc_sequence_info_init(&info);
  info.length = session->lengths[sequence];
  info.room = roomOf(session, sequence);
  info.cache_bytes = bytesHeld(session, sequence);
  for (const PagePool &pool : groupPools(session)) {
    int64_t held = pagesHeld(pool, sequence);
    info.pages += held;
    info.shared_pages += held - pagesHeldAlone(pool, sequence);
  }
  info.shortest = shortestLength(session, sequence);
  return writeInfo(out_info, info, "kvc_sequence_info");
}
