/* Reads 512 MiB with one thread a CPU, some times over, and prints the rate of
 * each pass in bytes a second, one a line: bandwidth [PASSES]. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 512 << 20, kStreams = 8 };
typedef float vector __attribute__((vector_size(64)));

static vector *buffer; /* [kBytes / sizeof(vector)] */
static long threads, passes;
static pthread_barrier_t barrier;
static volatile float sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Eight streams side by side, each added up in a register of its own. */
static vector sum(const vector *from, size_t count) {
  vector sums[kStreams] = {{0}};
  size_t stride = count / kStreams;
  for (size_t i = 0; i != stride; ++i)
    for (size_t s = 0; s != kStreams; ++s)
      sums[s] += from[s * stride + i];
  for (size_t s = 1; s != kStreams; ++s)
    sums[0] += sums[s];
  return sums[0];
}

static void *work(void *number) {
  size_t count = kBytes / sizeof(vector) / (size_t)threads;
  vector *mine = buffer + count * (size_t)(intptr_t)number;
  memset(mine, 0, count * sizeof(vector)); /* pages of this thread's node */
  for (long pass = 0; pass != passes; ++pass) {
    pthread_barrier_wait(&barrier);
    double begin = now();
    sink = sum(mine, count)[0];
    pthread_barrier_wait(&barrier);
    if (number == NULL)
      printf("%.0f\n", (double)(count * sizeof(vector)) * (double)threads /
                           (now() - begin));
  }
  return NULL;
}

int main(int argc, char **argv) {
  passes = argc > 1 ? atol(argv[1]) : 7;
  threads = sysconf(_SC_NPROCESSORS_ONLN);
  pthread_t *others = calloc((size_t)threads, sizeof(pthread_t));
  if (posix_memalign((void **)&buffer, 4096, kBytes) || !others ||
      pthread_barrier_init(&barrier, NULL, (unsigned)threads))
    return 1;
  for (long i = 1; i < threads; ++i)
    if (pthread_create(&others[i], NULL, work, (void *)(intptr_t)i))
      return 1;
  work(NULL);
  for (long i = 1; i < threads; ++i)
    pthread_join(others[i], NULL);
  return 0;
}
