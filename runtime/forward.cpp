// Plan, take pages, compute, commit: one call of kvc_forward.
#include "forward.h"

#include "error.h"
#include "float_environment.h"
#include "memory.h"
#include "page_table.h"
#include "plan.h"
#include "turn.h"

using namespace kvc;

namespace {

// Parallel regions of several tasks that the session has asked for so far.
int64_t regionsOf(const kvc_session *session) {
  return session->threads ? kvc::regionsOf(session->threads)
                          : session->application.regions;
}

bool overlap(const void *a, int64_t aBytes, const void *b, int64_t bBytes) {
  auto first = reinterpret_cast<uintptr_t>(a);
  auto second = reinterpret_cast<uintptr_t>(b);
  return first < second ? second - first < uintptr_t(aBytes)
                        : first - second < uintptr_t(bBytes);
}

// Rows are written while chunks and tokens are still read.
kvc_status checkLogits(const kvc_library *library, const Plan &plan,
                       const kvc_chunk *chunks, int64_t chunkCount,
                       const void *logits, int64_t logitsRows) {
  if (plan.rows > logitsRows)
    return fail(KVC_INVALID_ARGUMENT,
                "expected logits to have room for %lld rows, but got %lld",
                static_cast<long long>(plan.rows),
                static_cast<long long>(logitsRows));
  if (plan.rows == 0)
    return KVC_OK;
  if (!logits)
    return failNull("logits");
  int64_t element = bytesOf(library->arithmetic), bytes;
  if (reinterpret_cast<uintptr_t>(logits) % uintptr_t(element) != 0)
    return fail(KVC_INVALID_ARGUMENT,
                "expected logits at a multiple of %lld bytes, but got %p",
                static_cast<long long>(element), logits);
  if (!multiply(plan.rows, library->vocab * element, &bytes))
    bytes = INT64_MAX;
  if (overlap(logits, bytes, chunks, chunkCount * int64_t(sizeof *chunks)))
    return fail(KVC_INVALID_ARGUMENT,
                "expected logits to stand apart from chunks, but the %lld rows "
                "overlap them",
                static_cast<long long>(plan.rows));
  for (int64_t i = 0; i < chunkCount; ++i)
    if (overlap(logits, bytes, chunks[i].tokens,
                chunks[i].count * int64_t(sizeof(int32_t))))
      return fail(KVC_INVALID_ARGUMENT,
                  "chunk %lld: expected logits to stand apart from tokens, but "
                  "the %lld rows overlap them",
                  static_cast<long long>(i), static_cast<long long>(plan.rows));
  return KVC_OK;
}

kvc_buffer bufferOf(void *address, int64_t elements) {
  return {address, address, 0, elements, 1};
}

// Gathers tokens of chunks and computes them max_tokens at a time, and of one
// sequence as many as the cache takes at a time.
class Slices {
public:
  Slices(kvc_session *session, void *logits)
      : session(session), logits(static_cast<char *>(logits)) {}

  void append(const kvc_chunk &chunk) {
    int64_t room = session->model->library->max_tokens;
    int64_t first = 0; // of the chunk in the slice
    for (int64_t i = 0; i < chunk.count; ++i) {
      if (count == room || i - first == session->model->longestSlice) {
        compute();
        first = i;
      }
      if (chunk.outputs == KVC_OUTPUTS_ALL ||
          (chunk.outputs == KVC_OUTPUTS_LAST && i == chunk.count - 1))
        session->outputs[rows++] = count;
      session->tokens[count] = chunk.tokens[i];
      session->sequenceOf[count] = int32_t(chunk.sequence);
      ++count;
    }
  }

  // Computes what has been gathered since the last time.
  void compute() {
    const kvc_library *library = session->model->library;
    const PackedFile &file = session->model->weights;
    kvc_buffer weights = bufferOf(file.data, file.dataBytes);
    kvc_buffer pool =
        bufferOf(session->cache.address, session->cache.bytes);
    kvc_buffer pages =
        bufferOf(session->tables, session->sequences * session->tablePages);
    kvc_buffer lengths = bufferOf(session->computed, session->sequences);
    kvc_buffer tokens = bufferOf(session->tokens, count);
    kvc_buffer sequences = bufferOf(session->sequenceOf, count);
    kvc_buffer outputs = bufferOf(session->outputs, rows);
    kvc_buffer scores = bufferOf(logits, rows * library->vocab);
    kvc_buffer workspace =
        bufferOf(session->workspace.address, session->workspace.bytes);
    int64_t regions = regionsOf(session);
    session->kernels->forward(&weights, &pool, &pages, &lengths, &tokens,
                              &sequences, &outputs, &scores, &workspace,
                              session->threads
                                  ? executorOf(session->threads)
                                  : &session->application.executor);
    session->regions = regionsOf(session) - regions;
    for (int64_t i = 0; i < count; ++i)
      ++session->computed[session->sequenceOf[i]];
    if (rows) // else logits may be NULL
      logits += rows * library->vocab * bytesOf(library->arithmetic);
    count = rows = 0;
  }

private:
  kvc_session *session;
  char *logits;      // where the slice's rows go
  int64_t count = 0; // tokens gathered
  int64_t rows = 0;  // of these, how many give logits
};

// Makes the chunk a part of its sequence.
void commit(kvc_session *session, const kvc_chunk &chunk) {
  int64_t length = session->lengths[chunk.sequence];
  for (int64_t i = 0; i < chunk.count; ++i)
    tokenAt(session, chunk.sequence, length + i) = chunk.tokens[i];
  setLength(session, chunk.sequence, length + chunk.count);
}

} // namespace

kvc_status kvc::forward(kvc_session *session, const kvc_chunk *chunks,
                        int64_t chunkCount, void *logits, int64_t logitsRows) {
  Plan plan;
  if (kvc_status status = planChunks(session, chunks, chunkCount, &plan))
    return status;
  if (kvc_status status = checkLogits(session->model->library, plan, chunks,
                                      chunkCount, logits, logitsRows))
    return status;

  for (int64_t i = 0; i < chunkCount; ++i)
    takePagesToAppend(session, chunks[i].sequence, chunks[i].count);

  FloatEnvironment environment(session->model->library->numerics);
  Slices slices(session, logits);
  for (int64_t i = 0; i < chunkCount; ++i)
    slices.append(chunks[i]);
  slices.compute();

  for (int64_t i = 0; i < chunkCount; ++i)
    commit(session, chunks[i]);
  return KVC_OK;
}

kvc_status kvc_forward(kvc_session *session, const kvc_chunk *chunks,
                       int64_t chunk_count, void *logits, int64_t logits_rows) {
  Turn turn(session, Use::changing);
  if (turn.status != KVC_OK)
    return turn.status;
  return forward(session, chunks, chunk_count, logits, logits_rows);
}
