// The reference lowering, an op's definition a pattern. Each op's stands in the
// file that has the name of its kernel in compiler/cpu.
#ifndef KVC_COMPILER_REFERENCE_PATTERNS_H
#define KVC_COMPILER_REFERENCE_PATTERNS_H

#include "compiler/reference/Emit.h"
#include "mlir/Transforms/DialectConversion.h"

namespace kvc::reference {

// An op that takes a cache and gives the next one: the converter turns it into
// its pool, page table and lengths, and kvc-verify-cache-contract proves that
// nobody reads an older value, so that `update` writes to them.
template <typename Op> struct CachePattern : mlir::OpConversionPattern<Op> {
  using mlir::OpConversionPattern<Op>::OpConversionPattern;
  using Adaptor = typename mlir::OpConversionPattern<Op>::OneToNOpAdaptor;

  virtual void update(Op op, Adaptor adaptor, const CacheBuffers &cache,
                      Emitter &b) const = 0;

  // An update happens in place, and gives the same buffers.
  mlir::LogicalResult
  matchAndRewrite(Op op, Adaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    Emitter b(op.getLoc(), rewriter);
    update(op, adaptor,
           CacheBuffers(op.getCache().getType(), adaptor.getCache()), b);
    rewriter.replaceOpWithMultiple(op, {adaptor.getCache()});
    return mlir::success();
  }
};

void populateActivatePatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateAppendPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateAttendPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateEmbedPatterns(const mlir::TypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
void populateLengthsPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateLinearPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateNormPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populatePositionsPatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns);
void populateRotaryPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateSelectPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);

} // namespace kvc::reference

#endif // KVC_COMPILER_REFERENCE_PATTERNS_H
