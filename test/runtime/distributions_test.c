/* Sampled frequencies against probabilities worked out here with libm, by
 * Pearson's chi-square; and the documented generator, number by number. */
#include "check.h"

#include <math.h>

enum { vocab = 12, samples = 200000 };

static const double logits[vocab] = {0.3, -1.2, 2.0, 1.1, 2.0,  -0.4,
                                     0.9, 1.7,  0.0, 1.1, -2.5, 1.5};

/* Probabilities by the documentation, by other means: the k-th largest and the
 * set of top_p by counting. */
static void probabilities(double temperature, int64_t top_k, double top_p,
                          double *p) {
  double sum = 0;
  for (int i = 0; i < vocab; ++i) {
    int larger = 0;
    for (int j = 0; j < vocab; ++j)
      larger += logits[j] > logits[i];
    p[i] = !top_k || larger < top_k ? exp(logits[i] / temperature) : 0;
    sum += p[i];
  }
  double kept = 0;
  double all[vocab];
  for (int i = 0; i < vocab; ++i)
    all[i] = p[i] / sum;
  for (int i = 0; i < vocab; ++i) {
    double before = 0; /* of those that come first */
    for (int j = 0; j < vocab; ++j)
      before += all[j] > all[i] || (all[j] == all[i] && j < i) ? all[j] : 0;
    p[i] = before < top_p ? all[i] : 0;
    kept += p[i];
  }
  for (int i = 0; i < vocab; ++i)
    p[i] /= kept;
}

static double chi_square(kvc_sampler *sampler, const double *p, int *freedom) {
  int counts[vocab] = {0};
  for (int i = 0; i < samples; ++i) {
    int32_t token = -1;
    CHECK_OK(kvc_sampler_sample(sampler, logits, &token));
    ++counts[token];
  }
  double statistic = 0;
  *freedom = -1;
  for (int i = 0; i < vocab; ++i) {
    if (p[i] == 0) {
      CHECK_EQUAL(counts[i], 0);
      continue;
    }
    double expected = p[i] * samples;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++*freedom;
  }
  return statistic;
}

static void fits(double temperature, int64_t top_k, double top_p) {
  kvc_sampler_params params;
  kvc_sampler_params_init(&params);
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.seed = 2024;
  kvc_sampler *sampler = NULL;
  CHECK_OK(kvc_sampler_create(&params, vocab, KVC_TYPE_F64, &sampler));
  double p[vocab];
  int freedom;
  probabilities(temperature, top_k, top_p, p);
  double statistic = chi_square(sampler, p, &freedom);
  /* Mean f, variance 2 f: five deviations above are passed by one right sampler
   * in 10^5 or fewer. The seed is fixed, so that the outcome is, too. */
  if (!(statistic < freedom + 5 * sqrt(2.0 * freedom))) {
    fprintf(stderr, "temperature %g, top_k %d, top_p %g: chi-square %g of %d\n",
            temperature, (int)top_k, top_p, statistic, freedom);
    exit(1);
  }
  kvc_sampler_destroy(sampler);

  /* The check can fail: a slightly warmer sampler does not fit. */
  params.temperature = temperature * 1.1;
  CHECK_OK(kvc_sampler_create(&params, vocab, KVC_TYPE_F64, &sampler));
  if (freedom > 2) {
    double warmer[vocab];
    int other;
    probabilities(params.temperature, top_k, top_p, warmer);
    int same_set = 1;
    for (int i = 0; i < vocab; ++i)
      same_set &= (p[i] > 0) == (warmer[i] > 0);
    if (same_set)
      CHECK(chi_square(sampler, p, &other) > freedom + 5 * sqrt(2.0 * freedom));
  }
  kvc_sampler_destroy(sampler);
}

/* With two equal scores a token is the uniform number's upper bit: xoshiro256**
 * seeded by splitmix64, written out here from the papers' definitions. */
static void generator(void) {
  uint64_t seed = 12345, s[4];
  for (int i = 0; i < 4; ++i) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    s[i] = z ^ (z >> 31);
  }
  kvc_sampler_params params;
  kvc_sampler_params_init(&params);
  params.temperature = 1;
  params.seed = 12345;
  kvc_sampler *sampler = NULL;
  CHECK_OK(kvc_sampler_create(&params, 2, KVC_TYPE_F32, &sampler));
  const float equal[] = {1, 1};
  for (int i = 0; i < 1000; ++i) {
    uint64_t five = s[1] * 5, out = ((five << 7) | (five >> 57)) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    int32_t token = -1;
    CHECK_OK(kvc_sampler_sample(sampler, equal, &token));
    CHECK_EQUAL(token, (int)(out >> 63));
  }
  kvc_sampler_destroy(sampler);
}

void test_distributions(const char *folder) {
  (void)folder;
  generator();
  fits(1, 0, 1);
  fits(0.5, 0, 1);
  fits(2.5, 0, 1);
  fits(1, 4, 1);
  fits(0.8, 0, 0.6);
  fits(1.3, 7, 0.9);
}
