#include "Merger.h"

#include <algorithm>

using namespace kvc::tokenizer;

// Up to this many symbols a direct search beats the heap.
static constexpr size_t shortWord = 24;

static constexpr Merge noMerge = {UINT32_MAX, -1};

void Merger::finish(std::vector<int32_t> &out) {
  if (word.size() > shortWord)
    mergeLong();
  else if (word.size() > 1)
    mergeShort();
  out.insert(out.end(), word.begin(), word.end());
  word.clear();
}

void Merger::mergeShort() {
  auto lookUp = [&](size_t left) {
    const Merge *merge = merges.find(word[left], word[left + 1]);
    return merge ? *merge : noMerge;
  };
  pairs.clear();
  for (size_t left = 0; left + 1 < word.size(); ++left)
    pairs.push_back(lookUp(left));

  while (!pairs.empty()) {
    // min_element gives the first of equals: the leftmost.
    auto best = std::min_element(
        pairs.begin(), pairs.end(),
        [](const Merge &a, const Merge &b) { return a.rank < b.rank; });
    if (best->symbol < 0)
      return;
    size_t left = static_cast<size_t>(best - pairs.begin());
    word[left] = best->symbol;
    word.erase(word.begin() + static_cast<ptrdiff_t>(left) + 1);
    pairs.erase(best);
    if (left > 0)
      pairs[left - 1] = lookUp(left - 1);
    if (left < pairs.size())
      pairs[left] = lookUp(left);
  }
}

// Candidate a comes after candidate b: the order of std::push_heap.
static constexpr auto later = [](const auto &a, const auto &b) {
  return a.merge.rank != b.merge.rank ? a.merge.rank > b.merge.rank
                                      : a.left > b.left;
};

void Merger::consider(int64_t left) {
  int64_t right = links[left].next;
  if (const Merge *merge = merges.find(word[left], word[right])) {
    candidates.push_back({*merge, left});
    std::push_heap(candidates.begin(), candidates.end(), later);
  }
}

void Merger::mergeLong() {
  int64_t size = static_cast<int64_t>(word.size());
  links.resize(word.size());
  candidates.clear();
  for (int64_t i = 0; i < size; ++i)
    links[i] = {i - 1, i + 1 < size ? i + 1 : -1};
  for (int64_t i = 0; i + 1 < size; ++i)
    consider(i);

  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end(), later);
    Candidate best = candidates.back();
    candidates.pop_back();

    // A candidate is stale where its pair is no longer what it was.
    if (word[best.left] < 0 || links[best.left].next < 0)
      continue;
    int64_t right = links[best.left].next;
    const Merge *merge = merges.find(word[best.left], word[right]);
    if (!merge || merge->rank != best.merge.rank ||
        merge->symbol != best.merge.symbol)
      continue;

    word[best.left] = merge->symbol;
    word[right] = -1;
    links[best.left].next = links[right].next;
    if (links[right].next >= 0) {
      links[links[right].next].previous = best.left;
      consider(best.left);
    }
    if (links[best.left].previous >= 0)
      consider(links[best.left].previous);
  }
  word.erase(std::remove(word.begin(), word.end(), -1), word.end());
}
