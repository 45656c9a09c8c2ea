//===- HuggingFacePipeline.h - the steps in a tokenizer.json ----*- C++ -*-===//
#ifndef KVC_TOKENIZER_HUGGINGFACEPIPELINE_H
#define KVC_TOKENIZER_HUGGINGFACEPIPELINE_H

#include "Json.h"
#include "Tokenizer.h"

#include <vector>

namespace kvc::tokenizer {

/// Reads `normalizer` and `pre_tokenizer`: `normaliser`, `splitters` and
/// `byteLevel` of the tokenizer. A step that this library does not do is
/// KVC_INCOMPATIBLE.
kvc_status readNormalizer(const JsonField &field, Tokenizer &tokenizer);
kvc_status readPreTokenizer(const JsonField &field, Tokenizer &tokenizer);

/// Reads `decoder`, after the pre-tokenizer and `byteFallback`: `stripSpaces`,
/// and into `decoded` what turns spellings into text.
kvc_status readDecoder(const JsonField &field, Tokenizer &tokenizer,
                       std::vector<NormaliserStep> &decoded);

/// Reads `post_processor`, after the vocabulary: `before`, `after`.
kvc_status readPostProcessor(const JsonField &field, Tokenizer &tokenizer);

} // namespace kvc::tokenizer

#endif // KVC_TOKENIZER_HUGGINGFACEPIPELINE_H
