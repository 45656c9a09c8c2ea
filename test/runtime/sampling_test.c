/* Sampling: choices that are certain, parameters, and rows that can't be
 * sampled. */
#include "check.h"

#include <math.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static kvc_sampler *create(double temperature, int64_t top_k, double top_p,
                           uint64_t seed, int64_t vocab, kvc_type type) {
  kvc_sampler *sampler = NULL;
  kvc_sampler_params params;
  kvc_sampler_params_init(&params);
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.seed = seed;
  CHECK_OK(kvc_sampler_create(&params, vocab, type, &sampler));
  return sampler;
}

static int32_t sample(kvc_sampler *sampler, const void *logits) {
  int32_t token = -1;
  CHECK_OK(kvc_sampler_sample(sampler, logits, &token));
  return token;
}

/* The tokens that 2000 samples give, as bits. */
static unsigned support(double temperature, int64_t top_k, double top_p,
                        const double *logits, int64_t vocab) {
  kvc_sampler *sampler =
      create(temperature, top_k, top_p, 5, vocab, KVC_TYPE_F64);
  unsigned seen = 0;
  for (int i = 0; i < 2000; ++i)
    seen |= 1u << sample(sampler, logits);
  kvc_sampler_destroy(sampler);
  return seen;
}

static void greedy(void) {
  const double doubles[] = {-3, 2, 5, 5, 4};
  const float floats[] = {-1, -1, -2, -INFINITY};
  kvc_sampler *sampler = create(0, 0, 1, 0, 5, KVC_TYPE_F64);
  CHECK_EQUAL(sample(sampler, doubles), 2); /* the first maximum */
  kvc_sampler_destroy(sampler);
  sampler = create(0, 0, 1, 0, 4, KVC_TYPE_F32);
  CHECK_EQUAL(sample(sampler, floats), 0);
  kvc_sampler_destroy(sampler);
  CHECK_OK(kvc_sampler_create(NULL, 5, KVC_TYPE_F64, &sampler));
  CHECK_EQUAL(sample(sampler, doubles), 2);
  kvc_sampler_destroy(sampler);
  kvc_sampler_destroy(NULL);
}

static void keeps_candidates(void) {
  const double logits[] = {1, 3, 2, 3, 0, 2};
  CHECK_EQUAL(support(1, 0, 1, logits, 6), 0x3f);
  /* top_k keeps what is at least the k-th largest: ties stay. */
  CHECK_EQUAL(support(1, 1, 1, logits, 6), 0x0a);
  CHECK_EQUAL(support(1, 2, 1, logits, 6), 0x0a);
  CHECK_EQUAL(support(1, 3, 1, logits, 6), 0x2e);
  CHECK_EQUAL(support(1, 6, 1, logits, 6), 0x3f);

  /* Probabilities 0.4, 0.3, 0.2, 0.1: sets that reach p, the smallest. */
  const double fixed[] = {-INFINITY, log(0.2), log(0.4), log(0.1), log(0.3)};
  CHECK_EQUAL(support(1, 0, 0.05, fixed, 5), 0x04);
  CHECK_EQUAL(support(1, 0, 0.39, fixed, 5), 0x04);
  CHECK_EQUAL(support(1, 0, 0.41, fixed, 5), 0x14);
  CHECK_EQUAL(support(1, 0, 0.69, fixed, 5), 0x14);
  CHECK_EQUAL(support(1, 0, 0.71, fixed, 5), 0x16);
  CHECK_EQUAL(support(1, 0, 0.95, fixed, 5), 0x1e);
  CHECK_EQUAL(support(1, 0, 1, fixed, 5), 0x1e);
  /* After top_k = 2 they are 4/7 and 3/7, of which p takes its share. */
  CHECK_EQUAL(support(1, 2, 0.57, fixed, 5), 0x04);
  CHECK_EQUAL(support(1, 2, 0.58, fixed, 5), 0x14);
  /* Of equal ones the lower ids come first. */
  const double equal[] = {1, 1, 1, 1};
  CHECK_EQUAL(support(1, 0, 1e-8, equal, 4), 0x01);
  CHECK_EQUAL(support(1, 0, 0x1p-1074, equal, 4), 0x01);
  CHECK_EQUAL(support(1, 0, 0.5, equal, 4), 0x03);
  CHECK_EQUAL(support(1, 0, 0.5000001, equal, 4), 0x07);
  CHECK_EQUAL(support(1, 0, 0.75, equal, 4), 0x07);
  /* Zero is off, as it is for top_k. */
  CHECK_EQUAL(support(1, 0, 0, equal, 4), 0x0f);
}

static void extremes(void) {
  /* Nothing overflows: huge scores, tiny and huge temperatures. */
  const double huge[] = {1e308, -1e308, 1e308, 9e307};
  CHECK_EQUAL(support(1, 0, 1, huge, 4), 0x05);
  CHECK_EQUAL(support(1e-300, 0, 1, huge, 4), 0x05);
  const double near[] = {1, 1.0000001, 0};
  CHECK_EQUAL(support(1e-12, 0, 1, near, 3), 0x02);
  CHECK_EQUAL(support(1e300, 0, 1, near, 3), 0x07);
  const double one[] = {-INFINITY, -7, -INFINITY};
  CHECK_EQUAL(support(1, 0, 1, one, 3), 0x02);
  CHECK_EQUAL(support(1, 3, 0.5, one, 3), 0x02);
}

/* The coldest temperatures take the maximum whatever the seed, and the hottest
 * forgets the scores. */
static void coldest_and_hottest(void) {
  enum { vocab = 40, draws = 40000 };
  double doubles[vocab];
  float floats[vocab];
  for (int i = 0; i < vocab; ++i) {
    doubles[i] = (i * 17 % vocab) * 0.25 - 5;
    floats[i] = (float)doubles[i];
  }
  const int32_t maximum = 7; /* 7 * 17 % 40 is 39 */
  const double cold[] = {1e-30, 1e-300, 5e-324};
  for (int t = 0; t < 3; ++t)
    for (uint64_t seed = 0; seed < 200; ++seed) {
      uint64_t any = seed * 0x9e3779b97f4a7c15;
      kvc_sampler *sampler = create(cold[t], 0, 1, any, vocab, KVC_TYPE_F64);
      CHECK_EQUAL(sample(sampler, doubles), maximum);
      kvc_sampler_destroy(sampler);
      sampler = create(cold[t], 5, 0.9, any, vocab, KVC_TYPE_F32);
      CHECK_EQUAL(sample(sampler, floats), maximum);
      kvc_sampler_destroy(sampler);
    }
  int counts[vocab] = {0};
  kvc_sampler *sampler = create(1e300, 0, 1, 3, vocab, KVC_TYPE_F64);
  for (int i = 0; i < draws; ++i)
    ++counts[sample(sampler, doubles)];
  kvc_sampler_destroy(sampler);
  for (int i = 0; i < vocab; ++i) /* within 5 standard deviations */
    CHECK(fabs(counts[i] - (double)draws / vocab) < 5 * sqrt(draws / vocab));
}

/* Zero is the default of each parameter, the size of a struct among them. */
static void zero_is_the_default(void) {
  const double logits[] = {1, 1, 9, 1};
  kvc_sampler_params params[3];
  memset(params, 0, sizeof params);
  params[1].size = sizeof *params;
  CHECK_OK(kvc_sampler_params_init_sized(&params[2], sizeof *params));
  CHECK(memcmp(&params[1], &params[2], sizeof *params) == 0);
  for (int i = 0; i < 3; ++i) {
    kvc_sampler *sampler = NULL;
    CHECK_OK(kvc_sampler_create(&params[i], 4, KVC_TYPE_F64, &sampler));
    CHECK_EQUAL(sample(sampler, logits), 2);
    kvc_sampler_destroy(sampler);
  }
}

static void rejects_rows(void) {
  kvc_sampler *samplers[] = {create(0, 0, 1, 0, 3, KVC_TYPE_F64),
                             create(1, 2, 0.9, 0, 3, KVC_TYPE_F64)};
  const double nan_row[] = {1, 2, NAN};
  const double infinite[] = {1, INFINITY, 2};
  const double nothing[] = {-INFINITY, -INFINITY, -INFINITY};
  for (int i = 0; i < 2; ++i) {
    int32_t token = 42;
    CHECK_FAILS(kvc_sampler_sample(samplers[i], nan_row, &token),
                KVC_INVALID_ARGUMENT,
                "expected logits to be finite or minus infinity, but logit 2 "
                "is nan");
    CHECK_FAILS(kvc_sampler_sample(samplers[i], infinite, &token),
                KVC_INVALID_ARGUMENT,
                "expected logits to be finite or minus infinity, but logit 1 "
                "is inf");
    CHECK_FAILS(kvc_sampler_sample(samplers[i], nothing, &token),
                KVC_INVALID_ARGUMENT,
                "expected a finite logit, but all 3 are minus infinity");
    CHECK_FAILS(kvc_sampler_sample(samplers[i], NULL, &token),
                KVC_INVALID_ARGUMENT,
                "expected logits to be given, but got NULL");
    CHECK_FAILS(kvc_sampler_sample(samplers[i], nan_row, NULL),
                KVC_INVALID_ARGUMENT,
                "expected out_token to be given, but got NULL");
    CHECK_EQUAL(token, 42);
    kvc_sampler_destroy(samplers[i]);
  }
  CHECK_FAILS(kvc_sampler_sample(NULL, nan_row, NULL), KVC_INVALID_ARGUMENT,
              "expected sampler to be given, but got NULL");
  CHECK_FAILS(
      kvc_sampler_sample((kvc_sampler *)(uintptr_t)nan_row, nan_row, NULL),
      KVC_INVALID_ARGUMENT,
      "expected sampler to be a sampler, but got another thing");
}

static void rejects_parameters(void) {
  kvc_sampler *sampler = NULL;
  kvc_sampler_params params;
#define CHECK_PARAMS(change, message)                                          \
  kvc_sampler_params_init(&params);                                            \
  params.temperature = 1;                                                      \
  change;                                                                      \
  CHECK_FAILS(kvc_sampler_create(&params, 19, KVC_TYPE_F32, &sampler),         \
              KVC_INVALID_ARGUMENT, message)
  CHECK_PARAMS(params.temperature = -0.5,
               "expected temperature to be finite and not negative, but got "
               "-0.5");
  CHECK_PARAMS(params.temperature = INFINITY,
               "expected temperature to be finite and not negative, but got "
               "inf");
  CHECK_PARAMS(params.temperature = NAN,
               "expected temperature to be finite and not negative, but got "
               "nan");
  CHECK_PARAMS(params.top_k = 20,
               "expected top_k to be in 1..19, or 0 for all, but got 20");
  CHECK_PARAMS(params.top_k = -1,
               "expected top_k to be in 1..19, or 0 for all, but got -1");
  CHECK_PARAMS((params.temperature = 0, params.top_k = 20),
               "expected top_k to be in 1..19, or 0 for all, but got 20");
  CHECK_PARAMS(params.top_p = -0x1p-1074,
               "expected top_p to be above 0 and at most 1, or 0 for all, but "
               "got -4.9406564584124654e-324");
  CHECK_PARAMS(params.top_p = 1 + 0x1p-52,
               "expected top_p to be above 0 and at most 1, or 0 for all, but "
               "got 1.0000000000000002");
  CHECK_PARAMS(params.top_p = 1.5,
               "expected top_p to be above 0 and at most 1, or 0 for all, but "
               "got 1.5");
  CHECK_PARAMS(params.size = 49,
               "expected kvc_sampler_params.size to be set by its init "
               "function (a multiple of 8 in 48..1024), but got 49");
  CHECK_PARAMS((params.size = 0, params.temperature = 1),
               "expected kvc_sampler_params.size to be set by its init "
               "function (a multiple of 8 in 48..1024), but got 0");
  CHECK_FAILS(kvc_sampler_create(NULL, 0, KVC_TYPE_F32, &sampler),
              KVC_INVALID_ARGUMENT,
              "expected vocab to be in 1..2147483647, but got 0");
  CHECK_FAILS(kvc_sampler_create(NULL, 19, KVC_TYPE_F16, &sampler),
              KVC_INVALID_ARGUMENT,
              "expected type to be f64 (0) or f32 (1), but got 2");
  CHECK_FAILS(kvc_sampler_create(NULL, 19, KVC_TYPE_F32, NULL),
              KVC_INVALID_ARGUMENT,
              "expected out_sampler to be given, but got NULL");
  CHECK(sampler == NULL);
}

/* Traps, flushed denormals and rounding of the caller's thread neither reach a
 * choice nor come back changed. */
static void keeps_float_environment(void) {
#if defined(__x86_64__)
  const double tiny[] = {0, 0x1p-1060, -1}, nan_row[] = {0, NAN, -1};
  kvc_sampler *samplers[] = {create(0, 0, 1, 0, 3, KVC_TYPE_F64),
                             create(1, 1, 1, 0, 3, KVC_TYPE_F64)};
  kvc_sampler_params params;
  kvc_sampler_params_init(&params);
  params.temperature = NAN;
  unsigned saved = _mm_getcsr();
  /* Upwards, flush, no denormals; invalid operations and divisions trap. */
  const unsigned odd = 0xdfc0 & ~0x280u;
  int32_t tokens[2] = {-1, -1};
  kvc_status row_statuses[2], statuses[3];
  kvc_sampler *sampler = NULL;
  _mm_setcsr(odd);
  for (int i = 0; i < 2; ++i) {
    row_statuses[i] = kvc_sampler_sample(samplers[i], tiny, &tokens[i]);
    statuses[i] = kvc_sampler_sample(samplers[i], nan_row, &tokens[i]);
  }
  statuses[2] = kvc_sampler_create(&params, 3, KVC_TYPE_F64, &sampler);
  unsigned left = _mm_getcsr();
  _mm_setcsr(saved);
  CHECK_EQUAL(left, odd);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(row_statuses[i], KVC_OK);
    CHECK_EQUAL(tokens[i], 1);
    kvc_sampler_destroy(samplers[i]);
  }
  for (int i = 0; i < 3; ++i)
    CHECK_EQUAL(statuses[i], KVC_INVALID_ARGUMENT);
#endif
}

void test_sampling(const char *folder) {
  (void)folder;
  greedy();
  keeps_candidates();
  extremes();
  coldest_and_hottest();
  zero_is_the_default();
  rejects_rows();
  rejects_parameters();
  keeps_float_environment();
}
