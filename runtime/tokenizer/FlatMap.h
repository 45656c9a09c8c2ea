//===- FlatMap.h - 64-bit keys to small values ------------------*- C++ -*-===//
#ifndef KVC_TOKENIZER_FLATMAP_H
#define KVC_TOKENIZER_FLATMAP_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvc::tokenizer {

/// A hash map with open addressing and linear probing, at most half full. It is
/// filled once and then read, many times per character of text.
template <typename Value> class FlatMap {
public:
  /// The value of `key`, or null.
  const Value *find(uint64_t key) const {
    if (slots.empty())
      return nullptr;
    for (size_t i = home(key);; i = (i + 1) & (slots.size() - 1)) {
      if (slots[i].key == key)
        return &slots[i].value;
      if (slots[i].key == noKey)
        return nullptr;
    }
  }

  /// Adds `key`, which is not ~0; false, and no change, where it is there.
  bool insert(uint64_t key, Value value) {
    if (2 * (count + 1) > slots.size())
      grow();
    size_t i = home(key);
    for (; slots[i].key != noKey; i = (i + 1) & (slots.size() - 1))
      if (slots[i].key == key)
        return false;
    slots[i] = {key, value};
    ++count;
    return true;
  }

  size_t size() const { return count; }

private:
  static constexpr uint64_t noKey = ~uint64_t(0);
  struct Slot {
    uint64_t key = noKey;
    Value value{};
  };

  // Fibonacci hashing: the high bits of the product with 2^64 / golden ratio.
  size_t home(uint64_t key) const {
    return (key ^ key >> 32) * 0x9E3779B97F4A7C15u >> shift;
  }

  void grow() {
    std::vector<Slot> old = std::move(slots);
    size_t size = old.empty() ? 16 : 2 * old.size();
    shift = old.empty() ? 60 : shift - 1;
    slots = std::vector<Slot>(size);
    count = 0;
    for (const Slot &slot : old)
      if (slot.key != noKey)
        insert(slot.key, slot.value);
  }

  std::vector<Slot> slots; // [a power of two]
  size_t count = 0;
  int shift = 60; // 64 - log2(slots)
};

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_FLATMAP_H
