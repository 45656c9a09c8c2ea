// The parts of the reference lowering, an op's definition a pattern.
#ifndef KVC_COMPILER_REFERENCE_PATTERNS_H
#define KVC_COMPILER_REFERENCE_PATTERNS_H

#include "mlir/Transforms/DialectConversion.h"

namespace kvc::reference {

// embed, rms_norm, layer_norm, linear, gated_linear. The first argument of a
// function with such an op is the packed file's data section, memref<?xi8>.
void populateWeightPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
// activate, select, rotary.
void populateRowPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns);
// positions, append, attend, advance, truncate, fork, reorder. The converter
// turns a cache into its pool, page table and lengths.
void populateCachePatterns(const mlir::TypeConverter &converter,
                           mlir::RewritePatternSet &patterns);

} // namespace kvc::reference

#endif // KVC_COMPILER_REFERENCE_PATTERNS_H
