/* One thread at a time uses a session: another one's calls are refused and
 * change nothing; a callback of the same thread can ask. */
#include "check.h"
#include "fake_model.h"

#include <pthread.h>

static const fake_shape shape = {160, 16, 32, KVC_TYPE_F64};
static const int32_t text[] = {1, 5, 2, 7};

typedef struct visit {
  kvc_session *session, *other;
  int callbacks;
} visit;

#define CHECK_BUSY(call)                                                       \
  CHECK_FAILS(call, KVC_BUSY,                                                  \
              "expected one thread at a time to use a session, but another "   \
              "one is using it")

/* Every call that works on a session. */
static void *intrude(void *argument) {
  const visit *v = argument;
  kvc_session *session = v->session;
  kvc_chunk chunk = {0, text, 1, KVC_OUTPUTS_NONE};
  const int64_t order[] = {1, 0};
  int64_t length;
  int32_t token;
  kvc_session_info info;
  kvc_session_info_init(&info);
  kvc_sequence_info sequence_info;
  kvc_sequence_info_init(&sequence_info);
  kvc_plan_info plan_info;
  kvc_plan_info_init(&plan_info);
  CHECK_BUSY(kvc_session_query(session, &info));
  CHECK_BUSY(kvc_session_reset(session));
  CHECK_BUSY(kvc_session_reorder(session, order, 2));
  CHECK_BUSY(kvc_sequence_length(session, 0, &length));
  CHECK_BUSY(kvc_sequence_truncate(session, 0, 0));
  CHECK_BUSY(kvc_sequence_remove(session, 0));
  CHECK_BUSY(kvc_sequence_fork(session, 0, 1));
  CHECK_BUSY(kvc_sequence_copy(session, 0, v->other, 0));
  CHECK_BUSY(kvc_sequence_copy(v->other, 0, session, 0));
  CHECK_BUSY(kvc_sequence_tokens(session, 0, 0, 1, &token));
  CHECK_BUSY(kvc_sequence_query(session, 0, &sequence_info));
  CHECK_BUSY(kvc_plan(session, &chunk, 1, &plan_info));
  CHECK_BUSY(kvc_forward(session, &chunk, 1, NULL, 0));
  CHECK_BUSY(kvc_generate(session, 1, text, 4, 2, NULL, NULL, 0, NULL, NULL,
                          NULL, NULL));
  CHECK_OK(kvc_session_capacity(session, &length)); /* never changes */
  /* The other session, which a refused copy named, is not held. */
  CHECK_OK(kvc_sequence_length(v->other, 0, &length));
  CHECK_EQUAL(length, 0);
  return NULL;
}

static int visited(void *user, int32_t token) {
  visit *v = user;
  (void)token;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, intrude, v) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  int64_t length = -1;
  CHECK_OK(kvc_sequence_length(v->session, 0, &length));
  CHECK_EQUAL(length, 4 + v->callbacks);
  ++v->callbacks;
  return 0;
}

static void refuses_others(const kvc_model *model) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = 2;
  params.threads = 2;
  visit v = {0};
  CHECK_OK(kvc_session_create(model, &params, &v.session));
  CHECK_OK(kvc_session_create(model, &params, &v.other));
  int32_t undisturbed[5], tokens[5];
  CHECK_OK(kvc_generate(v.session, 1, text, 4, 5, NULL, NULL, 0, NULL, NULL,
                        undisturbed, NULL));
  CHECK_OK(kvc_sequence_remove(v.session, 1));
  CHECK_OK(kvc_generate(v.session, 0, text, 4, 5, NULL, NULL, 0, visited, &v,
                        tokens, NULL));
  CHECK_EQUAL(v.callbacks, 5);
  CHECK(memcmp(tokens, undisturbed, sizeof tokens) == 0);
  kvc_session_destroy(v.session);
  kvc_session_destroy(v.other);
}

/* Threads that don't wait for each other: each call works or is refused. */
static _Atomic int64_t appended;

static void *hammer(void *argument) {
  kvc_chunk chunk = {0, text, 1, KVC_OUTPUTS_NONE};
  for (int i = 0; i < 40; ++i) {
    kvc_status status = kvc_forward(argument, &chunk, 1, NULL, 0);
    CHECK(status == KVC_OK || status == KVC_BUSY);
    appended += status == KVC_OK;
  }
  return NULL;
}

static void counts_what_worked(const kvc_model *model) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.threads = 2;
  kvc_session *session = NULL;
  CHECK_OK(kvc_session_create(model, &params, &session));
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i)
    CHECK(pthread_create(&threads[i], NULL, hammer, session) == 0);
  for (int i = 0; i < 4; ++i)
    CHECK(pthread_join(threads[i], NULL) == 0);
  int64_t length = -1;
  CHECK_OK(kvc_sequence_length(session, 0, &length));
  CHECK(length > 0);
  CHECK_EQUAL(length, appended);
  kvc_session_destroy(session);
}

void test_turns(const char *folder) {
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  refuses_others(model);
  counts_what_worked(model);
  kvc_model_close(model);
}
