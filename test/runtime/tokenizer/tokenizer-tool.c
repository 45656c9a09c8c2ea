/* kvc-tokenizer-tool: the tokenizer library on the command line, for tests.
 *
 *   kvc-tokenizer-tool PATH info
 *   kvc-tokenizer-tool PATH encode [FLAGS] TEXT...   one line of ids per text
 *   kvc-tokenizer-tool PATH encode-file [FLAGS] FILE texts end in a zero byte
 *   kvc-tokenizer-tool PATH decode [FLAGS] ID...
 *   kvc-tokenizer-tool PATH decode-file [FLAGS] FILE lines of ids; each text is
 *                                                    written with a zero byte
 *   kvc-tokenizer-tool PATH stream [FLAGS] ID...     [piece][piece]...
 *   kvc-tokenizer-tool PATH chat [--prompt] (ROLE CONTENT)...
 *   kvc-tokenizer-tool PATH bench FILE
 *   kvc-tokenizer-tool PATH ends                     PATH is a config.json or
 *                                                    generation_config.json
 *
 * FLAGS: --special (add the model's own tokens; in decoding, show special ones)
 * and --parse (special tokens spelled in the text are special).
 */
#define _POSIX_C_SOURCE 200809L

#include "kvc/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int special = 0, parse = 0, prompt = 0;

static int failed(void) {
  fflush(stdout);
  fprintf(stderr, "error: %s\n", kvc_tokenizer_last_error());
  return 1;
}

static void *allocate(int64_t bytes) {
  void *memory = malloc(bytes > 0 ? (size_t)bytes : 1);
  if (!memory) {
    fputs("error: no memory\n", stderr);
    exit(1);
  }
  return memory;
}

static int encode(const kvc_tokenizer *tokenizer, const char *text,
                  int64_t bytes) {
  int64_t count = 0;
  kvc_status status = kvc_tokenizer_encode(tokenizer, text, bytes, special,
                                           parse, NULL, 0, &count);
  if (status != KVC_OK && status != KVC_OUT_OF_CAPACITY)
    return failed();
  int32_t *ids = allocate(count * (int64_t)sizeof *ids);
  if (kvc_tokenizer_encode(tokenizer, text, bytes, special, parse, ids, count,
                           &count) != KVC_OK) {
    free(ids);
    return failed();
  }
  for (int64_t i = 0; i < count; ++i)
    printf(i ? " %" PRId32 : "%" PRId32, ids[i]);
  putchar('\n');
  free(ids);
  return 0;
}

static int decode(const kvc_tokenizer *tokenizer, const int32_t *ids,
                  int64_t count, char end) {
  int64_t bytes = 0;
  kvc_status status =
      kvc_tokenizer_decode(tokenizer, ids, count, !special, NULL, 0, &bytes);
  if (status != KVC_OK && status != KVC_OUT_OF_CAPACITY)
    return failed();
  char *text = allocate(bytes);
  if (kvc_tokenizer_decode(tokenizer, ids, count, !special, text, bytes,
                           &bytes) != KVC_OK) {
    free(text);
    return failed();
  }
  fwrite(text, 1, (size_t)bytes, stdout);
  putchar(end);
  free(text);
  return 0;
}

static int stream(const kvc_tokenizer *tokenizer, const int32_t *ids,
                  int64_t count) {
  kvc_decoder *decoder;
  const char *text;
  int64_t bytes;
  if (kvc_decoder_create(tokenizer, !special, &decoder) != KVC_OK)
    return failed();
  for (int64_t i = 0; i <= count; ++i) {
    kvc_status status = i < count
                            ? kvc_decoder_push(decoder, ids[i], &text, &bytes)
                            : kvc_decoder_finish(decoder, &text, &bytes);
    if (status != KVC_OK) {
      kvc_decoder_destroy(decoder);
      return failed();
    }
    printf("[%.*s]", (int)bytes, text);
  }
  putchar('\n');
  kvc_decoder_destroy(decoder);
  return 0;
}

static int chat(const kvc_tokenizer *tokenizer, char **words, int64_t count) {
  kvc_message *messages = allocate(count / 2 * (int64_t)sizeof *messages);
  for (int64_t i = 0; i < count / 2; ++i) {
    messages[i].role = words[2 * i];
    messages[i].content = words[2 * i + 1];
  }
  char text[4096];
  int64_t bytes = 0;
  kvc_status status = kvc_tokenizer_chat(tokenizer, messages, count / 2, prompt,
                                         text, sizeof text, &bytes);
  free(messages);
  if (status != KVC_OK)
    return failed();
  fwrite(text, 1, (size_t)bytes, stdout);
  return 0;
}

/* The whole file and a zero byte; the caller frees it. */
static char *readFile(const char *path, int64_t *out_bytes) {
  FILE *file = fopen(path, "rb");
  int64_t bytes = 0, room = 1 << 16;
  char *text = allocate(room + 1);
  if (!file) {
    fprintf(stderr, "error: cannot open %s\n", path);
    exit(1);
  }
  for (size_t got;
       (got = fread(text + bytes, 1, (size_t)(room - bytes), file));) {
    bytes += (int64_t)got;
    if (bytes == room) {
      room *= 2;
      text = realloc(text, (size_t)room + 1);
      if (!text)
        exit(1);
    }
  }
  fclose(file);
  text[bytes] = 0;
  *out_bytes = bytes;
  return text;
}

static int encodeFile(const kvc_tokenizer *tokenizer, const char *path) {
  int64_t bytes;
  int result = 0;
  char *file = readFile(path, &bytes);
  for (char *text = file; text < file + bytes; text += strlen(text) + 1)
    result |= encode(tokenizer, text, (int64_t)strlen(text));
  free(file);
  return result;
}

static int decodeFile(const kvc_tokenizer *tokenizer, const char *path) {
  int64_t bytes;
  int result = 0;
  char *file = readFile(path, &bytes);
  int32_t *ids = allocate((bytes + 1) * (int64_t)sizeof *ids);
  for (char *at = file; at < file + bytes;) {
    char *end = strchr(at, '\n');
    int64_t count = 0;
    if (!end)
      end = file + bytes;
    while (at < end)
      ids[count++] = (int32_t)strtol(at, &at, 10);
    result |= decode(tokenizer, ids, count, 0);
    ++at;
  }
  free(ids);
  free(file);
  return result;
}

static int bench(const kvc_tokenizer *tokenizer, const char *path) {
  int64_t bytes, count = 0;
  char *text = readFile(path, &bytes);
  int32_t *ids = allocate((bytes + 2) * (int64_t)sizeof *ids);
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (kvc_tokenizer_encode(tokenizer, text, bytes, 0, 0, ids, bytes + 2,
                             &count) != KVC_OK)
      return failed();
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) +
                     1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    best = seconds < best ? seconds : best;
  }
  printf("%" PRId64 " bytes, %" PRId64 " tokens, %.1f MB/s\n", bytes, count,
         (double)bytes / best / 1e6);
  free(ids);
  free(text);
  return 0;
}

static int ends(const char *path) {
  int32_t ids[8];
  int64_t count = 0;
  if (kvc_tokenizer_read_ends(path, ids, 8, &count) != KVC_OK)
    return failed();
  for (int64_t i = 0; i < count; ++i)
    printf(i ? " %" PRId32 : "%" PRId32, ids[i]);
  putchar('\n');
  return 0;
}

static int run(const kvc_tokenizer *tokenizer, const char *command,
               char **words, int count) {
  int result = 0;
  if (!strcmp(command, "info")) {
    int32_t bos = kvc_tokenizer_bos(tokenizer);
    int32_t eos = kvc_tokenizer_eos(tokenizer);
    int64_t vocab = kvc_tokenizer_vocab(tokenizer);
    printf("vocab %" PRId64 " bos %" PRId32 " eos %" PRId32 " ends", vocab, bos,
           eos);
    for (int32_t id = 0; id < vocab; ++id)
      if (kvc_tokenizer_is_end(tokenizer, id))
        printf(" %" PRId32, id);
    putchar('\n');
    return 0;
  }
  if (!strcmp(command, "encode")) {
    for (int i = 0; i < count; ++i)
      result |= encode(tokenizer, words[i], (int64_t)strlen(words[i]));
    return result;
  }
  if (!strcmp(command, "decode") || !strcmp(command, "stream")) {
    int32_t *ids = allocate(count * (int64_t)sizeof *ids);
    for (int i = 0; i < count; ++i)
      ids[i] = (int32_t)strtol(words[i], NULL, 10);
    result = *command == 'd' ? decode(tokenizer, ids, count, '\n')
                             : stream(tokenizer, ids, count);
    free(ids);
    return result;
  }
  if (!strcmp(command, "chat"))
    return chat(tokenizer, words, count);
  if (count == 1 && !strcmp(command, "encode-file"))
    return encodeFile(tokenizer, words[0]);
  if (count == 1 && !strcmp(command, "decode-file"))
    return decodeFile(tokenizer, words[0]);
  if (count == 1 && !strcmp(command, "bench"))
    return bench(tokenizer, words[0]);
  fprintf(stderr, "error: unknown command %s\n", command);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fputs("usage: kvc-tokenizer-tool PATH COMMAND [FLAGS] [ARGUMENTS]\n",
          stderr);
    return 1;
  }
  int first = 3;
  for (; first < argc && !strncmp(argv[first], "--", 2); ++first) {
    special |= !strcmp(argv[first], "--special");
    parse |= !strcmp(argv[first], "--parse");
    prompt |= !strcmp(argv[first], "--prompt");
  }
  if (!strcmp(argv[2], "ends"))
    return ends(argv[1]);
  kvc_tokenizer *tokenizer;
  if (kvc_tokenizer_open(argv[1], &tokenizer) != KVC_OK)
    return failed();
  fputs(kvc_tokenizer_warnings(tokenizer), stderr);
  int result = run(tokenizer, argv[2], argv + first, argc - first);
  kvc_tokenizer_close(tokenizer);
  return result;
}
