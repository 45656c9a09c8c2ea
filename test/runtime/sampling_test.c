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
  CHECK_EQUAL(support(1, 0, 0.5, equal, 4), 0x03);
  CHECK_EQUAL(support(1, 0, 0.51, equal, 4), 0x07);
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
  CHECK_PARAMS(params.top_p = 0,
               "expected top_p to be above 0 and at most 1, but got 0");
  CHECK_PARAMS(params.top_p = 1 + 0x1p-52,
               "expected top_p to be above 0 and at most 1, but got "
               "1.0000000000000002");
  CHECK_PARAMS(params.top_p = 1.5,
               "expected top_p to be above 0 and at most 1, but got 1.5");
  CHECK_PARAMS(params.size = 41,
               "expected kvc_sampler_params.size to be set by its init "
               "function (a multiple of 8 in 40..1024), but got 41");
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
  rejects_rows();
  rejects_parameters();
  keeps_float_environment();
}
