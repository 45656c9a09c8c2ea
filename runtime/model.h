// A generated library bound to its weights.
#ifndef KVC_RUNTIME_MODEL_H
#define KVC_RUNTIME_MODEL_H

#include "memory.h"
#include "packed_file.h"

#include <atomic>

struct kvc_model {
  static constexpr uint32_t modelTag = 0x6d63766b;  // "kvcm"
  static constexpr uint32_t closedTag = 0x6363766b; // "kvcc": sessions live on
  uint32_t tag;
  std::atomic<int32_t> references; // the caller's, and one of each session
  kvc::Allocator allocator;        // of its sessions, too, where they name none
  const kvc_library *library;
  const kvc_kernels *kernels;    // the best that this machine runs
  int64_t cacheBytesPerPosition; // of one sequence, without padding
  int64_t longestSlice; // tokens of a sequence that the cache takes at a time
  kvc::PackedFile weights;
};

namespace kvc {

// Bytes of an element, and the name of its type. Callers' types are checked before.
inline int64_t bytesOf(kvc_type type) {
  switch (type) {
  case KVC_TYPE_F64:
    return 8;
  case KVC_TYPE_F32:
    return 4;
  case KVC_TYPE_F16:
  case KVC_TYPE_BF16:
    return 2;
  }
  return 0;
}
inline const char *nameOf(kvc_type type) {
  switch (type) {
  case KVC_TYPE_F64:
    return "f64";
  case KVC_TYPE_F32:
    return "f32";
  case KVC_TYPE_F16:
    return "f16";
  case KVC_TYPE_BF16:
    return "bf16";
  }
  return "unknown";
}

// The first digits of an identity, for messages.
inline unsigned long long startOf(const uint8_t *identity) {
  unsigned long long start = 0;
  for (int i = 0; i < 8; ++i)
    start = start << 8 | identity[i];
  return start;
}

// Error unless `model` is an open model.
kvc_status checkModel(const kvc_model *model);

void retainModel(const kvc_model *model);
void releaseModel(const kvc_model *model);

} // namespace kvc

#endif
