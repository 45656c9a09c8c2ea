// Storage: how the numbers of a weight stand in memory, in a model's file and in
// the packed one. What reads, rounds, packs or multiplies weights asks it, and
// knows no type by name.
#ifndef KVC_DIALECT_STORAGE_STORAGE_H
#define KVC_DIALECT_STORAGE_STORAGE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace kvc {

// What a storage of blocks holds in place of floats: an element is
// scale * (quant - zero) + minimum, with an f16 scale (and minimum) a block.
struct Quants {
  int64_t bits; // 8: a signed byte; 4: a nibble from 0 to 15
  int64_t zero;
  bool hasMinimum;
};

class Storage {
public:
  // In the IR and on the command line; files spell it in capitals.
  const llvm::StringLiteral name;
  // Elements stand in blocks of `elements` consecutive ones of a row, each of
  // `bytes`.
  const int64_t elements, bytes;
  // None where the elements are floats.
  const std::optional<Quants> quants;
  // The smallest magnitude that rounding makes infinite.
  const double limit;
  // Rows that stand together in a packed matrix.
  const int64_t panel;

  // A row's bytes; its columns are whole blocks.
  int64_t rowBytes(int64_t columns) const { return columns / elements * bytes; }

  // Reads `count` elements (whole blocks) that start at `data`, which need not
  // be aligned. Those of blocks are rounded to f32 as their format defines them;
  // f32 holds all but f64's exactly.
  virtual void decode(const char *data, int64_t count, float *out) const = 0;
  virtual void decode(const char *data, int64_t count, double *out) const = 0;

  // Rounds `count` numbers (whole blocks), each below `limit`, to nearest.
  virtual void encode(const float *numbers, int64_t count, char *out) const = 0;
  virtual void encode(const double *numbers, int64_t count,
                      char *out) const = 0;

  // Packs at most `panel` rows of `columns` elements, each as a file has it, into
  // panel * rowBytes(columns) bytes, so that what is multiplied at a time stands
  // together; rows that are missing are zero.
  //   floats: [columns][panel]
  //   blocks: [columns/32] of
  //     [panel] f16 scales, [panel] f16 minima if any,
  //     8 bits: [8][panel][4] quants + 128, of elements 4g to 4g+3
  //     4 bits: [4][panel][4] quants, low nibbles of elements 4g to 4g+3, high
  //             nibbles of elements 16+4g to 16+4g+3
  virtual void pack(llvm::ArrayRef<const char *> rows, int64_t columns,
                    char *out) const = 0;

  // The storage called `name`, in small letters, or in capitals as in a file; null
  // where there is none.
  static const Storage *named(llvm::StringRef name);
  static const Storage *namedInFile(llvm::StringRef name);
  // All of them.
  static llvm::ArrayRef<const Storage *> all();

protected:
  Storage(llvm::StringLiteral name, int64_t elements, int64_t bytes,
          std::optional<Quants> quants, double limit, int64_t panel)
      : name(name), elements(elements), bytes(bytes), quants(quants),
        limit(limit), panel(panel) {}
  ~Storage() = default;
};

// The storages that there are; compare addresses.
extern const Storage &f64Storage, &f32Storage, &f16Storage, &bf16Storage;
extern const Storage &q8_0Storage, &q4_0Storage, &q4_1Storage;

} // namespace kvc

#endif // KVC_DIALECT_STORAGE_STORAGE_H
