// Where the positions of a page stand: see kvc_library.layout.
#ifndef KVC_RUNTIME_PAGE_LAYOUT_H
#define KVC_RUNTIME_PAGE_LAYOUT_H

#include "model.h"

namespace kvc {

// Calls run(offset, bytes) for each run of bytes of a page that holds keys or
// values of its first `used` positions: all of these and nothing else.
template <typename Run>
void forEachRun(const kvc_library *library, int64_t used, Run run) {
  constexpr int64_t lanes = 16;
  int64_t element = bytesOf(library->cache_type);
  int64_t heads = library->layers * library->kv_heads; // of all layers
  int64_t keyBytes = library->positions_per_page * library->key_width * element;
  int64_t valueBytes =
      library->positions_per_page * library->value_width * element;
  int64_t groupBytes = lanes * library->key_width * element;
  int64_t groups = used / lanes, left = used % lanes;
  for (int64_t head = 0; head < heads; ++head) {
    int64_t keys = head * keyBytes;
    if (groups > 0)
      run(keys, groups * groupBytes);
    keys += groups * groupBytes;
    for (int64_t i = 0; left > 0 && i < library->key_width; ++i)
      run(keys + i * lanes * element, left * element);
  }
  for (int64_t head = 0; head < heads; ++head)
    run(heads * keyBytes + head * valueBytes,
        used * library->value_width * element);
}

} // namespace kvc

#endif
