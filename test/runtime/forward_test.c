/* Ragged batches: every row as it should be, every error before any change. */
#include "check.h"
#include "fake_model.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { sequences = 4, room = 256 };

/* What the test knows of a session: the tokens of each sequence. */
typedef struct history {
  kvc_session *session;
  int64_t capacity;
  kvc_type type;
  int32_t tokens[sequences][room];
  int64_t lengths[sequences];
} history;

static uint64_t random_state;

static int64_t below(int64_t bound) {
  random_state = random_state * 6364136223846793005 + 1442695040888963407;
  return (int64_t)(random_state >> 33) % bound;
}

static void start(history *h, const kvc_model *model, int32_t threads,
                  int64_t capacity, kvc_type type) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = sequences;
  params.capacity = capacity;
  params.threads = threads;
  params.poison = 1;
  memset(h, 0, sizeof *h);
  h->capacity = capacity;
  h->type = type;
  CHECK_OK(kvc_session_create(model, &params, &h->session));
}

static void check_lengths(const history *h) {
  for (int64_t s = 0; s < sequences; ++s) {
    int64_t length = -1;
    CHECK_OK(kvc_sequence_length(h->session, s, &length));
    CHECK_EQUAL(length, h->lengths[s]);
  }
}

/* Compares rows of `logits` with what tokens [length - count, length) of the
 * sequence should give; returns the rows that the chunk has. */
static int64_t check_rows(const history *h, const kvc_chunk *chunk,
                          const void *logits) {
  int64_t rows = 0;
  for (int64_t i = 0; i < chunk->count; ++i) {
    if (chunk->outputs == KVC_OUTPUTS_NONE ||
        (chunk->outputs == KVC_OUTPUTS_LAST && i < chunk->count - 1))
      continue;
    double expected[fake_vocab];
    int64_t end = h->lengths[chunk->sequence] - chunk->count + i + 1;
    fake_expected_row(h->tokens[chunk->sequence], end, expected);
    for (int64_t id = 0; id < fake_vocab; ++id)
      if (h->type == KVC_TYPE_F64)
        CHECK(((const double *)logits)[rows * fake_vocab + id] == expected[id]);
      else
        CHECK(((const float *)logits)[rows * fake_vocab + id] ==
              (float)expected[id]);
    ++rows;
  }
  return rows;
}

/* A random batch: some sequences in random order, chunks of any length. */
static void random_batch(history *h) {
  int64_t order[sequences] = {0, 1, 2, 3};
  for (int64_t i = sequences - 1; i > 0; --i) {
    int64_t j = below(i + 1), other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
  kvc_chunk chunks[sequences];
  int64_t count = 0, rows = 0, wanted = 1 + below(sequences);
  for (int64_t i = 0; i < sequences && count < wanted; ++i) {
    int64_t s = order[i], left = h->capacity - h->lengths[s];
    if (left == 0) {
      h->lengths[s] = below(h->capacity);
      CHECK_OK(kvc_sequence_truncate(h->session, s, h->lengths[s]));
      continue;
    }
    int64_t tokens = 1 + below(below(3) ? (left < 3 ? left : 3) : left);
    for (int64_t t = 0; t < tokens; ++t)
      h->tokens[s][h->lengths[s] + t] = (int32_t)below(fake_vocab);
    chunks[count] = (kvc_chunk){s, &h->tokens[s][h->lengths[s]], tokens,
                                (kvc_outputs)below(3)};
    h->lengths[s] += tokens;
    rows += chunks[count].outputs == KVC_OUTPUTS_ALL
                ? tokens
                : chunks[count].outputs == KVC_OUTPUTS_LAST;
    ++count;
  }
  if (count == 0)
    return;
  int64_t row_bytes = fake_vocab * (h->type == KVC_TYPE_F64 ? 8 : 4);
  char *logits = malloc((size_t)(row_bytes * (rows + 1)));
  CHECK(logits);
  memset(logits, 0x77, (size_t)(row_bytes * (rows + 1)));
  int64_t calls = fake_calls, computed = fake_tokens_computed;
  CHECK_OK(kvc_forward(h->session, chunks, count, rows ? logits : NULL,
                       rows + below(2)));
  CHECK(fake_calls > calls && fake_tokens_computed > computed);
  const char *row = logits;
  for (int64_t i = 0; i < count; ++i)
    row += check_rows(h, &chunks[i], row) * row_bytes;
  for (int64_t i = 0; i < row_bytes; ++i)
    CHECK_EQUAL(row[i], 0x77); /* room left over is not touched */
  check_lengths(h);
  free(logits);
}

static void random_batches(const char *folder) {
  static const fake_shape shapes[] = {
      {160, 160, 512, KVC_TYPE_F64}, /* contiguous, never sliced */
      {160, 160, 7, KVC_TYPE_F32},   /* sliced within and across chunks */
      {160, 13, 1, KVC_TYPE_F64},    /* pages, slices of one token */
      {30, 1, 32, KVC_TYPE_F32},     /* a page for each position */
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    kvc_library library;
    kvc_model *model = fake_model_open(&library, &shapes[i], folder);
    for (int32_t threads = 1; threads <= 3; ++threads) {
      history h;
      start(&h, model, threads, shapes[i].capacity - below(10),
            shapes[i].arithmetic);
      for (int batch = 0; batch < 300; ++batch)
        random_batch(&h);
      kvc_session_destroy(h.session);
    }
    kvc_model_close(model);
  }
}

/* Every way to be refused; a sequence is filled to exactly its capacity. */
static void refuses(const char *folder) {
  static const fake_shape shape = {160, 160, 32, KVC_TYPE_F64};
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  history h;
  start(&h, model, 2, 160, KVC_TYPE_F64);
  double logits[4 * fake_vocab], before[4 * fake_vocab];
  memset(logits, 0x33, sizeof logits);
  memcpy(before, logits, sizeof logits);

  for (int64_t i = 0; i < 158; ++i)
    h.tokens[3][i] = (int32_t)(i % fake_vocab);
  kvc_chunk chunk = {3, h.tokens[3], 158, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(h.session, &chunk, 1, NULL, 0));
  h.lengths[3] = 158;
  int64_t computed = fake_tokens_computed;

  int32_t tokens[] = {1, 2, 3, 4, 5};
  kvc_chunk good = {0, tokens, 5, KVC_OUTPUTS_LAST};
#define CHECK_REFUSED(second, status, message)                                 \
  do {                                                                         \
    kvc_chunk chunks[] = {good, second};                                       \
    CHECK_FAILS(kvc_forward(h.session, chunks, 2, logits, 4), status,          \
                message);                                                      \
    check_lengths(&h);                                                         \
    CHECK(memcmp(logits, before, sizeof logits) == 0);                         \
    CHECK_EQUAL(fake_tokens_computed, computed);                               \
  } while (0)
#define CHUNK(...) ((kvc_chunk){__VA_ARGS__})
  CHECK_REFUSED(CHUNK(3, tokens, 5, KVC_OUTPUTS_NONE), KVC_OUT_OF_CAPACITY,
                "sequence 3 holds 158 of 160 positions and chunk 1 adds 5");
  CHECK_REFUSED(CHUNK(2, tokens, INT64_MAX, KVC_OUTPUTS_ALL),
                KVC_OUT_OF_CAPACITY,
                "sequence 2 holds 0 of 160 positions and chunk 1 adds "
                "9223372036854775807");
  CHECK_REFUSED(CHUNK(4, tokens, 5, KVC_OUTPUTS_NONE), KVC_INVALID_ARGUMENT,
                "chunk 1: expected sequence to be in 0..3, but got 4");
  CHECK_REFUSED(CHUNK(-1, tokens, 5, KVC_OUTPUTS_NONE), KVC_INVALID_ARGUMENT,
                "chunk 1: expected sequence to be in 0..3, but got -1");
  CHECK_REFUSED(CHUNK(0, tokens, 1, KVC_OUTPUTS_NONE), KVC_INVALID_ARGUMENT,
                "chunk 1: expected each sequence once in a call, but sequence "
                "0 comes twice");
  CHECK_REFUSED(CHUNK(1, tokens, 0, KVC_OUTPUTS_NONE), KVC_INVALID_ARGUMENT,
                "chunk 1: expected at least one token, but got 0");
  CHECK_REFUSED(CHUNK(1, NULL, 1, KVC_OUTPUTS_NONE), KVC_INVALID_ARGUMENT,
                "chunk 1: expected tokens to be given, but got NULL");
  CHECK_REFUSED(CHUNK(1, tokens, 5, KVC_OUTPUTS_ALL), KVC_INVALID_ARGUMENT,
                "expected logits to have room for 6 rows, but got 4");
  CHECK_REFUSED(CHUNK(1, tokens, 5, (kvc_outputs)7), KVC_INVALID_ARGUMENT,
                "chunk 1: expected outputs to be none (0), last (1) or all "
                "(2), but got 7");
  tokens[4] = fake_vocab;
  CHECK_REFUSED(CHUNK(1, tokens + 1, 4, KVC_OUTPUTS_NONE), KVC_INVALID_ARGUMENT,
                "chunk 0: expected token 4 to be in 0..18, but got 19");
  tokens[4] = -1;
  CHECK_REFUSED(CHUNK(1, tokens, 4, KVC_OUTPUTS_NONE), KVC_INVALID_ARGUMENT,
                "chunk 0: expected token 4 to be in 0..18, but got -1");
  tokens[4] = 5;
  CHECK_FAILS(kvc_forward(h.session, &good, 0, logits, 4), KVC_INVALID_ARGUMENT,
              "expected at least one chunk, but got 0");
  CHECK_FAILS(kvc_forward(h.session, &good, INT64_MAX, logits, 4),
              KVC_INVALID_ARGUMENT,
              "expected at most 4 chunks, one for each sequence, but got "
              "9223372036854775807");
  CHECK_FAILS(kvc_forward(h.session, NULL, 1, logits, 4), KVC_INVALID_ARGUMENT,
              "expected chunks to be given, but got NULL");
  CHECK_FAILS(kvc_forward(h.session, &good, 1, NULL, 4), KVC_INVALID_ARGUMENT,
              "expected logits to be given, but got NULL");
  CHECK_FAILS(kvc_forward(NULL, &good, 1, logits, 4), KVC_INVALID_ARGUMENT,
              "expected session to be given, but got NULL");
  check_lengths(&h);

  /* Logits that would be written over what is still read: 2 rows are 304
   * bytes, and what touches them from either side is fine. */
  union {
    double logits[3 * fake_vocab];
    int32_t tokens[6 * fake_vocab];
    kvc_chunk chunks[8];
    char bytes[1];
  } shared = {{0}};
  chunk = CHUNK(1, shared.tokens + 10, 2, KVC_OUTPUTS_ALL);
#define CHECK_APART(where, message)                                            \
  CHECK_FAILS(kvc_forward(h.session, &chunk, 1, where, 2),                     \
              KVC_INVALID_ARGUMENT, message)
  CHECK_APART(shared.logits, "chunk 0: expected logits to stand apart from "
                             "tokens, but the 2 rows overlap them");
  CHECK_APART(shared.logits + 5, "chunk 0: expected logits to stand apart from "
                                 "tokens, but the 2 rows overlap them");
  chunk.tokens = shared.tokens + 75; /* the last 4 bytes of rows 0 and 1 */
  CHECK_APART(shared.logits, "chunk 0: expected logits to stand apart from "
                             "tokens, but the 2 rows overlap them");
  chunk.tokens = shared.tokens + 76;
  CHECK_OK(kvc_forward(h.session, &chunk, 1, shared.logits, 2));
  CHECK_OK(kvc_sequence_remove(h.session, 1));
  memset(&shared, 0, sizeof shared);
  chunk.tokens = shared.tokens;
  CHECK_OK(kvc_forward(h.session, &chunk, 1, shared.logits + 1, 2));
  CHECK_OK(kvc_sequence_remove(h.session, 1));
  shared.chunks[7] = CHUNK(1, tokens, 2, KVC_OUTPUTS_ALL);
  CHECK_FAILS(kvc_forward(h.session, &shared.chunks[7], 1, shared.logits, 2),
              KVC_INVALID_ARGUMENT,
              "expected logits to stand apart from chunks, but the 2 rows "
              "overlap them");
  char message[128];
  snprintf(message, sizeof message,
           "expected logits at a multiple of 8 bytes, but got %p",
           (void *)(shared.bytes + 4));
  chunk.tokens = tokens;
  CHECK_APART(shared.bytes + 4, message);
  check_lengths(&h);
  computed = fake_tokens_computed;

  /* Exactly full; one more is refused; the session goes on. */
  h.tokens[3][158] = 11, h.tokens[3][159] = 12;
  chunk = CHUNK(3, &h.tokens[3][158], 2, KVC_OUTPUTS_ALL);
  CHECK_OK(kvc_forward(h.session, &chunk, 1, logits, 2));
  h.lengths[3] = 160;
  CHECK_EQUAL(check_rows(&h, &chunk, logits), 2);
  memcpy(logits, before, sizeof logits);
  computed = fake_tokens_computed;
  CHECK_REFUSED(CHUNK(3, tokens, 1, KVC_OUTPUTS_LAST), KVC_OUT_OF_CAPACITY,
                "sequence 3 holds 160 of 160 positions and chunk 1 adds 1");
  CHECK_OK(kvc_forward(h.session, &good, 1, logits, 1));
  memcpy(h.tokens[0], tokens, sizeof tokens);
  h.lengths[0] = 5;
  CHECK_EQUAL(check_rows(&h, &good, logits), 1);
  check_lengths(&h);
  kvc_session_destroy(h.session);
  kvc_model_close(model);
}

/* The caller's rounding mode and denormal settings reach neither the model (it
 * checks) nor come back changed. */
static void keeps_float_environment(const char *folder) {
#if defined(__x86_64__)
  static const fake_shape shape = {160, 160, 32, KVC_TYPE_F64};
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  history h;
  unsigned saved = _mm_getcsr(),
           odd = 0xdfc0; /* upwards, flush, no denormals */
  _mm_setcsr(odd);
  start(&h, model, 2, 160, KVC_TYPE_F64);
  for (int batch = 0; batch < 20; ++batch)
    random_batch(&h);
  CHECK_EQUAL(_mm_getcsr() & 0xffc0, odd);
  _mm_setcsr(saved);
  kvc_session_destroy(h.session);
  kvc_model_close(model);
#else
  (void)folder;
#endif
}

void test_forward(const char *folder) {
  random_batches(folder);
  refuses(folder);
  keeps_float_environment(folder);
}
