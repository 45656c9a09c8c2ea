//===- Merger.h - byte-pair merging of one word -----------------*- C++ -*-===//
#ifndef KVC_TOKENIZER_MERGER_H
#define KVC_TOKENIZER_MERGER_H

#include "FlatMap.h"

#include <cstdint>
#include <vector>

namespace kvc::tokenizer {

/// What a pair of neighbouring symbols becomes. Lower ranks merge first; equal
/// ranks from left to right.
struct Merge {
  uint32_t rank;
  int32_t symbol;
};

/// The merges of a vocabulary, by pair.
class MergeTable {
public:
  bool insert(int32_t left, int32_t right, Merge merge) {
    return table.insert(key(left, right), merge);
  }
  const Merge *find(int32_t left, int32_t right) const {
    return table.find(key(left, right));
  }
  size_t size() const { return table.size(); }

private:
  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
  FlatMap<Merge> table;
};

/// Merges words. The storage is kept from word to word.
///
/// A word's pairs wait in a heap by (rank, position), so a word of n symbols
/// takes O(n log n); a short word, and nearly all are, searches its few pairs
/// directly for the same next merge.
class Merger {
public:
  explicit Merger(const MergeTable &merges) : merges(merges) {}

  /// Adds a symbol to the current word.
  void push(int32_t symbol) { word.push_back(symbol); }

  /// Merges the current word, appends its symbols to `out`, and starts anew.
  void finish(std::vector<int32_t> &out);

private:
  void mergeShort();
  void mergeLong();

  struct Link {
    int64_t previous, next; // neighbours in the word, -1 at its ends
  };
  struct Candidate {
    Merge merge;
    int64_t left; // position of the pair's left symbol
  };
  void consider(int64_t left);

  const MergeTable &merges;
  std::vector<int32_t> word;
  std::vector<Merge> pairs;          // short: the merge of each pair of `word`
  std::vector<Link> links;           // long: by position; absorbed: symbol -1
  std::vector<Candidate> candidates; // long: the heap, may hold stale entries
};

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_MERGER_H
