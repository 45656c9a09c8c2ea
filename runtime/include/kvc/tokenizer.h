/* kvc/tokenizer.h - text to token ids and back.
 *
 * A small library of its own (kvc_tokenizer), beside the core: a program that
 * works in ids links without it. It reads byte-level BPE (GPT-2, Llama 3) and
 * SentencePiece BPE with byte fallback (Llama 2) from Hugging Face's
 * tokenizer.json and from the metadata of GGUF files.
 *
 *   kvc_tokenizer *tokenizer;
 *   if (kvc_tokenizer_open("model-dir", &tokenizer) != KVC_OK)
 *     return puts(kvc_tokenizer_last_error());
 *   int32_t ids[64];
 *   int64_t count;
 *   kvc_tokenizer_encode(tokenizer, "Once upon", 9, 1, 0, ids, 64, &count);
 *   kvc_decoder *decoder;
 *   kvc_decoder_create(tokenizer, 1, &decoder);
 *   for (int64_t i = 0; i < count; ++i) {
 *     const char *text;
 *     int64_t bytes;
 *     kvc_decoder_push(decoder, ids[i], &text, &bytes);
 *     fwrite(text, 1, (size_t)bytes, stdout);
 *   }
 *   kvc_decoder_destroy(decoder);
 *   kvc_tokenizer_close(tokenizer);
 *
 * Text is UTF-8 with a length in bytes; it may hold zero bytes and need not end
 * in one. A tokenizer never changes after it was opened, and any number of
 * threads may use it at once; a decoder belongs to one thread at a time. A call
 * that fails changes nothing but its out parameters where it says so. NULL for
 * a required pointer is KVC_INVALID_ARGUMENT.
 */
#ifndef KVC_TOKENIZER_H
#define KVC_TOKENIZER_H

#include "kvc/kvc.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvc_tokenizer kvc_tokenizer;

/* Opens a tokenizer. `path` is a tokenizer.json, a GGUF file, or a directory
 * that holds tokenizer.json or else tokenizer.gguf; a GGUF file is known by its
 * first bytes. Beside a tokenizer.json, tokenizer_config.json,
 * chat_template.jinja, config.json and generation_config.json are read where
 * they exist.
 * The files are closed again before the call returns. The caller owns
 * *out_tokenizer; it is NULL after an error.
 * Errors: KVC_IO (a file cannot be read or is malformed), KVC_INCOMPATIBLE (it
 * asks for something this library does not do). The message names the file and
 * the field. */
kvc_status kvc_tokenizer_open(const char *path, kvc_tokenizer **out_tokenizer);

/* Frees a tokenizer; NULL is fine. Its decoders must be destroyed first. */
void kvc_tokenizer_close(kvc_tokenizer *tokenizer);

/* The message of the last call of this library that failed on this thread: one
 * sentence, never NULL, valid until the next failing call on this thread. */
const char *kvc_tokenizer_last_error(void);

/* What was set aside in opening and may matter: one sentence a line, empty
 * where there is nothing to say; never NULL. The tokenizer owns it. */
const char *kvc_tokenizer_warnings(const kvc_tokenizer *tokenizer);

/* The number of ids: tokens are 0 to this number less one, not every one of
 * which need have a token. */
int64_t kvc_tokenizer_vocab(const kvc_tokenizer *tokenizer);

/* The token that begins or ends a text, as the model's files name it; -1 where
 * they name none. */
int32_t kvc_tokenizer_bos(const kvc_tokenizer *tokenizer);
int32_t kvc_tokenizer_eos(const kvc_tokenizer *tokenizer);

/* 1 where `token` ends an answer, else 0: the end-of-text token, the
 * end-of-turn tokens that a GGUF file names, special tokens spelled
 * <|im_end|>, <|eot_id|>, <|end_of_text|> or <|endoftext|>, and the
 * eos_token_id of config.json and of generation_config.json. */
int kvc_tokenizer_is_end(const kvc_tokenizer *tokenizer, int32_t token);

/* The tokens that a config.json or generation_config.json ends an answer with,
 * its eos_token_id: for a model whose tokenizer can't be opened.
 *   path        the file
 *   out_tokens  [room]; NULL is fine where room is 0
 *   out_count   the number of tokens, 0 where the file names none
 * Errors: KVC_IO (the file cannot be read or is malformed);
 * KVC_OUT_OF_CAPACITY where the tokens do not fit: *out_count is the room they
 * need, nothing else is written. */
kvc_status kvc_tokenizer_read_ends(const char *path, int32_t *out_tokens,
                                   int64_t room, int64_t *out_count);

/* Text to ids.
 *   text           [bytes], UTF-8; NULL is fine where bytes is 0
 *   add_special    not 0: add the tokens that the model puts around a text
 *   parse_special  not 0: special tokens spelled in the text become their ids;
 *                  0: they are ordinary text. Tokens that the model adds
 *                  without calling them special are recognised either way.
 *   out_tokens     [room]; NULL is fine where room is 0
 *   out_count      the number of ids
 * Errors: KVC_OUT_OF_CAPACITY where the ids do not fit: *out_count is the room
 * they need, nothing else is written. KVC_INVALID_ARGUMENT where the text isn't
 * UTF-8 (no byte is replaced silently), or has a character that the vocabulary
 * can't express and the model names no unknown token. */
kvc_status kvc_tokenizer_encode(const kvc_tokenizer *tokenizer,
                                const char *text, int64_t bytes,
                                int add_special, int parse_special,
                                int32_t *out_tokens, int64_t room,
                                int64_t *out_count);

/* Ids to text, at once: what a new decoder gives for these tokens.
 *   skip_special   not 0: special tokens give no text
 *   out_text       [room] bytes, no zero byte is added; NULL is fine where room
 *                  is 0
 *   out_bytes      the length of the text
 * An id that no token has gives no text: a model's head may have more rows than
 * its tokenizer has tokens.
 * Errors: KVC_OUT_OF_CAPACITY where the text does not fit: *out_bytes is the
 * room it needs, nothing else is written. KVC_INVALID_ARGUMENT: a token is
 * negative. */
kvc_status kvc_tokenizer_decode(const kvc_tokenizer *tokenizer,
                                const int32_t *tokens, int64_t count,
                                int skip_special, char *out_text, int64_t room,
                                int64_t *out_bytes);

/* A decoder turns tokens into text as they come. What it gives is always whole
 * UTF-8 characters: bytes that may begin a character are held back until it is
 * complete, and each longest piece of bytes that can't be one becomes U+FFFD
 * (as Unicode recommends, chapter 3.9). Where the model's own decoder drops the
 * space before the first word, so does this one; to continue a prompt, push the
 * prompt's tokens first and ignore their text. */
typedef struct kvc_decoder kvc_decoder;

/* Creates a decoder; the caller owns it, and keeps the tokenizer open. */
kvc_status kvc_decoder_create(const kvc_tokenizer *tokenizer, int skip_special,
                              kvc_decoder **out_decoder);

/* Frees a decoder; NULL is fine. */
void kvc_decoder_destroy(kvc_decoder *decoder);

/* Adds a token. *out_text, [*out_bytes] bytes and perhaps none, belongs to the
 * decoder and is valid until its next call. KVC_INVALID_ARGUMENT: the token is
 * negative. */
kvc_status kvc_decoder_push(kvc_decoder *decoder, int32_t token,
                            const char **out_text, int64_t *out_bytes);

/* Gives what is still held back (as U+FFFD: it never became a character) and
 * makes the decoder as new. */
kvc_status kvc_decoder_finish(kvc_decoder *decoder, const char **out_text,
                              int64_t *out_bytes);

/* One message of a conversation: both are UTF-8 and end in a zero byte. */
typedef struct kvc_message {
  const char *role; /* "system", "user", "assistant" */
  const char *content;
} kvc_message;

/* Writes a conversation as the text the model was trained on. The templates
 * understood are ChatML's: <|im_start|>role, newline, content, <|im_end|>,
 * newline, for each message, with the template's own system message before the
 * first where it has one and the conversation does not begin with one.
 *   messages               [count]
 *   add_generation_prompt  not 0: begin the assistant's answer
 *   out_text               [room] bytes, no zero byte is added
 *   out_bytes              the length of the text
 * Encode the result with add_special 0 and parse_special 1; special tokens
 * spelled inside a message are then special too, so check what comes from a
 * stranger.
 * Errors: KVC_OUT_OF_CAPACITY as in kvc_tokenizer_decode; KVC_INCOMPATIBLE: the
 * model has no template, or one that is not understood. */
kvc_status kvc_tokenizer_chat(const kvc_tokenizer *tokenizer,
                              const kvc_message *messages, int64_t count,
                              int add_generation_prompt, char *out_text,
                              int64_t room, int64_t *out_bytes);

#ifdef __cplusplus
}
#endif

#endif /* KVC_TOKENIZER_H */
