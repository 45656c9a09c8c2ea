#include "sampling.h"

#include "error.h"
#include "float_environment.h"
#include "model.h"
#include "params.h"

#include <algorithm>
#include <math.h>

namespace kvc {
namespace {

uint64_t rotateLeft(uint64_t x, int by) { return x << by | x >> (64 - by); }

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
uint64_t splitmix64(uint64_t *state) {
  uint64_t x = *state += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

void seed(Generator *generator, uint64_t seed) {
  for (uint64_t &word : generator->state)
    word = splitmix64(&seed);
}

// Uniform in [0, 1), a multiple of 2^-53.
double uniform(Generator *generator) {
  uint64_t *s = generator->state;
  uint64_t result = rotateLeft(s[1] * 5, 7) * 9;
  uint64_t shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = rotateLeft(s[3], 45);
  return double(result >> 11) * 0x1p-53;
}

// e^x for x <= 0 in additions and multiplications of doubles, so that it has the
// same bits on every machine, which libm's does not promise. x = n ln 2 + r with
// |r| <= ln(2) / 2, where the Taylor series up to r^13 is exact to 2^-57; below
// -708, where a double becomes denormal, zero.
double exponential(double x) {
  if (!(x >= -708))
    return 0;
  constexpr double coefficients[] = {1.0 / 6227020800,
                                     1.0 / 479001600,
                                     1.0 / 39916800,
                                     1.0 / 3628800,
                                     1.0 / 362880,
                                     1.0 / 40320,
                                     1.0 / 5040,
                                     1.0 / 720,
                                     1.0 / 120,
                                     1.0 / 24,
                                     1.0 / 6,
                                     1.0 / 2,
                                     1.0,
                                     1.0};
  constexpr double shift = 0x1.8p52; // adding it rounds to an integer
  double n = (x * 0x1.71547652b82fep+0 + shift) - shift;
  double r =
      x - n * 0x1.62e42fefa3800p-1; // ln 2 to 42 bits: n times it is exact
  r -= n * 0x1.ef35793c76730p-45;   // the rest of ln 2
  double sum = 0;
  for (double coefficient : coefficients)
    sum = sum * r + coefficient;
  uint64_t bits = uint64_t(int64_t(n) + 1023) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return sum * power;
}

// Copies a row into doubles where `scores` is given; finds its first maximum.
template <typename T>
kvc_status readRow(const T *logits, int64_t vocab, double *scores,
                   int64_t *first) {
  int64_t best = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    if (!(logits[i] < T(INFINITY)))
      return fail(KVC_INVALID_ARGUMENT,
                  "expected logits to be finite or minus infinity, but logit "
                  "%lld is %g",
                  static_cast<long long>(i), double(logits[i]));
    if (logits[i] > logits[best])
      best = i;
    if (scores)
      scores[i] = double(logits[i]);
  }
  if (logits[best] == -T(INFINITY))
    return fail(KVC_INVALID_ARGUMENT,
                "expected a finite logit, but all %lld are minus infinity",
                static_cast<long long>(vocab));
  *first = best;
  return KVC_OK;
}

kvc_status readRow(const void *logits, kvc_type type, int64_t vocab,
                   double *scores, int64_t *first) {
  if (type == KVC_TYPE_F64)
    return readRow(static_cast<const double *>(logits), vocab, scores, first);
  return readRow(static_cast<const float *>(logits), vocab, scores, first);
}

// The smallest score that top_k keeps.
double threshold(const kvc_sampler *sampler) {
  double *begin = sampler->selection, *end = begin + sampler->vocab;
  memcpy(begin, sampler->scores, size_t(sampler->vocab) * sizeof *begin);
  double *kth = begin + sampler->topK - 1;
  std::nth_element(begin, kth, end, [](double a, double b) { return a > b; });
  return *kth;
}

// Turns scores into exp((score - maximum) / temperature), 0 where top_k drops
// the token; returns their sum.
double weigh(kvc_sampler *sampler, double maximum) {
  double least = sampler->topK ? threshold(sampler) : -INFINITY;
  double sum = 0;
  for (int64_t i = 0; i < sampler->vocab; ++i) {
    double score = sampler->scores[i];
    double weight = score < least
                        ? 0
                        : exponential((score - maximum) / sampler->temperature);
    sampler->scores[i] = weight;
    sum += weight;
  }
  return sum;
}

// Drops what stands outside the smallest set of the likeliest tokens whose
// weights reach topP of `sum`; returns the weight of the set. A heap, since few
// tokens hold most of the weight.
double cutTail(kvc_sampler *sampler, double sum) {
  double *weights = sampler->scores;
  int32_t *begin = sampler->order, *end = begin;
  for (int64_t i = 0; i < sampler->vocab; ++i)
    if (weights[i] > 0)
      *end++ = int32_t(i);
  auto after = [weights](int32_t a, int32_t b) {
    return weights[a] != weights[b] ? weights[a] < weights[b] : a > b;
  };
  std::make_heap(begin, end, after);
  double kept = 0;
  while (begin != end && kept < sampler->topP * sum) {
    kept += weights[*begin];
    std::pop_heap(begin, end--, after);
  }
  for (int32_t *token = begin; token != end; ++token)
    weights[*token] = 0;
  return kept;
}

// The token at which the running sum of weights passes a uniform share of `sum`.
int64_t draw(kvc_sampler *sampler, double sum) {
  double rest = uniform(&sampler->generator) * sum;
  int64_t chosen = 0;
  for (int64_t i = 0; i < sampler->vocab; ++i) {
    if (!(sampler->scores[i] > 0))
      continue;
    chosen = i; // rounding may leave some rest after the last candidate
    rest -= sampler->scores[i];
    if (rest < 0)
      break;
  }
  return chosen;
}

kvc_status checkParams(const kvc_sampler_params &params, int64_t vocab,
                       int type) {
  FloatEnvironment environment; // where denormals are no zeros
  if (vocab < 1 || vocab > INT32_MAX)
    return fail(KVC_INVALID_ARGUMENT,
                "expected vocab to be in 1..%d, but got %lld", INT32_MAX,
                static_cast<long long>(vocab));
  if (type != KVC_TYPE_F64 && type != KVC_TYPE_F32)
    return fail(KVC_INVALID_ARGUMENT,
                "expected type to be f64 (%d) or f32 (%d), but got %d",
                KVC_TYPE_F64, KVC_TYPE_F32, type);
  if (!(params.temperature >= 0 && params.temperature < INFINITY))
    return fail(
        KVC_INVALID_ARGUMENT,
        "expected temperature to be finite and not negative, but got %.17g",
        params.temperature);
  if (params.top_k < 0 || params.top_k > vocab)
    return fail(KVC_INVALID_ARGUMENT,
                "expected top_k to be in 1..%lld, or 0 for all, but got %lld",
                static_cast<long long>(vocab),
                static_cast<long long>(params.top_k));
  if (!(params.top_p >= 0 && params.top_p <= 1))
    return fail(KVC_INVALID_ARGUMENT,
                "expected top_p to be above 0 and at most 1, or 0 for all, but "
                "got %.17g",
                params.top_p);
  return KVC_OK;
}

} // namespace

kvc_status checkSampler(const kvc_sampler *sampler) {
  if (!sampler)
    return failNull("sampler");
  if (sampler->tag != kvc_sampler::samplerTag)
    return fail(KVC_INVALID_ARGUMENT,
                "expected sampler to be a sampler, but got another thing");
  return KVC_OK;
}

kvc_status sampleGreedy(const void *logits, kvc_type type, int64_t vocab,
                        int32_t *out_token) {
  FloatEnvironment environment;
  int64_t first = 0;
  if (kvc_status status = readRow(logits, type, vocab, nullptr, &first))
    return status;
  *out_token = int32_t(first);
  return KVC_OK;
}

} // namespace kvc

using namespace kvc;

kvc_status kvc_sampler_create(const kvc_sampler_params *params, int64_t vocab,
                              kvc_type type, kvc_sampler **out_sampler) {
  if (!out_sampler)
    return failNull("out_sampler");
  kvc_sampler_params values;
  if (kvc_status status = readParams(&values, params, "kvc_sampler_params"))
    return status;
  if (kvc_status status = checkParams(values, vocab, valueOf(type)))
    return status;
  Allocator allocator;
  if (kvc_status status = readAllocator(&allocator, values.allocator, {}))
    return status;
  auto *sampler = allocate<kvc_sampler>(allocator, 1);
  if (!sampler)
    return fail(KVC_OUT_OF_MEMORY, "no memory for a sampler");
  sampler->tag = kvc_sampler::samplerTag;
  sampler->allocator = allocator;
  sampler->type = type;
  sampler->vocab = vocab;
  sampler->temperature = values.temperature;
  sampler->topK = values.top_k;
  sampler->topP = values.top_p;
  seed(&sampler->generator, values.seed);
  sampler->scores = allocate<double>(allocator, vocab);
  sampler->selection = allocate<double>(allocator, vocab);
  sampler->order = allocate<int32_t>(allocator, vocab);
  if (!sampler->scores || !sampler->selection || !sampler->order) {
    kvc_sampler_destroy(sampler);
    return fail(KVC_OUT_OF_MEMORY, "no memory for a sampler of %lld tokens",
                static_cast<long long>(vocab));
  }
  *out_sampler = sampler;
  return KVC_OK;
}

void kvc_sampler_destroy(kvc_sampler *sampler) {
  if (!sampler || sampler->tag != kvc_sampler::samplerTag ||
      sampler->generations > 0)
    return;
  deallocate(sampler->allocator, sampler->order);
  deallocate(sampler->allocator, sampler->selection);
  deallocate(sampler->allocator, sampler->scores);
  sampler->tag = 0;
  deallocate(sampler->allocator, sampler);
}

kvc_status kvc_sampler_sample(kvc_sampler *sampler, const void *logits,
                              int32_t *out_token) {
  FloatEnvironment environment;
  if (kvc_status status = checkSampler(sampler))
    return status;
  if (!logits)
    return failNull("logits");
  if (reinterpret_cast<uintptr_t>(logits) % uintptr_t(bytesOf(sampler->type)))
    return fail(KVC_INVALID_ARGUMENT,
                "expected logits at a multiple of %lld bytes, but got %p",
                static_cast<long long>(bytesOf(sampler->type)), logits);
  if (!out_token)
    return failNull("out_token");
  if (sampler->temperature == 0)
    return sampleGreedy(logits, sampler->type, sampler->vocab, out_token);
  int64_t first = 0;
  if (kvc_status status = readRow(logits, sampler->type, sampler->vocab,
                                  sampler->scores, &first))
    return status;
  double sum = weigh(sampler, sampler->scores[first]);
  if (sampler->topP > 0 && sampler->topP < 1)
    sum = cutTail(sampler, sum);
  *out_token = int32_t(draw(sampler, sum));
  return KVC_OK;
}
