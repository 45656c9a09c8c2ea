// CRC-32C, as in RFC 3720 (iSCSI), section 12.1 and appendix B.4.
#ifndef KVC_RUNTIME_CHECKSUM_H
#define KVC_RUNTIME_CHECKSUM_H

#include <stdint.h>

namespace kvc {

struct ChecksumTable {
  uint32_t entries[256];
  constexpr ChecksumTable() : entries() {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value >> 1 ^ (value & 1 ? 0x82f63b78 : 0);
      entries[i] = value;
    }
  }
};

// The checksum of some bytes and `bytes` more, from that of the first ones; 0 is
// that of none.
inline uint32_t checksum(uint32_t before, const void *data, int64_t bytes) {
  static constexpr ChecksumTable table;
  auto *byte = static_cast<const uint8_t *>(data);
  uint32_t value = ~before;
  for (int64_t i = 0; i < bytes; ++i)
    value = table.entries[(value ^ byte[i]) & 0xff] ^ value >> 8;
  return ~value;
}

} // namespace kvc

#endif
