#include "plan.h"

#include "error.h"
#include "page_table.h"
#include "params.h"
#include "turn.h"

namespace kvc {
namespace {

// Tokens of one chunk that give a row of logits.
int64_t rowsOf(const kvc_chunk &chunk) {
  switch (valueOf(chunk.outputs)) {
  case KVC_OUTPUTS_NONE:
    return 0;
  case KVC_OUTPUTS_LAST:
    return 1;
  case KVC_OUTPUTS_ALL:
    return chunk.count;
  }
  return -1;
}

kvc_status checkChunk(kvc_session *session, const kvc_chunk &chunk,
                      int64_t index, Plan *plan) {
  auto number = static_cast<long long>(index);
  auto sequence = static_cast<long long>(chunk.sequence);
  if (chunk.sequence < 0 || chunk.sequence >= session->sequences)
    return fail(KVC_INVALID_ARGUMENT,
                "chunk %lld: expected sequence to be in 0..%lld, but got %lld",
                number, static_cast<long long>(session->sequences - 1),
                sequence);
  if (session->planned[chunk.sequence] == session->callNumber)
    return fail(KVC_INVALID_ARGUMENT,
                "chunk %lld: expected each sequence once in a call, but "
                "sequence %lld comes twice",
                number, sequence);
  session->planned[chunk.sequence] = session->callNumber;

  if (chunk.count < 1)
    return fail(KVC_INVALID_ARGUMENT,
                "chunk %lld: expected at least one token, but got %lld", number,
                static_cast<long long>(chunk.count));
  if (!chunk.tokens)
    return fail(KVC_INVALID_ARGUMENT,
                "chunk %lld: expected tokens to be given, but got NULL",
                number);
  int64_t length = session->lengths[chunk.sequence];
  if (chunk.count > session->capacity - length)
    return fail(
        KVC_OUT_OF_CAPACITY,
        "sequence %lld holds %lld of %lld positions and chunk %lld adds "
        "%lld",
        sequence, static_cast<long long>(length),
        static_cast<long long>(session->capacity), number,
        static_cast<long long>(chunk.count));
  int64_t vocab = session->model->library->vocab;
  for (int64_t i = 0; i < chunk.count; ++i)
    if (chunk.tokens[i] < 0 || chunk.tokens[i] >= vocab)
      return fail(
          KVC_INVALID_ARGUMENT,
          "chunk %lld: expected token %lld to be in 0..%lld, but got %d",
          number, static_cast<long long>(i), static_cast<long long>(vocab - 1),
          chunk.tokens[i]);

  int64_t chunkRows = rowsOf(chunk);
  if (chunkRows < 0)
    return fail(KVC_INVALID_ARGUMENT,
                "chunk %lld: expected outputs to be none (0), last (1) or all "
                "(2), but got %d",
                number, valueOf(chunk.outputs));
  plan->tokens += chunk.count; // at most sequences * capacity
  plan->rows += chunkRows;
  return KVC_OK;
}

// Counts the pages that all chunks take from a pool. The last of those who share a
// page and write to it need not copy it: each copy is as good as done for the chunks
// that follow.
PagesTaken countPages(const kvc_session *session, const PagePool &pool,
                      const kvc_chunk *chunks, int64_t chunkCount) {
  for (int64_t i = 0; i < chunkCount; ++i) {
    int64_t length = session->lengths[chunks[i].sequence];
    forEachPage(*pool.group, length, length + chunks[i].count, [&](int64_t index) {
      if (int64_t page = pagesOf(pool, chunks[i].sequence)[index]; page >= 0)
        pool.counts[numberOf(pool, page)] = 0;
    });
  }
  PagesTaken all = {};
  for (int64_t i = 0; i < chunkCount; ++i) {
    PagesTaken taken = pagesToAppend(session, pool, chunks[i].sequence,
                                     chunks[i].count, pool.counts);
    all.all += taken.all;
    all.copies += taken.copies;
  }
  return all;
}

} // namespace

kvc_status planChunks(kvc_session *session, const kvc_chunk *chunks,
                      int64_t chunkCount, Plan *plan) {
  *plan = {};
  if (!chunks)
    return failNull("chunks");
  if (chunkCount < 1)
    return fail(KVC_INVALID_ARGUMENT,
                "expected at least one chunk, but got %lld",
                static_cast<long long>(chunkCount));
  if (chunkCount > session->sequences)
    return fail(KVC_INVALID_ARGUMENT,
                "expected at most %lld chunks, one for each sequence, but got "
                "%lld",
                static_cast<long long>(session->sequences),
                static_cast<long long>(chunkCount));
  ++session->callNumber;
  for (int64_t i = 0; i < chunkCount; ++i)
    if (kvc_status status = checkChunk(session, chunks[i], i, plan))
      return status;
  for (const PagePool &pool : groupPools(session)) {
    PagesTaken taken = countPages(session, pool, chunks, chunkCount);
    plan->newPages += taken.all;
    plan->copiedPages += taken.copies;
    if (kvc_status status = checkFree(session, pool, taken.all))
      return status;
  }
  return KVC_OK;
}

} // namespace kvc

using namespace kvc;

kvc_status kvc_plan(kvc_session *session, const kvc_chunk *chunks,
                    int64_t chunk_count, kvc_plan_info *out_info) {
  Turn turn(session, Use::reading);
  if (turn.status != KVC_OK)
    return turn.status;
  Plan plan;
  if (kvc_status status = planChunks(session, chunks, chunk_count, &plan))
    return status;
  if (!out_info)
    return failNull("out_info");
  kvc_plan_info info;
  kvc_plan_info_init(&info);
  info.tokens = plan.tokens;
  info.logits_rows = plan.rows;
  info.new_pages = plan.newPages;
  info.copied_pages = plan.copiedPages;
  for (const PagePool &pool : groupPools(session))
    info.free_pages += pool.freeCount;
  return writeInfo(out_info, info, "kvc_plan_info");
}
