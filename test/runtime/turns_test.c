/* One thread at a time uses a session: another one's calls are refused and
 * change nothing; a callback of the same thread can ask, but not change. */
#include "check.h"
#include "fake_model.h"
#include "view.h"

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

/* Changes by a callback are refused and change nothing. */
typedef struct meddler {
  kvc_session *session, *other;
  kvc_sampler *sampler;
  const char *folder;
  int callbacks;
} meddler;

static int meddle(void *user, int32_t token) {
  meddler *m = user;
  kvc_session *session = m->session;
  kvc_chunk chunk = {1, text, 1, KVC_OUTPUTS_NONE};
  const int64_t order[] = {1, 0};
  static view before, after;
  char path[4096];
  (void)token;
  snprintf(path, sizeof path, "%s/meddled", m->folder);
  CHECK_OK(kvc_sequence_save(session, 1, path));
  view_take(session, m->folder, &before);
  /* Sequence 0 has a copy, and 1 alone the page that both had. */
  CHECK_EQUAL(before.sequences[0].shared_pages, 0);
  CHECK_EQUAL(before.sequences[1].shared_pages, 0);
#define CHECK_REFUSED(call)                                                    \
  CHECK_FAILS(call, KVC_BUSY,                                                  \
              "expected no change of a session by a callback of kvc_generate " \
              "that is using it")
  CHECK_REFUSED(kvc_session_reset(session));
  CHECK_REFUSED(kvc_session_reorder(session, order, 2));
  CHECK_REFUSED(kvc_sequence_truncate(session, 0, 0));
  CHECK_REFUSED(kvc_sequence_remove(session, 0));
  CHECK_REFUSED(kvc_sequence_fork(session, 0, 1));
  CHECK_REFUSED(kvc_sequence_copy(session, 0, session, 1));
  CHECK_REFUSED(kvc_sequence_copy(m->other, 0, session, 0));
  CHECK_REFUSED(kvc_sequence_restore(session, 2, path));
  CHECK_REFUSED(kvc_forward(session, &chunk, 1, NULL, 0));
  CHECK_REFUSED(kvc_generate(session, 1, text, 4, 2, NULL, NULL, 0, NULL, NULL,
                             NULL, NULL));
  kvc_session_destroy(session);
  kvc_sampler_destroy(m->sampler);
  view_take(session, m->folder, &after);
  CHECK(memcmp(&before, &after, sizeof before) == 0);
  CHECK_OK(kvc_sequence_copy(session, 0, m->other, 0));
  CHECK_OK(kvc_sequence_remove(m->other, 0));
  return ++m->callbacks == 3;
}

static void refuses_callbacks(const kvc_model *model, const char *folder) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = view_sequences;
  params.threads = 1;
  params.poison = 1;
  meddler m = {.folder = folder};
  CHECK_OK(kvc_session_create(model, &params, &m.session));
  CHECK_OK(kvc_session_create(model, &params, &m.other));
  CHECK_OK(kvc_sampler_create(NULL, fake_vocab, KVC_TYPE_F64, &m.sampler));
  kvc_chunk chunk = {0, text, 4, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(m.session, &chunk, 1, NULL, 0));
  CHECK_OK(kvc_sequence_fork(m.session, 0, 1));
  CHECK_OK(kvc_generate(m.session, 0, text, 4, 5, m.sampler, NULL, 0, meddle,
                        &m, NULL, NULL));
  CHECK_EQUAL(m.callbacks, 3);

  /* What is taken back after a failure is the page that 1 has. */
  kvc_sequence_info info;
  kvc_sequence_info_init(&info);
  CHECK_OK(kvc_sequence_fork(m.session, 1, 0));
  m.callbacks = 0;
  fake_broken_row = fake_rows_computed + 2;
  CHECK_EQUAL(kvc_generate(m.session, 0, text, 4, 5, m.sampler, NULL, 0, meddle,
                           &m, NULL, NULL),
              KVC_INVALID_ARGUMENT);
  fake_broken_row = -1;
  CHECK_EQUAL(m.callbacks, 2);
  for (int64_t s = 0; s < 2; ++s) {
    CHECK_OK(kvc_sequence_query(m.session, s, &info));
    CHECK_EQUAL(info.shared_pages, 1);
  }
  kvc_sampler_destroy(m.sampler);
  kvc_session_destroy(m.session);
  kvc_session_destroy(m.other);
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
  refuses_callbacks(model, folder);
  counts_what_worked(model);
  kvc_model_close(model);
}
