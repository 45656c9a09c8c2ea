/* Every way in which a call of kvc.h is refused: it says so, and session and
 * sampler are as before, down to the bytes of the cache. refusals.py checks that
 * each function that can fail is here. */
#include "check.h"
#include "fake_model.h"

static const fake_shape shape = {160, 16, 32, KVC_TYPE_F64};
static const int32_t text[160] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7};

enum { sequences = 3, most_bytes = 8192 };

/* What can be seen of a session. */
typedef struct view {
  kvc_session_info info;
  kvc_sequence_info sequences[sequences];
  char saved[sequences][most_bytes]; /* tokens, keys and values */
} view;

static void look(const kvc_session *session, const char *folder, view *v) {
  memset(v, 0, sizeof *v);
  kvc_session_info_init(&v->info);
  CHECK_OK(kvc_session_query(session, &v->info));
  for (int64_t s = 0; s < sequences; ++s) {
    kvc_sequence_info_init(&v->sequences[s]);
    CHECK_OK(kvc_sequence_query(session, s, &v->sequences[s]));
    char path[4096];
    snprintf(path, sizeof path, "%s/view", folder);
    CHECK_OK(kvc_sequence_save(session, s, path));
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(v->saved[s], 1, most_bytes, file) < most_bytes);
    fclose(file);
  }
}

static kvc_session *session;
static const char *place;
static view before, after;

#define REFUSED(function, arguments, expectedStatus)                           \
  do {                                                                         \
    CHECK_EQUAL(function arguments, expectedStatus);                           \
    CHECK(*kvc_last_error());                                                  \
    look(session, place, &after);                                              \
    CHECK(memcmp(&before, &after, sizeof before) == 0);                        \
  } while (0)
#define INVALID(function, arguments)                                           \
  REFUSED(function, arguments, KVC_INVALID_ARGUMENT)

static void models(const kvc_library *library, const char *weights) {
  kvc_model *model = NULL;
  kvc_library old = *library, other = *library, strange = *library;
  kvc_kernels kernels = {"any", "warp9", library->kernels->forward};
  old.abi_version = KVC_ABI_VERSION + 1;
  other.identity[0] ^= 1;
  strange.kernels = &kernels;
  INVALID(kvc_model_open, (NULL, weights, &model));
  INVALID(kvc_model_open, (library, NULL, &model));
  INVALID(kvc_model_open, (library, weights, NULL));
  REFUSED(kvc_model_open, (&old, weights, &model), KVC_INCOMPATIBLE);
  REFUSED(kvc_model_open, (&other, weights, &model), KVC_INCOMPATIBLE);
  REFUSED(kvc_model_open, (&strange, weights, &model), KVC_INCOMPATIBLE);
  REFUSED(kvc_model_open, (library, "absent", &model), KVC_IO);
  CHECK(model == NULL);
  kvc_allocator none = {NULL, NULL, NULL};
  INVALID(kvc_set_allocator, (&none));
  REFUSED(kvc_set_allocator, (NULL), KVC_BUSY);
}

static void sessions(const kvc_model *model) {
  kvc_model_info model_info;
  kvc_model_info_init(&model_info);
  INVALID(kvc_model_query, (NULL, &model_info));
  INVALID(kvc_model_query, (model, NULL));
  model_info.size = 0;
  INVALID(kvc_model_query, (model, &model_info));

  kvc_session *made = NULL;
  kvc_session_params params;
#define INVALID_PARAMS(change)                                                 \
  kvc_session_params_init(&params);                                            \
  change;                                                                      \
  INVALID(kvc_session_create, (model, &params, &made))
  INVALID_PARAMS(params.size = 1);
  INVALID_PARAMS(params.sequences = 0);
  INVALID_PARAMS(params.capacity = 161);
  INVALID_PARAMS(params.threads = -1);
  INVALID_PARAMS(params.poison = 2);
  INVALID_PARAMS(params.pool_pages = 11);
  INVALID_PARAMS(params.cpu_level = "none");
  INVALID(kvc_session_create, (NULL, NULL, &made));
  INVALID(kvc_session_create, (model, NULL, NULL));
  CHECK(made == NULL);

  kvc_session_info info;
  kvc_session_info_init(&info);
  int64_t value;
  INVALID(kvc_session_query, (NULL, &info));
  INVALID(kvc_session_query, (session, NULL));
  info.size = sizeof info + 1;
  INVALID(kvc_session_query, (session, &info));
  INVALID(kvc_session_capacity, (NULL, &value));
  INVALID(kvc_session_capacity, (session, NULL));
  INVALID(kvc_session_reset, (NULL));
  const int64_t order[] = {0, 1, 3};
  INVALID(kvc_session_reorder, (NULL, order, 2));
  INVALID(kvc_session_reorder, (session, NULL, 2));
  INVALID(kvc_session_reorder, (session, order, 3));
  INVALID(kvc_session_reorder, (session, order, 4));
  INVALID(kvc_session_reorder, (session, order, -1));
}

static void each_sequence(kvc_session *small) {
  kvc_sequence_info info;
  kvc_sequence_info_init(&info);
  int64_t value;
  int32_t tokens[64];
  char path[4096];
  INVALID(kvc_sequence_length, (NULL, 0, &value));
  INVALID(kvc_sequence_length, (session, 3, &value));
  INVALID(kvc_sequence_length, (session, 0, NULL));
  INVALID(kvc_sequence_truncate, (NULL, 0, 0));
  INVALID(kvc_sequence_truncate, (session, -1, 0));
  INVALID(kvc_sequence_truncate, (session, 0, 51));
  INVALID(kvc_sequence_truncate, (session, 0, -1));
  INVALID(kvc_sequence_remove, (NULL, 0));
  INVALID(kvc_sequence_remove, (session, 3));
  INVALID(kvc_sequence_fork, (NULL, 0, 1));
  INVALID(kvc_sequence_fork, (session, 0, 3));
  INVALID(kvc_sequence_fork, (session, 3, 0));
  INVALID(kvc_sequence_copy, (NULL, 0, session, 0));
  INVALID(kvc_sequence_copy, (small, 0, NULL, 0));
  INVALID(kvc_sequence_copy, (small, 1, session, 0));
  INVALID(kvc_sequence_copy, (small, 0, session, 3));
  REFUSED(kvc_sequence_copy, (session, 0, small, 0), KVC_OUT_OF_CAPACITY);
  INVALID(kvc_sequence_tokens, (NULL, 0, 0, 1, tokens));
  INVALID(kvc_sequence_tokens, (session, 3, 0, 1, tokens));
  INVALID(kvc_sequence_tokens, (session, 0, 51, 0, tokens));
  INVALID(kvc_sequence_tokens, (session, 0, -1, 1, tokens));
  INVALID(kvc_sequence_tokens, (session, 0, 0, 51, tokens));
  INVALID(kvc_sequence_tokens, (session, 0, 0, -1, tokens));
  INVALID(kvc_sequence_tokens, (session, 0, 0, 1, NULL));
  INVALID(kvc_sequence_query, (NULL, 0, &info));
  INVALID(kvc_sequence_query, (session, 3, &info));
  INVALID(kvc_sequence_query, (session, 0, NULL));
  info.size = 2;
  INVALID(kvc_sequence_query, (session, 0, &info));
  INVALID(kvc_sequence_save, (NULL, 0, place));
  INVALID(kvc_sequence_save, (session, 3, place));
  INVALID(kvc_sequence_save, (session, 0, NULL));
  REFUSED(kvc_sequence_save, (session, 0, "/absent/state"), KVC_IO);
  REFUSED(kvc_sequence_save, (session, 0, place), KVC_IO); /* a folder */
  snprintf(path, sizeof path, "%s/long", place);
  CHECK_OK(kvc_sequence_save(session, 0, path));
  INVALID(kvc_sequence_restore, (NULL, 0, path));
  INVALID(kvc_sequence_restore, (session, 3, path));
  INVALID(kvc_sequence_restore, (session, 0, NULL));
  INVALID(kvc_sequence_restore, (session, 0, path)); /* not empty */
  REFUSED(kvc_sequence_restore, (session, 2, "absent"), KVC_IO);
  REFUSED(kvc_sequence_restore, (session, 2, place), KVC_IO);
  REFUSED(kvc_sequence_restore, (session, 2, path), KVC_OUT_OF_CAPACITY);
}

static void forwards(void) {
  double logits[2 * fake_vocab];
  kvc_plan_info info;
  kvc_plan_info_init(&info);
  static const int32_t wrong[] = {1, fake_vocab}, negative[] = {-1};
  const struct {
    kvc_chunk chunk;
    kvc_status status;
  } cases[] = {
      {{3, text, 1, KVC_OUTPUTS_NONE}, KVC_INVALID_ARGUMENT},
      {{-1, text, 1, KVC_OUTPUTS_NONE}, KVC_INVALID_ARGUMENT},
      {{2, text, 1, KVC_OUTPUTS_NONE}, KVC_INVALID_ARGUMENT}, /* twice */
      {{1, text, 0, KVC_OUTPUTS_NONE}, KVC_INVALID_ARGUMENT},
      {{1, NULL, 1, KVC_OUTPUTS_NONE}, KVC_INVALID_ARGUMENT},
      {{1, wrong, 2, KVC_OUTPUTS_NONE}, KVC_INVALID_ARGUMENT},
      {{1, negative, 1, KVC_OUTPUTS_NONE}, KVC_INVALID_ARGUMENT},
      {{1, text, 1, (kvc_outputs)3}, KVC_INVALID_ARGUMENT},
      {{1, text, 111, KVC_OUTPUTS_NONE}, KVC_OUT_OF_CAPACITY}, /* positions */
      {{1, text, 40, KVC_OUTPUTS_NONE}, KVC_OUT_OF_CAPACITY},  /* pages */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    kvc_chunk chunks[] = {{2, text, 1, KVC_OUTPUTS_NONE}, cases[i].chunk};
    REFUSED(kvc_forward, (session, chunks, 2, logits, 2), cases[i].status);
    REFUSED(kvc_plan, (session, chunks, 2, &info), cases[i].status);
  }
  kvc_chunk good = {1, text, 2, KVC_OUTPUTS_ALL};
  INVALID(kvc_forward, (NULL, &good, 1, logits, 2));
  INVALID(kvc_forward, (session, NULL, 1, logits, 2));
  INVALID(kvc_forward, (session, &good, 0, logits, 2));
  INVALID(kvc_forward, (session, &good, 1, logits, 1));
  INVALID(kvc_forward, (session, &good, 1, NULL, 2));
  INVALID(kvc_plan, (NULL, &good, 1, &info));
  INVALID(kvc_plan, (session, NULL, 1, &info));
  INVALID(kvc_plan, (session, &good, 0, &info));
  INVALID(kvc_plan, (session, &good, 1, NULL));
  info.size = 0;
  INVALID(kvc_plan, (session, &good, 1, &info));
}

static void samples(void) {
  kvc_sampler *sampler = NULL, *other = NULL;
  kvc_sampler_params params;
#define INVALID_SAMPLING(change)                                               \
  kvc_sampler_params_init(&params);                                            \
  change;                                                                      \
  INVALID(kvc_sampler_create, (&params, fake_vocab, KVC_TYPE_F64, &sampler))
  INVALID_SAMPLING(params.size = 1);
  INVALID_SAMPLING(params.temperature = -1);
  INVALID_SAMPLING(params.top_k = fake_vocab + 1);
  INVALID_SAMPLING(params.top_p = 0);
  INVALID(kvc_sampler_create, (NULL, 0, KVC_TYPE_F64, &sampler));
  INVALID(kvc_sampler_create, (NULL, fake_vocab, KVC_TYPE_F16, &sampler));
  INVALID(kvc_sampler_create, (NULL, fake_vocab, KVC_TYPE_F64, NULL));
  CHECK(sampler == NULL);
  CHECK_OK(kvc_sampler_create(NULL, fake_vocab, KVC_TYPE_F64, &sampler));
  CHECK_OK(kvc_sampler_create(NULL, fake_vocab + 1, KVC_TYPE_F64, &other));
  double row[fake_vocab] = {0};
  int32_t token;
  INVALID(kvc_sampler_sample, (NULL, row, &token));
  INVALID(kvc_sampler_sample, (sampler, NULL, &token));
  INVALID(kvc_sampler_sample, (sampler, row, NULL));
  row[3] = 1e308 * 10;
  INVALID(kvc_sampler_sample, (sampler, row, &token));

#define GENERATE(...) (session, __VA_ARGS__, NULL, NULL, NULL, NULL)
  INVALID(kvc_generate,
          (NULL, 1, text, 1, 1, NULL, NULL, 0, NULL, NULL, NULL, NULL));
  INVALID(kvc_generate, GENERATE(3, text, 1, 1, NULL, NULL, 0));
  INVALID(kvc_generate, GENERATE(1, text, 1, -1, NULL, NULL, 0));
  INVALID(kvc_generate, GENERATE(1, text, 1, 1, other, NULL, 0));
  INVALID(kvc_generate, GENERATE(1, text, 1, 1, NULL, NULL, -1));
  INVALID(kvc_generate, GENERATE(1, text, 1, 1, NULL, NULL, 1));
  INVALID(kvc_generate, GENERATE(1, text, -1, 1, NULL, NULL, 0));
  INVALID(kvc_generate, GENERATE(1, text, 0, 1, NULL, NULL, 0));
  INVALID(kvc_generate, GENERATE(1, NULL, 1, 1, NULL, NULL, 0));
  REFUSED(kvc_generate, GENERATE(1, text, 1, 111, NULL, NULL, 0),
          KVC_OUT_OF_CAPACITY);
  REFUSED(kvc_generate, GENERATE(1, text, 1, 40, NULL, NULL, 0),
          KVC_OUT_OF_CAPACITY);
  /* The third row is broken: two tokens are taken back. */
  fake_broken_row = fake_rows_computed + 2;
  INVALID(kvc_generate, GENERATE(2, text, 1, 5, NULL, NULL, 0));
  fake_broken_row = -1;
  kvc_sampler_destroy(other);
  kvc_sampler_destroy(sampler);
}

void test_refusals(const char *folder) {
  kvc_library library;
  char weights[4096];
  snprintf(weights, sizeof weights, "%s/fake.safetensors", folder);
  kvc_model *model = fake_model_open(&library, &shape, folder);
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = sequences;
  params.poison = 1;
  params.pool_pages = 6; /* 4 are taken: 2 are left */
  params.threads = 1;
  CHECK_OK(kvc_session_create(model, &params, &session));
  kvc_session *small = NULL;
  params.sequences = 1;
  params.capacity = 49;
  params.pool_pages = 0;
  CHECK_OK(kvc_session_create(model, &params, &small));
  kvc_chunk chunk = {0, text, 50, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(session, &chunk, 1, NULL, 0));
  CHECK_OK(kvc_sequence_fork(session, 0, 1));
  place = folder;
  look(session, place, &before);
  models(&library, weights);
  sessions(model);
  each_sequence(small);
  forwards();
  samples();
  kvc_session_destroy(small);
  kvc_session_destroy(session);
  kvc_model_close(model);
}
