// Choosing a token from a row of logits.
#ifndef KVC_RUNTIME_SAMPLING_H
#define KVC_RUNTIME_SAMPLING_H

#include "memory.h"

namespace kvc {

// xoshiro256**, seeded through splitmix64.
struct Generator {
  uint64_t state[4];
};

} // namespace kvc

struct kvc_sampler {
  static constexpr uint32_t samplerTag = 0x7061766b; // "kvap"
  uint32_t tag;
  kvc::Allocator allocator;
  kvc_type type;
  int64_t vocab;
  double temperature;
  int64_t topK; // 0: off
  double topP;  // 0 or 1: off
  int32_t generations; // calls of kvc_generate that are using it
  kvc::Generator generator;
  double *scores;    // [vocab], then probabilities; 0: not a candidate
  double *selection; // [vocab], scratch of top_k
  int32_t *order;    // [vocab], scratch of top_p
};

namespace kvc {

// Error unless `sampler` is a sampler.
kvc_status checkSampler(const kvc_sampler *sampler);

// The first maximum of a row, under the conditions of kvc_sampler_sample.
kvc_status sampleGreedy(const void *logits, kvc_type type, int64_t vocab,
                        int32_t *out_token);

} // namespace kvc

#endif
