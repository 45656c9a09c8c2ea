// Element types of files, and their reading as numbers.
#ifndef KVC_COMPILER_FRONTEND_DEQUANTIZE_H
#define KVC_COMPILER_FRONTEND_DEQUANTIZE_H

#include <cstdint>

namespace kvc {

enum class ElementType { F64, F32, F16, BF16, Q8_0, Q4_0, Q4_1 };

// Elements stand in blocks of `elements`, each of `bytes`.
struct BlockSize {
  int64_t elements;
  int64_t bytes;
};
BlockSize blockSize(ElementType type);

// Reads `count` elements (whole blocks) that start at `data`, which need not
// be aligned. Quantised values are rounded to f32 as their format defines
// them, also when they are read as f64.
void dequantize(ElementType type, const char *data, int64_t count, float *out);
void dequantize(ElementType type, const char *data, int64_t count, double *out);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_DEQUANTIZE_H
