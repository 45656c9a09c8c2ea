// Plan, compute, commit: one call of kvc_forward.
#include "error.h"
#include "float_environment.h"
#include "memory.h"
#include "params.h"
#include "session.h"

using namespace kvc;

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

kvc_status planChunk(kvc_session *session, const kvc_chunk &chunk,
                     int64_t index, int64_t *rows) {
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
  *rows += chunkRows; // at most sequences * capacity, which the pool holds
  return KVC_OK;
}

kvc_status plan(kvc_session *session, const kvc_chunk *chunks,
                int64_t chunkCount, const void *logits, int64_t logitsRows) {
  if (kvc_status status = checkSession(session))
    return status;
  if (!chunks)
    return failNull("chunks");
  if (chunkCount < 1)
    return fail(KVC_INVALID_ARGUMENT,
                "expected at least one chunk, but got %lld",
                static_cast<long long>(chunkCount));
  ++session->callNumber;
  int64_t rows = 0;
  for (int64_t i = 0; i < chunkCount; ++i)
    if (kvc_status status = planChunk(session, chunks[i], i, &rows))
      return status;
  if (rows > logitsRows)
    return fail(KVC_INVALID_ARGUMENT,
                "expected logits to have room for %lld rows, but got %lld",
                static_cast<long long>(rows),
                static_cast<long long>(logitsRows));
  if (rows > 0 && !logits)
    return failNull("logits");
  return KVC_OK;
}

kvc_buffer bufferOf(void *address, int64_t elements) {
  return {address, address, 0, elements, 1};
}

// Gathers tokens of chunks and computes them max_tokens at a time.
class Slices {
public:
  Slices(kvc_session *session, void *logits)
      : session(session), logits(static_cast<char *>(logits)) {}

  void append(const kvc_chunk &chunk) {
    int64_t room = session->model->library->max_tokens;
    for (int64_t i = 0; i < chunk.count; ++i) {
      if (count == room)
        compute();
      if (chunk.outputs == KVC_OUTPUTS_ALL ||
          (chunk.outputs == KVC_OUTPUTS_LAST && i == chunk.count - 1))
        session->outputs[rows++] = count;
      session->tokens[count] = chunk.tokens[i];
      session->slots[count] = int32_t(chunk.sequence);
      ++count;
    }
  }

  // Computes what has been gathered since the last time.
  void compute() {
    const kvc_library *library = session->model->library;
    const PackedFile &file = session->model->weights;
    int64_t sequences = session->sequences;
    kvc_buffer weights = bufferOf(file.data, file.dataBytes);
    kvc_buffer pool =
        bufferOf(session->pool.memory.address, session->pool.memory.bytes);
    kvc_buffer pages =
        bufferOf(session->pages, sequences * library->pages_per_sequence);
    kvc_buffer lengths = bufferOf(session->computed, sequences);
    kvc_buffer tokens = bufferOf(session->tokens, count);
    kvc_buffer slots = bufferOf(session->slots, count);
    kvc_buffer outputs = bufferOf(session->outputs, rows);
    kvc_buffer scores = bufferOf(logits, rows * library->vocab);
    kvc_buffer workspace =
        bufferOf(session->workspace.address, session->workspace.bytes);
    session->kernels->forward(&weights, &pool, &pages, &lengths, &tokens,
                              &slots, &outputs, &scores, &workspace,
                              executorOf(session->threads));
    for (int64_t i = 0; i < count; ++i)
      ++session->computed[session->slots[i]];
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

} // namespace

kvc_status kvc_forward(kvc_session *session, const kvc_chunk *chunks,
                       int64_t chunk_count, void *logits, int64_t logits_rows) {
  if (kvc_status status =
          plan(session, chunks, chunk_count, logits, logits_rows))
    return status;

  FloatEnvironment environment;
  Slices slices(session, logits);
  for (int64_t i = 0; i < chunk_count; ++i)
    slices.append(chunks[i]);
  slices.compute();

  for (int64_t i = 0; i < chunk_count; ++i)
    session->lengths[chunks[i].sequence] =
        session->computed[chunks[i].sequence];
  return KVC_OK;
}
