/* Every way in which a call of kvc.h is refused: it says so, and session and
 * sampler are as before, down to the bytes of the cache. refusals.py checks that
 * each function that can fail is here. */
#include "check.h"
#include "fake_model.h"
#include "view.h"

static const fake_shape shape = {160, 16, 32, KVC_TYPE_F64};
static const int32_t text[160] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7};

static kvc_session *session;
static const char *place;
static view before, after;

#define REFUSED(function, arguments, expectedStatus)                           \
  do {                                                                         \
    CHECK_EQUAL(function arguments, expectedStatus);                           \
    CHECK(*kvc_last_error());                                                  \
    view_take(session, place, &after);                                         \
    CHECK(memcmp(&before, &after, sizeof before) == 0);                        \
  } while (0)
#define INVALID(function, arguments)                                           \
  REFUSED(function, arguments, KVC_INVALID_ARGUMENT)

/* Copies a file of at most view_bytes: at most `length` bytes of it, and then
 * each `from` in it as `to`, which has as many characters. */
static void alter(const char *path, const char *altered, size_t length,
                  const char *from, const char *to) {
  char bytes[view_bytes];
  FILE *file = fopen(path, "rb");
  CHECK(file);
  size_t count = fread(bytes, 1, length < view_bytes ? length : view_bytes, file);
  fclose(file);
  size_t width = strlen(from), found = 0;
  CHECK_EQUAL(strlen(to), width);
  for (size_t i = 0; width && i + width <= count; ++i)
    if (memcmp(bytes + i, from, width) == 0) {
      memcpy(bytes + i, to, width);
      ++found;
    }
  CHECK(found || !width);
  CHECK((file = fopen(altered, "wb")));
  CHECK_EQUAL(fwrite(bytes, 1, count, file), count);
  fclose(file);
}

/* Libraries that no compiler writes. */
static void libraries(const kvc_library *library, const char *weights) {
  kvc_model *model = NULL;
#define STRANGE(change)                                                        \
  do {                                                                         \
    kvc_library strange = *library;                                            \
    strange.change;                                                            \
    REFUSED(kvc_model_open, (&strange, weights, NULL, &model), KVC_INCOMPATIBLE);    \
  } while (0)
  STRANGE(struct_size = 8);
  STRANGE(width = 0);
  STRANGE(vocab = (int64_t)1 << 31);
  STRANGE(arithmetic = KVC_TYPE_F16);
  STRANGE(groups_count = 0);
  STRANGE(exact = -1);
  STRANGE(numerics = (kvc_numerics)2);
#define STRANGE_GROUP(change)                                                  \
  do {                                                                         \
    kvc_library strange = *library;                                            \
    kvc_group group = library->groups[0];                                      \
    strange.groups = &group;                                                   \
    group.change;                                                              \
    REFUSED(kvc_model_open, (&strange, weights, NULL, &model), KVC_INCOMPATIBLE);    \
  } while (0)
  STRANGE_GROUP(type = (kvc_type)4);
  STRANGE_GROUP(pages_per_sequence = 1);
  STRANGE_GROUP(layers = 0);
  STRANGE_GROUP(page_bytes = 1);
  /* Two groups whose positions take 2^62 bytes each. */
  const kvc_section large = {0, 1, 1, 1, (int64_t)1 << 62};
  kvc_group groups[] = {library->groups[0], library->groups[0]};
  for (int i = 0; i < 2; ++i) {
    groups[i].positions_per_page = groups[i].sections_count = 1;
    groups[i].pages_per_sequence = library->capacity;
    groups[i].page_bytes = INT64_MAX;
    groups[i].sections = &large;
  }
  kvc_library both = *library;
  both.groups_count = 2;
  both.groups = groups;
  REFUSED(kvc_model_open, (&both, weights, NULL, &model), KVC_INCOMPATIBLE);
  CHECK(model == NULL);
}

/* Weight files that are cut or altered. */
static void weight_files(const kvc_library *library, const char *weights) {
  char path[4096];
  kvc_model *model = NULL;
  snprintf(path, sizeof path, "%s/altered.safetensors", place);
#define ALTERED(length, from, to, status)                                      \
  alter(weights, path, length, from, to);                                      \
  REFUSED(kvc_model_open, (library, path, NULL, &model), status)
  ALTERED(7, "", "", KVC_IO);
  ALTERED(20, "", "", KVC_IO);
  ALTERED(300, "", "", KVC_INCOMPATIBLE);
  ALTERED(view_bytes, "\xf8", "\xf7", KVC_IO); /* the header's length */
  ALTERED(view_bytes, "\"kvc_abi\":", "\"kvc_abi\" ", KVC_IO);
  ALTERED(view_bytes, "kvc_abi", "kvc_aby", KVC_INCOMPATIBLE);
  ALTERED(view_bytes, "\"kvc\"", "\"abc\"", KVC_INCOMPATIBLE);
  ALTERED(view_bytes, "\"4\"", "\"2\"", KVC_INCOMPATIBLE); /* kvc_abi */
  CHECK(model == NULL);
}

/* A session of another model, and the files of one. */
static void strangers(kvc_library library, const char *weights) {
  kvc_model *model = NULL;
  kvc_session *other = NULL;
  kvc_session_params params;
  char path[4096];
  snprintf(path, sizeof path, "%s/stranger.safetensors", place);
  library.identity[31] ^= 1;
  fake_weights_write(&library, path);
  INVALID(kvc_model_open, (&library, "", NULL, &model));
  REFUSED(kvc_model_open, (&library, weights, NULL, &model), KVC_INCOMPATIBLE);
  CHECK_OK(kvc_model_open(&library, path, NULL, &model));
  CHECK_OK(kvc_session_create(model, NULL, &other));
  REFUSED(kvc_sequence_copy, (other, 0, session, 2), KVC_INCOMPATIBLE);
  snprintf(path, sizeof path, "%s/stranger", place);
  CHECK_OK(kvc_sequence_save(other, 0, path));
  REFUSED(kvc_sequence_restore, (session, 2, path), KVC_INCOMPATIBLE);
  kvc_session_destroy(other);

  other = NULL;
  kvc_group group = library.groups[0];
  group.page_bytes = INT64_MAX;
  library.groups = &group;
  REFUSED(kvc_session_create, (model, NULL, &other), KVC_OUT_OF_MEMORY);
  const kvc_kernels kernels[] = {{"high", "warp9", NULL}};
  library.kernels = kernels;
  kvc_session_params_init(&params);
  params.cpu_level = "high";
  REFUSED(kvc_session_create, (model, &params, &other), KVC_INCOMPATIBLE);
  kvc_model_close(model);

  /* Handles of another kind. */
  kvc_model_info info;
  kvc_model_info_init(&info);
  INVALID(kvc_model_query, ((const kvc_model *)(const void *)session, &info));
  INVALID(kvc_session_reset, ((kvc_session *)(void *)&library));
  double row[fake_vocab];
  int32_t token;
  INVALID(kvc_sampler_sample,
          ((kvc_sampler *)(void *)&library, row, &token));
}

/* Saved sequences that are cut or altered. */
static void state_files(kvc_library library, const char *weights,
                        kvc_session *tight) {
  char saved[4096], path[5000], name[view_bytes];
  snprintf(saved, sizeof saved, "%s/saved", place);
  snprintf(path, sizeof path, "%s/altered", place);
  CHECK_OK(kvc_sequence_save(session, 0, saved));
#define ALTERED_STATE(length, from, to, status)                                \
  alter(saved, path, length, from, to);                                        \
  REFUSED(kvc_sequence_restore, (session, 2, path), status)
  ALTERED_STATE(view_bytes, "kvc seq", "kvc SEQ", KVC_IO);
  ALTERED_STATE(view_bytes, "\n\x02", "\n\x01", KVC_INCOMPATIBLE); /* version */
  ALTERED_STATE(view_bytes, "paged<16>", "paged<32>", KVC_INCOMPATIBLE);
  ALTERED_STATE(60, "", "", KVC_IO);
  ALTERED_STATE(110, "", "", KVC_IO);
  REFUSED(kvc_sequence_restore, (session, 2, saved),
          KVC_OUT_OF_CAPACITY); /* 4 pages, 2 are free */
  REFUSED(kvc_sequence_restore, (tight, 0, saved), KVC_OUT_OF_CAPACITY);
  REFUSED(kvc_sequence_copy, (session, 0, tight, 0), KVC_OUT_OF_CAPACITY);
  memset(name, 'x', sizeof name);
  name[sizeof name - 1] = 0;
  REFUSED(kvc_sequence_save, (session, 0, name), KVC_IO);
  name[sizeof name - 2] = '/';
  REFUSED(kvc_sequence_save, (session, 0, name), KVC_IO);

  /* A shorter one, for which there is room. */
  kvc_chunk chunk = {0, text, 20, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(tight, &chunk, 1, NULL, 0));
  CHECK_OK(kvc_sequence_save(tight, 0, saved));
  CHECK_OK(kvc_sequence_remove(tight, 0));
  ALTERED_STATE(view_bytes, "\x09", "\x0b", KVC_IO); /* a token: checksum */
  FILE *file;
  alter(saved, path, view_bytes, "", "");
  CHECK((file = fopen(path, "ab")) && fputc(0, file) == 0 && !fclose(file));
  REFUSED(kvc_sequence_restore, (session, 2, path), KVC_IO); /* too long */
  alter(saved, path, view_bytes, "", "");
  CHECK((file = fopen(path, "rb+")) && fseek(file, 87, SEEK_SET) == 0 &&
        fputc(0xff, file) == 0xff && !fclose(file));
  REFUSED(kvc_sequence_restore, (session, 2, path), KVC_IO); /* length < 0 */

  /* A token that the model does not have, under the right checksum. */
  kvc_model *model = NULL;
  kvc_session *other = NULL;
  const int32_t high = fake_vocab;
  library.vocab = fake_vocab + 1;
  CHECK_OK(kvc_model_open(&library, weights, NULL, &model));
  CHECK_OK(kvc_session_create(model, NULL, &other));
  chunk = (kvc_chunk){0, &high, 1, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(other, &chunk, 1, NULL, 0));
  CHECK_OK(kvc_sequence_save(other, 0, path));
  REFUSED(kvc_sequence_restore, (session, 2, path), KVC_IO);
  kvc_session_destroy(other);
  kvc_model_close(model);
}

static void *never(void *user, int64_t bytes) {
  (void)user, (void)bytes;
  abort();
}

static void drop(void *user, void *memory) { (void)user, (void)memory; }

static const kvc_allocator no_allocate = {NULL, drop, NULL};
static const kvc_allocator no_release = {never, NULL, NULL};

static void models(const kvc_library *library, const char *weights) {
  kvc_model *model = NULL;
  kvc_library old = *library, other = *library, strange = *library;
  kvc_kernels kernels = {"any", "warp9", library->kernels->forward};
  old.abi_version = KVC_ABI_VERSION + 1;
  other.identity[0] ^= 1;
  strange.kernels = &kernels;
  INVALID(kvc_model_open, (NULL, weights, NULL, &model));
  INVALID(kvc_model_open, (library, NULL, NULL, &model));
  INVALID(kvc_model_open, (library, weights, NULL, NULL));
  REFUSED(kvc_model_open, (&old, weights, NULL, &model), KVC_INCOMPATIBLE);
  REFUSED(kvc_model_open, (&other, weights, NULL, &model), KVC_INCOMPATIBLE);
  REFUSED(kvc_model_open, (&strange, weights, NULL, &model), KVC_INCOMPATIBLE);
  REFUSED(kvc_model_open, (library, "absent", NULL, &model), KVC_IO);
  CHECK(model == NULL);
  kvc_model_params params;
#define INVALID_OPENING(change)                                                \
  kvc_model_params_init(&params);                                              \
  change;                                                                      \
  INVALID(kvc_model_open, (library, weights, &params, &model))
  INVALID_OPENING(params.size = 1);
  INVALID_OPENING(params.allocator = &no_allocate);
  INVALID_OPENING(params.allocator = &no_release);
  CHECK(model == NULL);
}

/* Sizes that no struct has: too small, too large, not aligned. */
static void sizes(void) {
  union {
    kvc_model_params model_params;
    kvc_model_info model_info;
    kvc_session_params session_params;
    kvc_session_info session_info;
    kvc_sequence_info sequence_info;
    kvc_plan_info plan_info;
    kvc_sampler_params sampler_params;
  } any;
#define INVALID_SIZES(init, any)                                               \
  INVALID(init, (NULL, sizeof any));                                           \
  INVALID(init, (&any, 8));                                                    \
  INVALID(init, (&any, 1032));                                                 \
  INVALID(init, (&any, sizeof any + 1))
  INVALID_SIZES(kvc_model_params_init_sized, any.model_params);
  INVALID_SIZES(kvc_model_info_init_sized, any.model_info);
  INVALID_SIZES(kvc_session_params_init_sized, any.session_params);
  INVALID_SIZES(kvc_session_info_init_sized, any.session_info);
  INVALID_SIZES(kvc_sequence_info_init_sized, any.sequence_info);
  INVALID_SIZES(kvc_plan_info_init_sized, any.plan_info);
  INVALID_SIZES(kvc_sampler_params_init_sized, any.sampler_params);
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
  struct {
    kvc_session_params known;
    int64_t newer;
  } longer = {.newer = 1};
  kvc_session_params_init(&longer.known);
  longer.known.size = sizeof longer;
  INVALID(kvc_session_create, (model, &longer.known, &made));
  INVALID_PARAMS(params.sequences = -1);
  INVALID_PARAMS(params.allocator = &no_allocate);
  INVALID_PARAMS(params.allocator = &no_release);
  INVALID_PARAMS(params.capacity = 161);
  INVALID_PARAMS(params.threads = -1);
  static const kvc_executor executor = {NULL};
  INVALID_PARAMS(params.executor = &executor);
  INVALID_PARAMS((params.executor = &executor, params.threads = 2));
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
  INVALID(kvc_sequence_save, (session, 0, ""));
  REFUSED(kvc_sequence_save, (session, 0, "/absent/state"), KVC_IO);
  REFUSED(kvc_sequence_save, (session, 0, place), KVC_IO); /* a folder */
  snprintf(path, sizeof path, "%s/long", place);
  CHECK_OK(kvc_sequence_save(session, 0, path));
  INVALID(kvc_sequence_restore, (NULL, 0, path));
  INVALID(kvc_sequence_restore, (session, 3, path));
  INVALID(kvc_sequence_restore, (session, 0, NULL));
  INVALID(kvc_sequence_restore, (session, 0, ""));
  INVALID(kvc_sequence_restore, (session, 0, path)); /* not empty */
  REFUSED(kvc_sequence_restore, (session, 2, "absent"), KVC_IO);
  REFUSED(kvc_sequence_restore, (session, 2, place), KVC_IO);
  REFUSED(kvc_sequence_restore, (session, 2, path), KVC_OUT_OF_CAPACITY);
  REFUSED(kvc_sequence_restore, (small, 0, path), KVC_OUT_OF_CAPACITY);
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
  INVALID(kvc_forward, (session, &good, 4, logits, 2));
  INVALID(kvc_forward, (session, &good, 1, logits, 1));
  INVALID(kvc_forward, (session, &good, 1, NULL, 2));
  INVALID(kvc_forward, (session, &good, 1, (char *)logits + 4, 2));
  kvc_chunk over = {1, (int32_t *)logits, 2, KVC_OUTPUTS_ALL};
  memset(logits, 0, sizeof logits);
  INVALID(kvc_forward, (session, &over, 1, logits, 2));
  memcpy(logits, &good, sizeof good);
  INVALID(kvc_forward, (session, (kvc_chunk *)logits, 1, logits, 2));
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
  INVALID_SAMPLING(params.top_p = -1);
  INVALID_SAMPLING(params.allocator = &no_allocate);
  INVALID_SAMPLING(params.allocator = &no_release);
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
  INVALID(kvc_sampler_sample, (sampler, (char *)row + 4, &token));
  row[3] = 1e308 * 10;
  INVALID(kvc_sampler_sample, (sampler, row, &token));
  for (int i = 0; i < fake_vocab; ++i)
    row[i] = -1e308 * 10;
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
  /* The third row is broken: what was appended is taken back, in sequence 1 with
   * the copy of the page that it shares. */
  for (int64_t s = 1; s <= 2; ++s) {
    fake_broken_row = fake_rows_computed + 2;
    INVALID(kvc_generate, GENERATE(s, text, 1, 5, NULL, NULL, 0));
  }
  fake_broken_row = -1;
  kvc_sampler_destroy(other);
  kvc_sampler_destroy(sampler);
}

/* After all of it: each sequence goes on with the tokens that it holds. */
static void goes_on(void) {
  int32_t tokens[51];
  double row[fake_vocab], expected[fake_vocab];
  memcpy(tokens, text, sizeof tokens);
  CHECK_OK(kvc_sequence_remove(session, 2));
  for (int64_t s = 0; s < view_sequences; ++s) {
    int64_t length = s < 2 ? 50 : 0;
    kvc_chunk chunk = {s, tokens + length, 1, KVC_OUTPUTS_LAST};
    CHECK_OK(kvc_forward(session, &chunk, 1, row, 1));
    fake_expected_row(tokens, length + 1, expected);
    CHECK(memcmp(row, expected, sizeof row) == 0);
  }
}

/* Where the cache keeps a window. */
static void keeps_a_window(const char *folder) {
  static const fake_shape window = {160, 16, 32, KVC_TYPE_F64, 10, 2, 1};
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &window, folder);
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = view_sequences;
  CHECK_OK(kvc_session_create(model, &params, &session));
  kvc_chunk chunk = {0, text, 50, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(session, &chunk, 1, NULL, 0));
  CHECK_OK(kvc_sequence_fork(session, 0, 1));
  view_take(session, place, &before);
  INVALID(kvc_sequence_truncate, (session, 0, 20));
  kvc_session_destroy(session);
  kvc_model_close(model);
}

void test_refusals(const char *folder) {
  kvc_library library;
  char weights[4096];
  snprintf(weights, sizeof weights, "%s/fake.safetensors", folder);
  kvc_model *model = fake_model_open(&library, &shape, folder);
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = view_sequences;
  params.poison = 1;
  params.pool_pages = 6; /* 4 are taken: 2 are left */
  params.threads = 1;
  CHECK_OK(kvc_session_create(model, &params, &session));
  kvc_session *small = NULL;
  params.sequences = 1;
  params.capacity = 49;
  params.pool_pages = 0;
  CHECK_OK(kvc_session_create(model, &params, &small));
  kvc_session *tight = NULL;
  params.capacity = 160;
  params.pool_pages = 2;
  CHECK_OK(kvc_session_create(model, &params, &tight));
  kvc_chunk chunk = {0, text, 50, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(session, &chunk, 1, NULL, 0));
  CHECK_OK(kvc_sequence_fork(session, 0, 1));
  place = folder;
  view_take(session, place, &before);
  models(&library, weights);
  sizes();
  libraries(&library, weights);
  weight_files(&library, weights);
  strangers(library, weights);
  sessions(model);
  each_sequence(small);
  state_files(library, weights, tight);
  forwards();
  samples();
  goes_on();
  kvc_session_destroy(tight);
  kvc_session_destroy(small);
  kvc_session_destroy(session);
  kvc_model_close(model);
  keeps_a_window(folder);
}
