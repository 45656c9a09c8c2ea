/* Every request to the system fails once, in turn. Each failure is
 * KVC_OUT_OF_MEMORY (or KVC_IO for a file), nothing is handed out, nothing
 * leaks (the leak sanitizer looks), what was there is unchanged, and the next try
 * works. The linker sends the runtime's requests through the __wrap_ functions.
 */
#include "check.h"
#include "fake_model.h"
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each fails the request that takes it to 0; 0: none. */
static int countdown;             /* of requests for memory and threads */
static int memory_error = ENOMEM; /* what these fail with */
static int file_countdown;        /* of calls for saved sequences */

static int counts_down(int *counter, int error) {
  if (*counter == 0 || --*counter > 0)
    return 0;
  errno = error;
  return 1;
}

static int fails_now(void) { return counts_down(&countdown, memory_error); }
static int file_fails_now(void) { return counts_down(&file_countdown, EIO); }

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
  return fails_now() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
  return fails_now() ? NULL : __real_calloc(count, size);
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  return fails_now() ? NULL : __real_aligned_alloc(alignment, size);
}

void *__real_mmap(void *address, size_t size, int protection, int flags,
                  int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags,
                  int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags,
                  int file, off_t offset) {
  return fails_now()
             ? MAP_FAILED
             : __real_mmap(address, size, protection, flags, file, offset);
}

int __real_fstat(int file, struct stat *status);
int __wrap_fstat(int file, struct stat *status);
int __wrap_fstat(int file, struct stat *status) {
  return fails_now() ? -1 : __real_fstat(file, status);
}

int __real_stat(const char *path, struct stat *status);
int __wrap_stat(const char *path, struct stat *status);
int __wrap_stat(const char *path, struct stat *status) {
  return file_fails_now() ? -1 : __real_stat(path, status);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *argument) {
  return fails_now() ? EAGAIN
                     : __real_pthread_create(thread, attributes, run, argument);
}

/* ThreadSanitizer asks for it, too, before it can follow instrumented code. */
#if defined(__clang__)
#define NOT_INSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define NOT_INSTRUMENTED
#endif
int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void),
                          void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void),
                          void (*child)(void));
NOT_INSTRUMENTED
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void),
                          void (*child)(void)) {
  if (countdown == 0)
    return __real_pthread_atfork(prepare, parent, child);
  return fails_now() ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}

static int refused; /* wishes of memory */
int __wrap_madvise(void *address, size_t size, int advice);
int __wrap_madvise(void *address, size_t size, int advice) {
  (void)address, (void)size, (void)advice;
  ++refused;
  errno = EINVAL;
  return -1;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
  va_list mode;
  va_start(mode, flags);
  int file = file_fails_now()
                 ? -1
                 : __real_open(path, flags,
                               flags & O_CREAT ? va_arg(mode, int) : 0);
  va_end(mode);
  return file;
}

static int written = -1; /* the file that mkostemp made last */

int __real_mkostemp(char *name, int flags);
int __wrap_mkostemp(char *name, int flags);
int __wrap_mkostemp(char *name, int flags) {
  written = file_fails_now() ? -1 : __real_mkostemp(name, flags);
  CHECK(written < 0 || fcntl(written, F_GETFD) == FD_CLOEXEC);
  return written;
}

ssize_t __real_read(int file, void *data, size_t size);
ssize_t __wrap_read(int file, void *data, size_t size);
ssize_t __wrap_read(int file, void *data, size_t size) { /* in small parts */
  return file_fails_now() ? -1
                          : __real_read(file, data, size < 1024 ? size : 1024);
}

ssize_t __real_write(int file, const void *data, size_t size);
ssize_t __wrap_write(int file, const void *data, size_t size);
ssize_t __wrap_write(int file, const void *data, size_t size) {
  return file_fails_now() ? -1 : __real_write(file, data, size);
}

int __real_fsync(int file);
int __wrap_fsync(int file);
int __wrap_fsync(int file) { return file_fails_now() ? -1 : __real_fsync(file); }

/* Closing what was only read loses nothing. */
int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file) {
  int result = __real_close(file);
  if (file != written)
    return result;
  written = -1;
  return file_fails_now() ? -1 : result;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to) {
  return file_fails_now() ? -1 : __real_rename(from, to);
}

/* Calls with the 1st, 2nd, ... request failing until one call gets through;
 * returns how many failed. */
#define COUNT_FAILURES(failures, call, result)                                 \
  for (failures = 0;; ++failures) {                                            \
    countdown = failures + 1;                                                  \
    kvc_status outcome = (call);                                               \
    int left = countdown;                                                      \
    countdown = 0;                                                             \
    if (outcome == KVC_OK) {                                                   \
      CHECK_EQUAL(left, 1); /* no request was left to fail */                  \
      break;                                                                   \
    }                                                                          \
    CHECK(outcome == KVC_OUT_OF_MEMORY || outcome == KVC_IO);                  \
    CHECK(result == NULL && *kvc_last_error());                                \
  }

static view before, after;

/* The session is as `before`, and nothing written aside is left. */
static void check_unchanged(const kvc_session *session, const char *folder) {
  char pattern[4200];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/.kvc-*", folder);
  CHECK_EQUAL(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
  view_take(session, folder, &after);
  CHECK(memcmp(&before, &after, sizeof before) == 0);
}

#define COUNT_FILE_FAILURES(failures, call)                                    \
  for (failures = 0;; ++failures) {                                            \
    file_countdown = failures + 1;                                             \
    kvc_status outcome = (call);                                               \
    int left = file_countdown;                                                 \
    file_countdown = 0;                                                        \
    if (outcome == KVC_OK) {                                                   \
      CHECK_EQUAL(left, 1);                                                    \
      break;                                                                   \
    }                                                                          \
    CHECK_EQUAL(outcome, KVC_IO);                                              \
    CHECK(strstr(kvc_last_error(), path));                                     \
    CHECK(strstr(kvc_last_error(), strerror(EIO)));                            \
    check_unchanged(session, folder);                                          \
  }

/* Saving to where another sequence is saved, which stays until all is well, and
 * restoring. */
static void files_fail(kvc_session *session, const char *folder) {
  char path[4096];
  int failures;
  snprintf(path, sizeof path, "%s/faults.state", folder);
  CHECK_OK(kvc_sequence_save(session, 1, path));
  view_take(session, folder, &before);
  COUNT_FILE_FAILURES(failures, kvc_sequence_save(session, 0, path));
  CHECK_EQUAL(failures, 6); /* stat, mkostemp, write, fsync, close, rename */
  COUNT_FILE_FAILURES(failures, kvc_sequence_restore(session, 2, path));
  CHECK_EQUAL(failures, 4); /* open, and 3 parts of 102 * 20 + 92 bytes */
  int64_t length = 0;
  CHECK_OK(kvc_sequence_length(session, 2, &length));
  CHECK_EQUAL(length, 102);

  /* Each failed save left the file of before. */
  CHECK_OK(kvc_sequence_save(session, 1, path));
  for (int i = 1; i <= 6; ++i) {
    file_countdown = i;
    CHECK_EQUAL(kvc_sequence_save(session, 0, path), KVC_IO);
    file_countdown = 0;
    CHECK_OK(kvc_sequence_remove(session, 2));
    CHECK_OK(kvc_sequence_restore(session, 2, path));
    CHECK_OK(kvc_sequence_length(session, 2, &length));
    CHECK_EQUAL(length, 7);
  }
}

void test_faults(const char *folder) {
  static const fake_shape shape = {160, 160, 32, KVC_TYPE_F64};
  char path[4096];
  kvc_library library;
  int failures;
  snprintf(path, sizeof path, "%s/faults.safetensors", folder);
  fake_library_fill(&library, &shape);
  fake_weights_write(&library, path);

  kvc_model *model = NULL;
  COUNT_FAILURES(failures, kvc_model_open(&library, path, NULL, &model), model);
  CHECK_EQUAL(failures, 3); /* fstat, mmap, the model */

  /* A file that the system does not map is an error of files. */
  kvc_model *other = NULL;
  memory_error = ENODEV;
  countdown = 2;
  CHECK_EQUAL(kvc_model_open(&library, path, NULL, &other), KVC_IO);
  memory_error = ENOMEM;

  kvc_session *session = NULL;
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.threads = 3;
  params.sequences = view_sequences;
  /* The first session of a process asks to hear of forks. */
  countdown = 1;
  CHECK_EQUAL(kvc_session_create(model, &params, &session), KVC_OUT_OF_MEMORY);
  countdown = 0;
  CHECK(session == NULL);
  CHECK_OK(kvc_session_create(model, &params, &session));
  kvc_session_destroy(session);
  session = NULL;
  COUNT_FAILURES(failures, kvc_session_create(model, &params, &session),
                 session);
  /* The session, 14 arrays, 3 of the page pool and 3 of that of tokens, 4 mappings,
   * the threads' pool, its list and 2 threads. */
  CHECK_EQUAL(failures, 29);

  /* Huge pages that the system refuses are small ones. */
  kvc_session *large = NULL;
  int64_t workspace = library.workspace_bytes;
  int refused_before = refused;
  library.workspace_bytes = 4 << 20;
  CHECK_OK(kvc_session_create(model, &params, &large));
  CHECK_EQUAL(refused, refused_before + 1);
  kvc_session_destroy(large);
  library.workspace_bytes = workspace;

  kvc_sampler *sampler = NULL;
  kvc_sampler_params sampling;
  kvc_sampler_params_init(&sampling);
  sampling.temperature = 1;
  COUNT_FAILURES(
      failures,
      kvc_sampler_create(&sampling, fake_vocab, KVC_TYPE_F64, &sampler),
      sampler);
  CHECK_EQUAL(failures, 4); /* the sampler, 3 arrays */

  /* Generating asks the system for nothing. */
  const int32_t prompt[] = {1, 5, 2};
  countdown = 1;
  CHECK_OK(kvc_generate(session, 0, prompt, 3, 100, sampler, NULL, 0, NULL,
                        NULL, NULL, NULL));
  CHECK_EQUAL(countdown, 1);
  countdown = 0;

  kvc_chunk chunk = {1, (const int32_t[7]){0}, 7, KVC_OUTPUTS_NONE};
  CHECK_OK(kvc_forward(session, &chunk, 1, NULL, 0));
  files_fail(session, folder);
  kvc_sampler_destroy(sampler);
  kvc_session_destroy(session);
  kvc_model_close(model);
}
