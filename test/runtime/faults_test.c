/* Case 37: every request to the system fails once, in turn. Each failure is
 * KVC_OUT_OF_MEMORY (or KVC_IO for the file), nothing is handed out, nothing
 * leaks (the leak sanitizer looks), and the next try works. The linker sends the
 * runtime's requests through the __wrap_ functions. */
#include "check.h"
#include "fake_model.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int countdown; /* fails the request that takes it to 0; 0: none */

static int fails_now(void) {
  if (countdown == 0 || --countdown > 0)
    return 0;
  errno = ENOMEM;
  return 1;
}

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

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *argument) {
  return fails_now() ? EAGAIN
                     : __real_pthread_create(thread, attributes, run, argument);
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

void test_faults(const char *folder) {
  static const fake_shape shape = {160, 160, 32, KVC_TYPE_F64};
  char path[4096];
  kvc_library library;
  int failures;
  snprintf(path, sizeof path, "%s/faults.safetensors", folder);
  fake_library_fill(&library, &shape);
  fake_weights_write(&library, path);

  kvc_model *model = NULL;
  COUNT_FAILURES(failures, kvc_model_open(&library, path, &model), model);
  CHECK_EQUAL(failures, 3); /* fstat, mmap, the model */

  kvc_session *session = NULL;
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.threads = 3;
  COUNT_FAILURES(failures, kvc_session_create(model, &params, &session),
                 session);
  /* The session, 9 arrays, 4 of the page pool, 3 mappings, the threads' pool,
   * its list and 2 threads. */
  CHECK_EQUAL(failures, 21);

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
  kvc_sampler_destroy(sampler);
  kvc_session_destroy(session);
  kvc_model_close(model);
}
