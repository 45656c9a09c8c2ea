#include "Decode.h"
#include "Error.h"
#include "MappedFile.h"
#include "Tokenizer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

using namespace kvc::tokenizer;

struct kvc_decoder {
  Decoder decoder;
  std::string text; ///< what the last call gave
};

static kvc_status nullArgument(const char *function, const char *argument) {
  return fail(KVC_INVALID_ARGUMENT, "%s: expected %s, but got NULL", function,
              argument);
}

#define KVC_REQUIRE(argument)                                                  \
  if (!(argument))                                                             \
  return nullArgument(__func__, #argument)

// `count` elements of `array`: neither negative nor missing.
static kvc_status checkArray(const char *function, const char *name,
                             const void *array, int64_t count) {
  if (count < 0)
    return fail(KVC_INVALID_ARGUMENT,
                "%s: expected the length of %s to be 0 or more, but got %lld",
                function, name, static_cast<long long>(count));
  return !array && count != 0 ? nullArgument(function, name) : KVC_OK;
}

// Gives a result to the caller: all of it, or only the room it needs.
template <typename Result, typename Element>
static kvc_status give(const char *function, const Result &result, Element *out,
                       int64_t room, int64_t *outCount) {
  *outCount = static_cast<int64_t>(result.size());
  if (*outCount > room)
    return fail(KVC_OUT_OF_CAPACITY, "%s: expected room for %lld, but got %lld",
                function, static_cast<long long>(*outCount),
                static_cast<long long>(room));
  std::copy(result.begin(), result.end(), out);
  return KVC_OK;
}

static kvc_status load(const std::string &path, Tokenizer &tokenizer) {
  if (isDirectory(path)) {
    std::string json = path + "/tokenizer.json";
    std::string gguf = path + "/tokenizer.gguf";
    if (fileExists(json))
      return loadHuggingFace(json, tokenizer);
    if (fileExists(gguf))
      return loadGguf(gguf, tokenizer);
    return fail(KVC_IO,
                "%s: expected tokenizer.json or tokenizer.gguf in the "
                "directory, but it has neither",
                path.c_str());
  }
  MappedFile file;
  KVC_TRY(file.open(path));
  return file.bytes().substr(0, 4) == "GGUF" ? loadGguf(path, tokenizer)
                                             : loadHuggingFace(path, tokenizer);
}

kvc_status kvc_tokenizer_open(const char *path, kvc_tokenizer **out_tokenizer) {
  KVC_REQUIRE(out_tokenizer);
  *out_tokenizer = nullptr;
  KVC_REQUIRE(path);
  std::unique_ptr<kvc_tokenizer> tokenizer(new (std::nothrow) kvc_tokenizer);
  if (!tokenizer)
    return fail(KVC_OUT_OF_MEMORY, "no memory for a tokenizer");
  KVC_TRY(load(path, *tokenizer));
  *out_tokenizer = tokenizer.release();
  return KVC_OK;
}

void kvc_tokenizer_close(kvc_tokenizer *tokenizer) { delete tokenizer; }

const char *kvc_tokenizer_last_error(void) { return lastError(); }

const char *kvc_tokenizer_warnings(const kvc_tokenizer *tokenizer) {
  return tokenizer ? tokenizer->warnings.c_str() : "";
}

int64_t kvc_tokenizer_vocab(const kvc_tokenizer *tokenizer) {
  return tokenizer ? static_cast<int64_t>(tokenizer->tokens.size()) : 0;
}

int32_t kvc_tokenizer_bos(const kvc_tokenizer *tokenizer) {
  return tokenizer ? tokenizer->bos : -1;
}

int32_t kvc_tokenizer_eos(const kvc_tokenizer *tokenizer) {
  return tokenizer ? tokenizer->eos : -1;
}

int kvc_tokenizer_is_end(const kvc_tokenizer *tokenizer, int32_t token) {
  if (!tokenizer)
    return 0;
  const std::vector<int32_t> &ends = tokenizer->ends;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

kvc_status kvc_tokenizer_read_ends(const char *path, int32_t *out_tokens,
                                   int64_t room, int64_t *out_count) {
  KVC_REQUIRE(path);
  KVC_REQUIRE(out_count);
  KVC_TRY(checkArray(__func__, "out_tokens", out_tokens, room));
  std::vector<int32_t> ends;
  KVC_TRY(readEnds(path, ends));
  return give(__func__, ends, out_tokens, room, out_count);
}

kvc_status kvc_tokenizer_encode(const kvc_tokenizer *tokenizer,
                                const char *text, int64_t bytes,
                                int add_special, int parse_special,
                                int32_t *out_tokens, int64_t room,
                                int64_t *out_count) {
  KVC_REQUIRE(tokenizer);
  KVC_REQUIRE(out_count);
  KVC_TRY(checkArray(__func__, "text", text, bytes));
  KVC_TRY(checkArray(__func__, "out_tokens", out_tokens, room));
  std::vector<int32_t> ids;
  KVC_TRY(encode(*tokenizer, {text, static_cast<size_t>(bytes)},
                 add_special != 0, parse_special != 0, ids));
  return give(__func__, ids, out_tokens, room, out_count);
}

kvc_status kvc_tokenizer_decode(const kvc_tokenizer *tokenizer,
                                const int32_t *tokens, int64_t count,
                                int skip_special, char *out_text, int64_t room,
                                int64_t *out_bytes) {
  KVC_REQUIRE(tokenizer);
  KVC_REQUIRE(out_bytes);
  KVC_TRY(checkArray(__func__, "tokens", tokens, count));
  KVC_TRY(checkArray(__func__, "out_text", out_text, room));
  Decoder decoder(*tokenizer, skip_special != 0);
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    KVC_TRY(decoder.push(tokens[i], text));
  decoder.finish(text);
  return give(__func__, text, out_text, room, out_bytes);
}

kvc_status kvc_decoder_create(const kvc_tokenizer *tokenizer, int skip_special,
                              kvc_decoder **out_decoder) {
  KVC_REQUIRE(out_decoder);
  *out_decoder = nullptr;
  KVC_REQUIRE(tokenizer);
  *out_decoder = new (std::nothrow)
      kvc_decoder{Decoder(*tokenizer, skip_special != 0), std::string()};
  return *out_decoder ? KVC_OK
                      : fail(KVC_OUT_OF_MEMORY, "no memory for a decoder");
}

void kvc_decoder_destroy(kvc_decoder *decoder) { delete decoder; }

static void giveText(const kvc_decoder &decoder, const char **outText,
                     int64_t *outBytes) {
  *outText = decoder.text.data();
  *outBytes = static_cast<int64_t>(decoder.text.size());
}

kvc_status kvc_decoder_push(kvc_decoder *decoder, int32_t token,
                            const char **out_text, int64_t *out_bytes) {
  KVC_REQUIRE(decoder);
  KVC_REQUIRE(out_text);
  KVC_REQUIRE(out_bytes);
  decoder->text.clear();
  KVC_TRY(decoder->decoder.push(token, decoder->text));
  giveText(*decoder, out_text, out_bytes);
  return KVC_OK;
}

kvc_status kvc_decoder_finish(kvc_decoder *decoder, const char **out_text,
                              int64_t *out_bytes) {
  KVC_REQUIRE(decoder);
  KVC_REQUIRE(out_text);
  KVC_REQUIRE(out_bytes);
  decoder->text.clear();
  decoder->decoder.finish(decoder->text);
  giveText(*decoder, out_text, out_bytes);
  return KVC_OK;
}

kvc_status kvc_tokenizer_chat(const kvc_tokenizer *tokenizer,
                              const kvc_message *messages, int64_t count,
                              int add_generation_prompt, char *out_text,
                              int64_t room, int64_t *out_bytes) {
  KVC_REQUIRE(tokenizer);
  KVC_REQUIRE(out_bytes);
  KVC_TRY(checkArray(__func__, "messages", messages, count));
  KVC_TRY(checkArray(__func__, "out_text", out_text, room));
  std::string text;
  KVC_TRY(renderChat(*tokenizer, messages, count, add_generation_prompt != 0,
                     text));
  return give(__func__, text, out_text, room, out_bytes);
}
