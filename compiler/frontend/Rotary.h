// Scalings of rotary frequencies, as RotarySpec::divisors.
#ifndef KVC_COMPILER_FRONTEND_ROTARY_H
#define KVC_COMPILER_FRONTEND_ROTARY_H

#include "compiler/frontend/Fields.h"
#include "compiler/frontend/ModelSpec.h"

namespace kvc {

// The "llama3" scaling (Llama 3.1), its parameters named by each format.
struct Llama3Names {
  llvm::StringRef factor, lowFactor, highFactor, originalContext;
};

// Reads the parameters and computes a divisor for each pair of `rotary`, whose
// dims and theta are set. With wavelength w = 2 pi / frequency and t =
// (originalContext / w - low) / (high - low): 1 where t >= 1, factor where
// t <= 0, else 1 / ((1 - t) / factor + t).
void readLlama3Scaling(Fields &fields, const Llama3Names &names,
                       RotarySpec &rotary);

// Fails on an odd number of dims, or more of them than a head has.
void checkRotaryDims(Fields &fields, llvm::StringRef key, int64_t dims,
                     int64_t headDim);

} // namespace kvc

#endif // KVC_COMPILER_FRONTEND_ROTARY_H
