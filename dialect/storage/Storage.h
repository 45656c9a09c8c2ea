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

// What a storage of blocks holds in place of floats: quants, whole numbers from 0.
// Of a block an element is
//   scale * (quant - zero) + minimum
// with an f16 scale (and minimum), or, where the block has sub-blocks,
//   scale * subScale * (quant - zero) - minimum * subMinimum.
struct Quants {
  int64_t bits; // 8, 6, 5 or 4
  int64_t zero;
  bool hasMinimum;
  // Elements that share a factor: 32, or 16 of a block of 256.
  int64_t subBlock = 32;
  bool hasSubScales = false; // of a byte each, the minima's unsigned
};

// What inputs of a product may be rounded to, if a program says so: bytes, 32 with one
// scale, or bf16.
enum class Rounding { None, Bytes, BF16 };

// Where the parts of a packed block stand, in bytes: of `panel` rows that stand
// together, the first of each part from here on, in this order.
struct BlockLayout {
  int64_t minimum; // behind the scales: f16 [panel], if any
  int64_t scales;  // of sub-blocks, if any: i8 [sub-blocks][panel]
  int64_t minima;  // of sub-blocks, if any: u8 [sub-blocks][panel]
  // For each 32 elements, of which word g is the four from 4g on:
  //   8 bits: [8][panel][4]
  //   fewer:  [4][panel][4], word g in low nibbles, word g + 4 in high ones; then
  //   5 bits: [panel][4]: bit g of a byte is the upper one of word g
  //   6 bits: [2][panel][4]: bits 2 (g mod 4) of byte g / 4 are word g's upper two
  int64_t quants;
  int64_t upper;        // from a 32's quants on
  int64_t quantsStride; // from one 32's to the next one's
  int64_t bytes;        // of the block
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
  // Of inputs that are multiplied with it.
  const Rounding rounding;
  // The smallest magnitude that rounding makes infinite.
  const double limit;
  // Rows that stand together in a matrix that is packed for vectors.
  const int64_t panel;

  // A row's bytes in a file; its columns are whole blocks.
  int64_t rowBytes(int64_t columns) const { return columns / elements * bytes; }

  // Reads `count` elements (whole blocks) that start at `data`, which need not
  // be aligned. Those of blocks are rounded to f32 as their format defines them;
  // f32 holds all but f64's exactly.
  virtual void decode(const char *data, int64_t count, float *out) const = 0;
  virtual void decode(const char *data, int64_t count, double *out) const = 0;

  // Whether numbers can be rounded to it.
  bool encodes() const { return elements <= 32; }
  // Rounds `count` numbers (whole blocks), each below `limit`, to nearest.
  virtual void encode(const float *numbers, int64_t count, char *out) const = 0;
  virtual void encode(const double *numbers, int64_t count,
                      char *out) const = 0;

  // Where the parts of a block stand in panels of `panel` rows.
  BlockLayout blockLayout(int64_t panel) const;
  // A packed row's bytes.
  int64_t packedRowBytes(int64_t columns) const {
    return columns / elements * (quants ? blockLayout(1).bytes : bytes);
  }
  // Packs at most `panel` rows of `columns` elements, each as a file has it, into
  // panel * packedRowBytes(columns) bytes, so that what is multiplied at a time
  // stands together; rows that are missing are zero.
  //   floats: [columns][panel]
  //   blocks: [columns / elements] of BlockLayout
  virtual void pack(llvm::ArrayRef<const char *> rows, int64_t columns,
                    int64_t panel, char *out) const = 0;

  // The storage called `name`, in small letters, or in capitals as in a file; null
  // where there is none.
  static const Storage *named(llvm::StringRef name);
  static const Storage *namedInFile(llvm::StringRef name);
  // All of them.
  static llvm::ArrayRef<const Storage *> all();

protected:
  Storage(llvm::StringLiteral name, int64_t elements, int64_t bytes,
          std::optional<Quants> quants, Rounding rounding, double limit,
          int64_t panel)
      : name(name), elements(elements), bytes(bytes), quants(quants),
        rounding(rounding), limit(limit), panel(panel) {}
  ~Storage() = default;
};

// The storages that there are; compare addresses.
extern const Storage &f64Storage, &f32Storage, &f16Storage, &bf16Storage;
extern const Storage &q8_0Storage, &q4_0Storage, &q4_1Storage, &q5_0Storage,
    &q5_1Storage, &q4_kStorage, &q5_kStorage, &q6_kStorage;

} // namespace kvc

#endif // KVC_DIALECT_STORAGE_STORAGE_H
