/* Generation: what is forwarded, what is returned, where it ends. */
#include "check.h"
#include "fake_model.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static const fake_shape shape = {40, 40, 16, KVC_TYPE_F32};

/* The story's generate, greedy, without a cache. */
static void expected_greedy(const int32_t *prompt, int64_t prompt_count,
                            int64_t count, int32_t *out) {
  int32_t ids[64];
  memcpy(ids, prompt, sizeof *ids * (size_t)prompt_count);
  for (int64_t i = 0; i < count; ++i) {
    double row[fake_vocab];
    fake_expected_row(ids, prompt_count + i, row);
    int32_t best = 0;
    for (int32_t id = 1; id < fake_vocab; ++id)
      if ((float)row[id] > (float)row[best])
        best = id;
    ids[prompt_count + i] = out[i] = best;
  }
}

typedef struct listener {
  int32_t heard[64];
  int count, stop_after;
} listener;

static int listen(void *user, int32_t token) {
  listener *l = user;
  l->heard[l->count++] = token;
  return l->count == l->stop_after;
}

static int64_t length_of(const kvc_session *session) {
  int64_t length = -1;
  CHECK_OK(kvc_sequence_length(session, 0, &length));
  return length;
}

static const int32_t prompt[] = {1, 5, 2, 7, 7};

static void generates_greedily(kvc_session *session) {
  int32_t expected[36], tokens[36];
  int64_t made = -1;
  expected_greedy(prompt, 5, 36, expected);
  CHECK_OK(kvc_session_reset(session));
  int64_t computed = fake_tokens_computed;
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 12, NULL, NULL, 0, NULL, NULL,
                        tokens, &made));
  CHECK_EQUAL(made, 12);
  CHECK(memcmp(tokens, expected, 12 * sizeof *tokens) == 0);
  CHECK_EQUAL(length_of(session), 16); /* the last one is not forwarded */
  CHECK_EQUAL(fake_tokens_computed - computed, 16);

  /* The last token, forwarded as the next prompt, goes on as if at once; 40
   * positions take a prompt of 5 and 36 tokens. */
  CHECK_OK(kvc_generate(session, 0, &tokens[11], 1, 24, NULL, NULL, 0, NULL,
                        NULL, &tokens[12], &made));
  CHECK_EQUAL(made, 24);
  CHECK(memcmp(tokens, expected, sizeof tokens) == 0);
  CHECK_EQUAL(length_of(session), 40);

  /* Count 0 returns the prompt, which the caller has, and forwards nothing; no
   * prompt is needed then. */
  computed = fake_tokens_computed;
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 0, NULL, NULL, 0, NULL, NULL,
                        tokens, &made));
  CHECK_EQUAL(made, 0);
  CHECK_OK(kvc_generate(session, 0, NULL, 0, 0, NULL, NULL, 0, NULL, NULL, NULL,
                        NULL));
  CHECK_EQUAL(fake_tokens_computed, computed);
  CHECK_EQUAL(length_of(session), 40);
}

static void stops(kvc_session *session) {
  int32_t expected[12], tokens[12];
  int64_t made = -1;
  expected_greedy(prompt, 5, 12, expected);
  int64_t first = 0; /* where the token stands first that comes fourth */
  while (expected[first] != expected[3])
    ++first;
  const int32_t stop_tokens[] = {expected[3], 18};
  CHECK_OK(kvc_session_reset(session));
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 12, NULL, stop_tokens, 1, NULL,
                        NULL, tokens, &made));
  CHECK_EQUAL(made, first + 1);
  CHECK_EQUAL(tokens[first], expected[3]);
  CHECK_EQUAL(length_of(session), 5 + first);

  listener l = {{0}, 0, 6};
  CHECK_OK(kvc_session_reset(session));
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 12, NULL, NULL, 0, listen, &l,
                        NULL, &made));
  CHECK_EQUAL(made, 6);
  CHECK_EQUAL(l.count, 6);
  CHECK(memcmp(l.heard, expected, 6 * sizeof *expected) == 0);
  CHECK_EQUAL(length_of(session), 10);
}

static void refuses(kvc_session *session) {
  int64_t made = 77;
  kvc_sampler *sampler = NULL;
  kvc_sampler_params params;
  kvc_sampler_params_init(&params);
  params.temperature = 1;
  CHECK_OK(kvc_sampler_create(&params, fake_vocab, KVC_TYPE_F64, &sampler));
  CHECK_OK(kvc_session_reset(session));
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 1, NULL, NULL, 0, NULL, NULL,
                        NULL, NULL));
  int64_t computed = fake_tokens_computed;
#define CHECK_REFUSED(call, status, message)                                   \
  CHECK_FAILS(call, status, message);                                          \
  CHECK_EQUAL(length_of(session), 5);                                          \
  CHECK_EQUAL(fake_tokens_computed, computed);                                 \
  CHECK_EQUAL(made, 77)
  CHECK_REFUSED(kvc_generate(session, 0, prompt, 5, 32, NULL, NULL, 0, NULL,
                             NULL, NULL, &made),
                KVC_OUT_OF_CAPACITY,
                "sequence 0 holds 5 of 40 positions, and a prompt of 5 tokens "
                "with 32 to generate takes 36 more");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, 36, 1, NULL, NULL, 0, NULL,
                             NULL, NULL, &made),
                KVC_OUT_OF_CAPACITY,
                "sequence 0 holds 5 of 40 positions, and a prompt of 36 tokens "
                "with 1 to generate takes 36 more");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, 5, INT64_MAX, NULL, NULL, 0,
                             NULL, NULL, NULL, &made),
                KVC_OUT_OF_CAPACITY,
                "sequence 0 holds 5 of 40 positions, and a prompt of 5 tokens "
                "with 9223372036854775807 to generate takes "
                "9223372036854775811 more");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, INT64_MAX, INT64_MAX, NULL,
                             NULL, 0, NULL, NULL, NULL, &made),
                KVC_OUT_OF_CAPACITY,
                "sequence 0 holds 5 of 40 positions, and a prompt of "
                "9223372036854775807 tokens with 9223372036854775807 to "
                "generate takes 18446744073709551613 more");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, -1, 0, NULL, NULL, 0, NULL,
                             NULL, NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected prompt_count to be at least 0, but got -1");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, 5, -1, NULL, NULL, 0, NULL,
                             NULL, NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected count to be at least 0, but got -1");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, 0, 1, NULL, NULL, 0, NULL,
                             NULL, NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected prompt to have at least one token, but got 0");
  CHECK_REFUSED(kvc_generate(session, 0, NULL, 5, 1, NULL, NULL, 0, NULL, NULL,
                             NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected prompt to be given, but got NULL");
  CHECK_REFUSED(kvc_generate(session, 1, prompt, 5, 1, NULL, NULL, 0, NULL,
                             NULL, NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected sequence to be in 0..0, but got 1");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, 5, 1, NULL, NULL, 2, NULL,
                             NULL, NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected stop_tokens to be given, but got NULL");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, 5, 1, NULL, NULL, -1, NULL,
                             NULL, NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected stop_count to be at least 0, but got -1");
  CHECK_REFUSED(kvc_generate(session, 0, prompt, 5, 1, sampler, NULL, 0, NULL,
                             NULL, NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected a sampler of 19 tokens and type f32 (the model's), but got "
              "one of 19 and f64");
  int32_t wrong[] = {1, 19};
  CHECK_REFUSED(kvc_generate(session, 0, wrong, 2, 1, NULL, NULL, 0, NULL, NULL,
                             NULL, &made),
                KVC_INVALID_ARGUMENT,
                "chunk 0: expected token 1 to be in 0..18, but got 19");
  CHECK_REFUSED(kvc_generate(NULL, 0, prompt, 5, 1, NULL, NULL, 0, NULL, NULL,
                             NULL, &made),
                KVC_INVALID_ARGUMENT,
                "expected session to be given, but got NULL");
  kvc_sampler_destroy(sampler);
}

/* A row that can't be sampled in the middle takes sequence and sampler
 * back to where they were. */
static void goes_back(kvc_session *session) {
  kvc_sampler *sampler = NULL;
  kvc_sampler_params params;
  kvc_sampler_params_init(&params);
  params.temperature = 0.7;
  params.seed = 3;
  CHECK_OK(kvc_sampler_create(&params, fake_vocab, KVC_TYPE_F32, &sampler));
  CHECK_OK(kvc_session_reset(session));
  int32_t first[10], again[10];
  int64_t made = 77;
  fake_broken_row = fake_rows_computed + 4;
  first[4] = -7;
  CHECK_FAILS(kvc_generate(session, 0, prompt, 5, 10, sampler, NULL, 0, NULL,
                           NULL, first, &made),
              KVC_INVALID_ARGUMENT,
              "expected logits to be finite or minus infinity, but logit 0 is "
              "nan");
  fake_broken_row = -1;
  CHECK_EQUAL(length_of(session), 0);
  CHECK_EQUAL(made, 77);
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 10, sampler, NULL, 0, NULL, NULL,
                        again, &made));
  /* What was chosen before the failure was written, and nothing after it. */
  CHECK(memcmp(first, again, 4 * sizeof *first) == 0);
  CHECK_EQUAL(first[4], -7);

  /* The same seed gives the same tokens; a sampler goes on, it does not start
   * anew. */
  kvc_sampler *twin = NULL;
  CHECK_OK(kvc_sampler_create(&params, fake_vocab, KVC_TYPE_F32, &twin));
  CHECK_OK(kvc_session_reset(session));
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 10, twin, NULL, 0, NULL, NULL,
                        first, NULL));
  CHECK(memcmp(first, again, sizeof first) == 0);
  CHECK_OK(kvc_session_reset(session));
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 10, twin, NULL, 0, NULL, NULL,
                        first, NULL));
  CHECK(memcmp(first, again, sizeof first) != 0);
  kvc_sampler_destroy(twin);
  kvc_sampler_destroy(sampler);
}

/* The application's rounding and its flushed denormals reach no thread of the
 * model, no choice and no result, and stand as they were in its own functions. */
#if defined(__x86_64__)
enum { odd_mode = 0xdfc0, mode_bits = 0xffc0 };

static void check_mode(void) { CHECK_EQUAL(_mm_getcsr() & mode_bits, odd_mode); }

static void *give(void *user, int64_t bytes) {
  (void)user;
  check_mode();
  return aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
}

static void take(void *user, void *memory) {
  (void)user;
  check_mode();
  free(memory);
}

static int listen_to_mode(void *user, int32_t token) {
  (void)user, (void)token;
  check_mode();
  return 0;
}

static void generate_sampled(const kvc_model *model,
                             const kvc_allocator *allocator,
                             kvc_token_callback callback, int32_t *tokens) {
  kvc_session_params params;
  kvc_sampler_params sampling;
  kvc_session *session = NULL;
  kvc_sampler *sampler = NULL;
  kvc_session_params_init(&params);
  kvc_sampler_params_init(&sampling);
  params.threads = 4;
  params.allocator = sampling.allocator = allocator;
  sampling.temperature = 0x1p-1060; /* which isn't zero */
  CHECK_OK(kvc_session_create(model, &params, &session));
  CHECK_OK(kvc_sampler_create(&sampling, fake_vocab, KVC_TYPE_F32, &sampler));
  sampling.temperature = 0.8;
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 12, sampler, NULL, 0, callback,
                        NULL, tokens, NULL));
  kvc_sampler_destroy(sampler);
  CHECK_OK(kvc_sampler_create(&sampling, fake_vocab, KVC_TYPE_F32, &sampler));
  CHECK_OK(kvc_generate(session, 0, prompt, 5, 12, sampler, NULL, 0, callback,
                        NULL, tokens + 12, NULL));
  kvc_sampler_destroy(sampler);
  kvc_session_destroy(session);
}

static void keeps_float_environment(const kvc_model *model) {
  const kvc_allocator allocator = {give, take, NULL};
  int32_t usual[24], odd[24];
  generate_sampled(model, NULL, NULL, usual);
  unsigned saved = _mm_getcsr();
  _mm_setcsr(odd_mode);
  generate_sampled(model, &allocator, listen_to_mode, odd);
  check_mode();
  _mm_setcsr(saved);
  CHECK(memcmp(usual, odd, sizeof usual) == 0);
}
#else
static void keeps_float_environment(const kvc_model *model) { (void)model; }
#endif

void test_generate(const char *folder) {
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  kvc_session *session = NULL;
  CHECK_OK(kvc_session_create(model, NULL, &session));
  generates_greedily(session);
  stops(session);
  refuses(session);
  goes_back(session);
  keeps_float_environment(model);
  kvc_session_destroy(session);
  kvc_model_close(model);
}
