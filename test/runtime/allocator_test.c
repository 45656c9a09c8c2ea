/* The application's allocator: all memory of what it was given for comes from it
 * and goes back to it, each request fails in turn, and nothing is requested once
 * things are created. */
#include "check.h"
#include "fake_model.h"

static struct {
  int64_t live, requests, fails_at; /* the request of this number; 0: none */
  int misaligned;
} heap;

static void *give(void *user, int64_t bytes) {
  CHECK(user == &heap && bytes >= 1);
  if (++heap.requests == heap.fails_at)
    return NULL;
  char *memory = aligned_alloc(64, (size_t)(bytes + 64 + 63) / 64 * 64);
  CHECK(memory);
  memset(memory, 0x5a, (size_t)bytes);
  ++heap.live;
  return memory + (heap.misaligned ? 8 : 0);
}

static void take(void *user, void *memory) {
  CHECK(user == &heap && memory);
  --heap.live;
  free((char *)memory - (heap.misaligned ? 8 : 0));
}

/* Calls until no request fails; each failure gives everything back. */
#define FAIL_EACH(call, result, expectedRequests)                              \
  do {                                                                         \
    int64_t before = heap.live, n = 1;                                         \
    for (;; ++n) {                                                             \
      heap.requests = 0;                                                       \
      heap.fails_at = n;                                                       \
      kvc_status status = (call);                                              \
      if (status == KVC_OK)                                                    \
        break;                                                                 \
      CHECK_EQUAL(status, KVC_OUT_OF_MEMORY);                                  \
      CHECK(result == NULL && heap.live == before);                            \
    }                                                                          \
    CHECK_EQUAL(heap.requests, expectedRequests);                              \
    CHECK_EQUAL(heap.live, before + heap.requests);                            \
    CHECK_EQUAL(n, heap.requests + 1);                                         \
    heap.fails_at = 0;                                                         \
  } while (0)

/* Everything that a session does. */
static void use(kvc_session *session, kvc_sampler *sampler) {
  static const int32_t text[] = {1, 5, 2, 7, 4, 4, 8, 1, 0, 3};
  double logits[fake_vocab];
  kvc_chunk chunk = {0, text, 10, KVC_OUTPUTS_LAST};
  kvc_plan_info plan;
  kvc_plan_info_init(&plan);
  CHECK_OK(kvc_plan(session, &chunk, 1, &plan));
  CHECK_OK(kvc_forward(session, &chunk, 1, logits, 1));
  CHECK_OK(kvc_sequence_fork(session, 0, 1));
  CHECK_OK(kvc_generate(session, 1, text, 3, 20, sampler, NULL, 0, NULL, NULL,
                        NULL, NULL));
  const int64_t order[] = {1, 0, 1};
  CHECK_OK(kvc_session_reorder(session, order, 3));
  CHECK_OK(kvc_sequence_truncate(session, 0, 5));
  CHECK_OK(kvc_sequence_remove(session, 2));
  kvc_session_info info;
  kvc_session_info_init(&info);
  CHECK_OK(kvc_session_query(session, &info));
  CHECK_OK(kvc_session_reset(session));
}

/* An allocator that another one's users don't reach. */
static int64_t others;

static void *give_other(void *user, int64_t bytes) {
  CHECK(user == &others);
  ++others;
  return aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
}

static void take_other(void *user, void *memory) {
  CHECK(user == &others && memory);
  --others;
  free(memory);
}

void test_allocator(const char *folder) {
  static const fake_shape shape = {160, 16, 32, KVC_TYPE_F64};
  kvc_library library;
  char path[4096];
  snprintf(path, sizeof path, "%s/allocator.safetensors", folder);
  fake_library_fill(&library, &shape);
  fake_weights_write(&library, path);

  kvc_allocator allocator = {give, take, &heap};
  kvc_model_params opening;
  kvc_model_params_init(&opening);
  opening.allocator = &allocator;
  kvc_model *model = NULL;
  FAIL_EACH(kvc_model_open(&library, path, &opening, &model), model, 1);
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = 3;
  params.threads = 2;
  kvc_session *session = NULL;
  /* From the model's: the session, 14 arrays, 3 of the page pool and 3 of that of
   * tokens, cache, tokens, workspace, logits, the threads' pool and its list. */
  FAIL_EACH(kvc_session_create(model, &params, &session), session, 27);
  kvc_sampler_params sampling;
  kvc_sampler_params_init(&sampling);
  sampling.temperature = 1;
  sampling.allocator = &allocator;
  kvc_sampler *sampler = NULL;
  FAIL_EACH(kvc_sampler_create(&sampling, fake_vocab, KVC_TYPE_F64, &sampler),
            sampler, 4);

  /* Beside it a session with an allocator of its own, and a sampler with the
   * system's. What was said of an allocator is copied. */
  int64_t live = heap.live;
  kvc_allocator other = {give_other, take_other, &others};
  params.allocator = &other;
  kvc_session *other_session = NULL;
  CHECK_OK(kvc_session_create(model, &params, &other_session));
  CHECK_EQUAL(others, 27);
  memset(&allocator, 0, sizeof allocator);
  memset(&other, 0, sizeof other);
  sampling.allocator = NULL;
  kvc_sampler *other_sampler = NULL;
  CHECK_OK(kvc_sampler_create(&sampling, fake_vocab, KVC_TYPE_F64,
                              &other_sampler));

  heap.requests = 0;
  use(session, sampler);
  use(other_session, other_sampler);
  CHECK_EQUAL(heap.requests, 0);
  CHECK_EQUAL(heap.live, live);
  CHECK_EQUAL(others, 27);
  kvc_session_destroy(other_session);
  kvc_sampler_destroy(other_sampler);
  CHECK_EQUAL(others, 0);
  CHECK_EQUAL(heap.live, live);

  kvc_sampler_destroy(sampler);
  kvc_model_close(model); /* which the session keeps */
  kvc_session_destroy(session);
  CHECK_EQUAL(heap.live, 0);

  heap.misaligned = 1;
  allocator = (kvc_allocator){give, take, &heap};
  model = NULL;
  CHECK_FAILS(kvc_model_open(&library, path, &opening, &model),
              KVC_OUT_OF_MEMORY, "no memory for a model");
  CHECK_EQUAL(heap.live, 0);
  allocator.release = NULL;
  CHECK_FAILS(kvc_model_open(&library, path, &opening, &model),
              KVC_INVALID_ARGUMENT,
              "expected allocator->release to be given, but got NULL");
  allocator.allocate = NULL;
  CHECK_FAILS(kvc_model_open(&library, path, &opening, &model),
              KVC_INVALID_ARGUMENT,
              "expected allocator->allocate to be given, but got NULL");
}
