/* One thread at a time uses a session: another one's calls are refused and
 * change nothing; a callback of the same thread can ask, but not change. A forked
 * child, which has none of the threads, is refused, and a thread that is cancelled
 * ends its turn. */
#include "check.h"
#include "fake_model.h"
#include "view.h"

#include <glob.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

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

static _Atomic int64_t blocks; /* of the session's memory */

static void *give(void *user, int64_t bytes) {
  (void)user;
  ++blocks;
  return aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
}

static void take(void *user, void *memory) {
  (void)user;
  --blocks;
  free(memory);
}

/* A forked child has the session and none of its threads: every call with it is
 * refused, and destroying it returns all memory. */
static void disown(kvc_session *session) {
  const int64_t order[] = {1, 0};
  kvc_chunk chunk = {0, text, 1, KVC_OUTPUTS_NONE};
  char message[200];
  int64_t length;
  alarm(60); /* whoever waits for a thread that isn't there waits for ever */
  snprintf(message, sizeof message,
           "expected a session that this process created, but got one that it "
           "inherited from process %d by fork",
           (int)getppid());
#define CHECK_INHERITED(call) CHECK_FAILS(call, KVC_INVALID_ARGUMENT, message)
  CHECK_INHERITED(kvc_forward(session, &chunk, 1, NULL, 0));
  CHECK_INHERITED(kvc_generate(session, 1, text, 4, 2, NULL, NULL, 0, NULL,
                               NULL, NULL, NULL));
  CHECK_INHERITED(kvc_session_reorder(session, order, 2));
  CHECK_INHERITED(kvc_sequence_length(session, 0, &length));
  CHECK_INHERITED(kvc_session_capacity(session, &length));
  CHECK(blocks > 0);
  kvc_session_destroy(session);
  CHECK_EQUAL(blocks, 0);
}

static void check_child(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A thread's call that lasts until it is told to end. */
typedef struct lasting {
  kvc_session *session;
  int begun[2], end[2]; /* pipes */
} lasting;

static int last(void *user, int32_t token) {
  lasting *l = user;
  char byte = (char)token;
  CHECK(write(l->begun[1], &byte, 1) == 1 && read(l->end[0], &byte, 1) == 1);
  return 1;
}

static void *run_lasting(void *argument) {
  lasting *l = argument;
  CHECK_OK(kvc_generate(l->session, 1, text, 4, 5, NULL, NULL, 0, last, l, NULL,
                        NULL));
  return NULL;
}

static int fork_once(void *user, int32_t token) {
  pid_t *child = user;
  (void)token;
  if (*child < 0)
    *child = fork();
  return 0;
}

static void refuses_children(const kvc_model *model) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = 2;
  params.threads = 3;
  params.allocator = &(kvc_allocator){give, take, NULL};
  lasting l;
  CHECK_OK(kvc_session_create(model, &params, &l.session));
  kvc_chunk chunk = {0, text, 4, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(l.session, &chunk, 1, NULL, 0));
  pid_t child = fork();
  if (child == 0) {
    disown(l.session);
    /* The model is as good as before. */
    params.threads = 1;
    CHECK_OK(kvc_session_create(model, &params, &l.session));
    CHECK_OK(kvc_forward(l.session, &chunk, 1, NULL, 0));
    kvc_session_destroy(l.session);
    _exit(0);
  }
  check_child(child);

  /* While another thread's call, which ends with that thread, uses it. */
  char byte;
  pthread_t thread;
  CHECK(pipe(l.begun) == 0 && pipe(l.end) == 0);
  CHECK(pthread_create(&thread, NULL, run_lasting, &l) == 0);
  CHECK(read(l.begun[0], &byte, 1) == 1);
  child = fork();
  if (child == 0) {
    disown(l.session);
    _exit(0);
  }
  check_child(child);
  CHECK(write(l.end[1], "", 1) == 1);
  CHECK(pthread_join(thread, NULL) == 0);

  /* In the middle of this thread's own call, which fails in the child. */
  child = -1;
  int64_t count = 0;
  kvc_status status = kvc_generate(l.session, 0, text, 4, 5, NULL, NULL, 0,
                                   fork_once, &child, NULL, &count);
  if (child == 0) {
    CHECK_EQUAL(status, KVC_INVALID_ARGUMENT);
    disown(l.session);
    _exit(0);
  }
  check_child(child);
  CHECK_EQUAL(status, KVC_OK);
  CHECK_EQUAL(count, 5);
  for (int i = 0; i < 2; ++i)
    CHECK(close(l.begun[i]) == 0 && close(l.end[i]) == 0);
  kvc_session_destroy(l.session);
}

/* A thread that is cancelled ends its call first. */
typedef struct cancelled {
  kvc_session *session;
  const char *path;
  int calls;
} cancelled;

static void *save_cancelled(void *argument) {
  cancelled *c = argument;
  CHECK(pthread_cancel(pthread_self()) == 0);
  CHECK_OK(kvc_sequence_save(c->session, 0, c->path));
  ++c->calls;
  pthread_testcancel();
  return NULL;
}

static int cancel(void *user, int32_t token) {
  (void)user, (void)token;
  CHECK(pthread_cancel(pthread_self()) == 0);
  pthread_testcancel();
  return 0;
}

static void *generate_cancelled(void *argument) {
  cancelled *c = argument;
  CHECK_OK(kvc_generate(c->session, 0, text, 4, 5, NULL, NULL, 0, cancel, NULL,
                        NULL, NULL));
  ++c->calls;
  pthread_testcancel();
  return NULL;
}

static void *open_cancelled(void *argument) {
  cancelled *c = argument;
  kvc_library library;
  kvc_model *model = NULL;
  fake_library_fill(&library, &shape);
  fake_weights_write(&library, c->path);
  CHECK(pthread_cancel(pthread_self()) == 0);
  CHECK_OK(kvc_model_open(&library, c->path, NULL, &model));
  CHECK_OK(kvc_session_create(model, NULL, &c->session));
  kvc_session_destroy(c->session);
  kvc_model_close(model);
  ++c->calls;
  pthread_testcancel();
  return NULL;
}

static void ends_cancelled_calls(const kvc_model *model, const char *folder) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = 2;
  char path[4096], pattern[4200];
  cancelled c = {.path = path};
  snprintf(path, sizeof path, "%s/cancelled", folder);
  snprintf(pattern, sizeof pattern, "%s/.kvc-*", folder);
  CHECK_OK(kvc_session_create(model, &params, &c.session));
  kvc_session *session = c.session;
  void *(*const calls[])(void *) = {generate_cancelled, save_cancelled,
                                    open_cancelled};
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, calls[i], &c) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK_EQUAL(c.calls, i + 1);
    CHECK(result == PTHREAD_CANCELED);
    glob_t found;
    CHECK_EQUAL(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    if (i == 1)
      CHECK_OK(kvc_sequence_restore(session, 1, path));
  }
  kvc_session_destroy(session);
}

void test_turns(const char *folder) {
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  refuses_others(model);
  refuses_callbacks(model, folder);
  counts_what_worked(model);
  refuses_children(model);
  ends_cancelled_calls(model, folder);
  kvc_model_close(model);
}
