/* Sessions: parameters, lengths, truncation, reset, the model's life. */
#include "check.h"
#include "fake_model.h"

#include <pthread.h>
#include <sys/resource.h>

static const fake_shape shape = {160, 160, 32, KVC_TYPE_F64};

static void rejects_parameters(const kvc_model *model) {
  kvc_session *session = NULL;
  kvc_session_params params;
#define CHECK_PARAMS(change, status, message)                                  \
  kvc_session_params_init(&params);                                            \
  change;                                                                      \
  CHECK_FAILS(kvc_session_create(model, &params, &session), status, message)
  CHECK_PARAMS(params.sequences = -1, KVC_INVALID_ARGUMENT,
               "expected sequences to be in 1..2147483647, or 0 for one, but got "
               "-1");
  CHECK_PARAMS(params.capacity = 161, KVC_INVALID_ARGUMENT,
               "expected capacity to be in 1..160 (the model's), or 0 for all "
               "of it, but got 161");
  CHECK_PARAMS(params.capacity = -1, KVC_INVALID_ARGUMENT,
               "expected capacity to be in 1..160 (the model's), or 0 for all "
               "of it, but got -1");
  CHECK_PARAMS(params.threads = -2, KVC_INVALID_ARGUMENT,
               "expected threads to be in 1..1024, or 0 for one on each CPU, "
               "but got -2");
  CHECK_PARAMS(params.threads = 1025, KVC_INVALID_ARGUMENT,
               "expected threads to be in 1..1024, or 0 for one on each CPU, "
               "but got 1025");
  static const kvc_executor none = {NULL};
  CHECK_PARAMS(params.executor = &none, KVC_INVALID_ARGUMENT,
               "expected executor->parallel_for to be given, but got NULL");
  CHECK_PARAMS((params.executor = &none, params.threads = 2), KVC_INVALID_ARGUMENT,
               "expected threads to be 0 with an executor, which has its own, but "
               "got 2");
  CHECK_PARAMS(params.poison = 2, KVC_INVALID_ARGUMENT,
               "expected poison to be 0 or 1, but got 2");
  CHECK_PARAMS(params.cpu_level = "z80", KVC_INVALID_ARGUMENT,
               "expected cpu_level to be one of library fake (any), but got "
               "z80");
  CHECK_PARAMS((params.size = 0, params.poison = 1), KVC_INVALID_ARGUMENT,
               "expected kvc_session_params.size to be set by its init "
               "function (a multiple of 8 in 56..1024), but got 0");
  CHECK_FAILS(kvc_session_create(NULL, NULL, &session), KVC_INVALID_ARGUMENT,
              "expected model to be given, but got NULL");
  CHECK_FAILS(kvc_session_create(model, NULL, NULL), KVC_INVALID_ARGUMENT,
              "expected out_session to be given, but got NULL");
  CHECK(session == NULL);
  kvc_session_destroy(NULL);
}

static void rejects_a_level_that_does_not_run(const char *folder) {
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  kvc_kernels levels[] = {{"high", "sse2 warp9", NULL}, library.kernels[0]};
  library.kernels = levels;
  library.kernels_count = 2;
  kvc_session *session = NULL;
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.cpu_level = "high";
  CHECK_FAILS(kvc_session_create(model, &params, &session), KVC_INCOMPATIBLE,
              "expected a machine with the CPU feature warp9, which level high "
              "needs, but this machine lacks it");
  params.cpu_level = "none";
  CHECK_FAILS(kvc_session_create(model, &params, &session),
              KVC_INVALID_ARGUMENT,
              "expected cpu_level to be one of library fake (high, any), but "
              "got none");
  kvc_model_close(model);
}

/* A cache that can't be had is an error, and so is one that 64 bits don't
 * count. */
static void rejects_sizes(const char *folder) {
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  kvc_session *session = NULL;
  fake_group(&library, 0)->page_bytes = (int64_t)1 << 60;
  CHECK_FAILS(kvc_session_create(model, NULL, &session), KVC_OUT_OF_MEMORY,
              "no memory for a cache of 1152921504606846976 bytes, 1 sequences of "
              "160 positions: a model compiled with a smaller --capacity takes less");
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = 64;
  CHECK_FAILS(kvc_session_create(model, &params, &session), KVC_OUT_OF_MEMORY,
              "expected the cache's size to fit 64 bits, but got 64 pages of "
              "1152921504606846976 bytes");
  fake_group(&library, 0)->page_bytes = 16 * 160;
  library.workspace_bytes = (int64_t)1 << 60;
  CHECK_FAILS(kvc_session_create(model, NULL, &session), KVC_OUT_OF_MEMORY,
              "no memory for a workspace of 1152921504606846976 bytes");
  kvc_model_close(model);
}

/* What the process has touched at most, in bytes. */
static int64_t touched(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_maxrss * 1024;
}

/* A session that is refused touches no tables: they would take 64 MB here. Where
 * calloc itself touches what it gives (a sanitizer's), that can't be seen. */
static void refuses_before_touching(const char *folder) {
  int64_t start = touched();
  void *volatile untouched = calloc(64 << 20, 1);
  free(untouched);
  if (touched() - start > 32 << 20)
    return;
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  fake_group(&library, 0)->page_bytes = (int64_t)1 << 40;
  kvc_session *session = NULL;
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.threads = 1;
  params.sequences = 4 << 20;
  int64_t before = touched();
  CHECK_EQUAL(kvc_session_create(model, &params, &session), KVC_OUT_OF_MEMORY);
  params.pool_pages = params.sequences + 1;
  CHECK_FAILS(kvc_session_create(model, &params, &session),
              KVC_INVALID_ARGUMENT,
              "expected pool_pages to be in 1..4194304 (1 for each of 4194304 "
              "sequences), or 0 for all of them, but got 4194305");
  params.pool_pages = 1;
  fake_group(&library, 0)->page_bytes = 1;
  library.workspace_bytes = (int64_t)1 << 60;
  CHECK_EQUAL(kvc_session_create(model, &params, &session), KVC_OUT_OF_MEMORY);
  CHECK(touched() - before < 32 << 20);
  kvc_model_close(model);
}

static void keeps_lengths(const kvc_model *model) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = 3;
  params.capacity = 20;
  params.threads = 2;
  kvc_session *session = NULL;
  CHECK_OK(kvc_session_create(model, &params, &session));
  int32_t tokens[] = {3, 1, 4, 1, 5};
  kvc_chunk chunk = {1, tokens, 5, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(session, &chunk, 1, NULL, 0));

  int64_t length = -1, capacity = 0;
  CHECK_OK(kvc_session_capacity(session, &capacity));
  CHECK_EQUAL(capacity, 20);
  CHECK_OK(kvc_sequence_length(session, 1, &length));
  CHECK_EQUAL(length, 5);
  kvc_session_info info;
  kvc_session_info_init(&info);
  CHECK_OK(kvc_session_query(session, &info));
  CHECK_EQUAL(info.threads, 2);
  CHECK_EQUAL(info.sequences, 3);
  CHECK_EQUAL(info.capacity, 20);
  CHECK_EQUAL(info.cache_bytes, 5 * 16);
  CHECK_EQUAL(info.cache_reserved_bytes, 3 * 16 * 160);
  CHECK_EQUAL(info.workspace_bytes, 4096 + 8 * 32);
  /* Five keys; of logits there are none. */
  CHECK_EQUAL(info.parallel_regions, 1);
  CHECK(strcmp(info.cpu_level, "any") == 0);

  /* A refused truncation changes nothing. */
  CHECK_FAILS(kvc_sequence_truncate(session, 1, 6), KVC_INVALID_ARGUMENT,
              "expected length to be in 0..5 (that of sequence 1), but got 6");
  CHECK_FAILS(kvc_sequence_truncate(session, 1, -1), KVC_INVALID_ARGUMENT,
              "expected length to be in 0..5 (that of sequence 1), but got -1");
  CHECK_FAILS(kvc_sequence_truncate(session, 3, 0), KVC_INVALID_ARGUMENT,
              "expected sequence to be in 0..2, but got 3");
  CHECK_FAILS(kvc_sequence_length(session, -1, &length), KVC_INVALID_ARGUMENT,
              "expected sequence to be in 0..2, but got -1");
  CHECK_OK(kvc_sequence_length(session, 1, &length));
  CHECK_EQUAL(length, 5);
  CHECK_OK(kvc_sequence_truncate(session, 1, 5));
  CHECK_OK(kvc_sequence_truncate(session, 1, 2));
  CHECK_OK(kvc_sequence_length(session, 1, &length));
  CHECK_EQUAL(length, 2);

  /* After a truncation other tokens follow at the same positions. */
  double row[fake_vocab], expected[fake_vocab];
  int32_t other[] = {3, 1, 9};
  chunk = (kvc_chunk){1, other + 2, 1, KVC_OUTPUTS_LAST};
  CHECK_OK(kvc_forward(session, &chunk, 1, row, 1));
  fake_expected_row(other, 3, expected);
  CHECK(memcmp(row, expected, sizeof row) == 0);

  CHECK_OK(kvc_session_reset(session));
  for (int64_t i = 0; i < 3; ++i) {
    CHECK_OK(kvc_sequence_length(session, i, &length));
    CHECK_EQUAL(length, 0);
  }
  chunk = (kvc_chunk){1, other, 1, KVC_OUTPUTS_LAST};
  CHECK_OK(kvc_forward(session, &chunk, 1, row, 1));
  fake_expected_row(other, 1, expected);
  CHECK(memcmp(row, expected, sizeof row) == 0);

  CHECK_FAILS(kvc_session_reset(NULL), KVC_INVALID_ARGUMENT,
              "expected session to be given, but got NULL");
  CHECK_FAILS(kvc_session_reset((kvc_session *)(void *)&info),
              KVC_INVALID_ARGUMENT,
              "expected session to be a session, but got another thing");
  CHECK_FAILS(kvc_sequence_length(session, 0, NULL), KVC_INVALID_ARGUMENT,
              "expected out_length to be given, but got NULL");
  kvc_session_destroy(session);
}

/* Sessions outlive the handle of their model. */
static void keeps_its_model(const char *folder) {
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  kvc_session *session = NULL;
  CHECK_OK(kvc_session_create(model, NULL, &session));
  kvc_model_close(model);
  kvc_model_close(model); /* ignored */
  kvc_session *late = NULL;
  CHECK_FAILS(kvc_session_create(model, NULL, &late), KVC_INVALID_ARGUMENT,
              "expected model to be an open model, but got a closed one");
  kvc_model_info info;
  kvc_model_info_init(&info);
  CHECK_FAILS(kvc_model_query(model, &info), KVC_INVALID_ARGUMENT,
              "expected model to be an open model, but got a closed one");
  int32_t token = 7;
  double row[fake_vocab], expected[fake_vocab];
  kvc_chunk chunk = {0, &token, 1, KVC_OUTPUTS_LAST};
  CHECK_OK(kvc_forward(session, &chunk, 1, row, 1));
  fake_expected_row(&token, 1, expected);
  CHECK(memcmp(row, expected, sizeof row) == 0);
  kvc_session_destroy(session);
}

/* What is no handle of its kind is not destroyed. */
static void ignores_strangers(const kvc_model *model) {
  kvc_session *session = NULL;
  kvc_sampler *sampler = NULL;
  CHECK_OK(kvc_session_create(model, NULL, &session));
  CHECK_OK(kvc_sampler_create(NULL, fake_vocab, KVC_TYPE_F64, &sampler));
  kvc_session_destroy((kvc_session *)(void *)model);
  kvc_session_destroy((kvc_session *)(void *)sampler);
  kvc_model_close((kvc_model *)(void *)session);
  kvc_sampler_destroy((kvc_sampler *)(void *)session);
  CHECK_OK(kvc_session_reset(session));
  kvc_sampler_destroy(sampler);
  kvc_session_destroy(session);
}

/* One thread's user of a model: its own session, its own errors. */
static void *use_model(void *argument) {
  const kvc_model *model = argument;
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.threads = 2;
  kvc_session *session = NULL;
  CHECK_OK(kvc_session_create(model, &params, &session));
  int32_t tokens[160];
  double row[fake_vocab], expected[fake_vocab];
  for (int round = 0; round < 20; ++round) {
    CHECK_OK(kvc_session_reset(session));
    for (int32_t i = 0; i < 160; ++i) {
      tokens[i] = (int32_t)(((uintptr_t)tokens / 16 + (uint32_t)(i * round)) %
                            fake_vocab);
      kvc_chunk chunk = {0, &tokens[i], 1, KVC_OUTPUTS_LAST};
      CHECK_OK(kvc_forward(session, &chunk, 1, row, 1));
    }
    fake_expected_row(tokens, 160, expected);
    CHECK(memcmp(row, expected, sizeof row) == 0);
    char message[80];
    sprintf(message, "expected sequence to be in 0..0, but got %d", round + 1);
    CHECK_FAILS(kvc_sequence_truncate(session, round + 1, 0),
                KVC_INVALID_ARGUMENT, message);
  }
  kvc_session_destroy(session);
  return NULL;
}

/* Sessions of one model run side by side. */
static void side_by_side(const kvc_model *model) {
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i)
    CHECK(pthread_create(&threads[i], NULL, use_model, (void *)model) == 0);
  for (int i = 0; i < 3; ++i)
    CHECK(pthread_join(threads[i], NULL) == 0);
}

void test_session(const char *folder) {
  kvc_library library;
  rejects_a_level_that_does_not_run(folder);
  rejects_sizes(folder);
  refuses_before_touching(folder);
  keeps_its_model(folder);
  kvc_model *model = fake_model_open(&library, &shape, folder);
  rejects_parameters(model);
  ignores_strangers(model);
  keeps_lengths(model);
  side_by_side(model);
  kvc_model_close(model);
}
