/* compress: a text as what a language model didn't foresee of it.
 *
 *   compress FILE OUT       writes FILE's bytes, compressed, to OUT
 *   compress -d FILE OUT    and back
 *
 * The writer knows the whole text and gives it to the model in chunks. The reader
 * knows what it has read so far, and goes token by token. Both need the same
 * probabilities to the last bit, and have them: the model's logits are the same
 * bits for any chunks, threads and CPU level, and what is made of them here is
 * integer arithmetic. */
#include MODEL_HEADER
#include <errno.h>
#include <kvc/kvc.h>
#include <kvc/tokenizer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(holds, ...)                                                            \
  ((holds) ? (void)0                                                                   \
           : (fputs("error: ", stderr), fprintf(stderr, __VA_ARGS__),                  \
              fputc('\n', stderr), exit(1)))

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count + 1, bytes);
  REQUIRE(memory, "no memory for %zu times %zu bytes", count, bytes);
  return memory;
}

static uint32_t crc32(const unsigned char *data, size_t size) {
  uint32_t crc = ~0u;
  for (size_t bit = 0; bit < 8 * size; ++bit) {
    crc ^= bit % 8 ? 0 : data[bit / 8];
    crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

static kvc_model_info info;
static kvc_session *session;
static kvc_tokenizer *tokenizer;
static const char *path;    /* of the file that is read */
static int32_t chunk = 512; /* tokens forwarded at once */
static int32_t *tokens;     /* one that begins, and then the text's */
static int64_t known = 1;   /* of these */
static unsigned char *rows; /* logits [chunk, vocab] */

static void forward(int64_t first, int64_t count, kvc_outputs outputs) {
  kvc_chunk piece = {0, tokens + first, count, outputs};
  REQUIRE(kvc_forward(session, &piece, 1, rows, chunk) == KVC_OK, "%s",
          kvc_last_error());
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The logits behind the next token: each call goes on by one. The model is given
 * what is known, as far as chunk and context go: the reader's one token or the
 * writer's many. A full context begins again with its last quarter. */
static const void *next_row(void) {
  static int64_t given, cached, row, row_count; /* given: tokens, to the model */
  if (row == row_count) {
    if (cached == info.capacity) {
      REQUIRE(kvc_session_reset(session) == KVC_OK, "%s", kvc_last_error());
      cached = (info.capacity + 3) / 4;
      forward(given - cached, cached, KVC_OUTPUTS_NONE);
    }
    row_count = least(chunk, least(known - given, info.capacity - cached));
    forward(given, row_count, KVC_OUTPUTS_ALL);
    given += row_count;
    cached += row_count;
    row = 0;
  }
  return rows + info.vocab * (info.arithmetic == KVC_TYPE_F64 ? 8 : 4) * row++;
}

/* log2(e) * logit in units of 2^-16. One product is rounded alike by all machines and
 * compilers; exp() of a libm isn't. */
static int64_t exponent(const void *row, int64_t i) {
  double logit = info.arithmetic == KVC_TYPE_F64 ? ((const double *)row)[i]
                                                 : ((const float *)row)[i];
  logit = logit > -10000 ? logit : -10000; /* NaN, too */
  return (int64_t)((logit < 10000 ? logit : 10000) * 94548);
}

/* 1 + 2^28 exp(logit - greatest), where (1 - f/2) / 2^n stands for 2^-(n + f): at most
 * 6 % more, which costs 0.001 bits a token. */
static uint64_t weight(const void *row, int64_t i, int64_t greatest) {
  uint64_t less = (uint64_t)(greatest - exponent(row, i)), n = less >> 16;
  return 1 + (n < 29 ? ((1 << 28) - ((less & 0xffff) << 11)) >> n : 0);
}

/* An interval of fractions, [low, low + range) / 2^64 behind the bytes that are
 * settled: each token narrows it to its share. The reader's low is how far the file's
 * fraction is above the writer's low. */
static int reading;
static uint64_t low, range = UINT64_MAX;
static unsigned char *at, *end; /* the next byte, and where the reader's end */

static void shift(int bytes) {
  for (; bytes; --bytes, ++at) {
    REQUIRE(at != end, "%s: expected the coded tokens to end, but they go on", path);
    if (!reading)
      *at = low >> 56 & 0xff;
    low = low << 8 | (reading ? *at : 0);
  }
}

/* Codes a token, which the reader doesn't know before, and returns it. */
static int32_t code(int32_t token) {
  const void *row = next_row();
  int64_t greatest = exponent(row, 0);
  uint64_t sum = 0, start = 0;
  for (int64_t i = 1; i < info.vocab; ++i)
    greatest = exponent(row, i) > greatest ? exponent(row, i) : greatest;
  for (int64_t i = 0; i < info.vocab; ++i)
    sum += weight(row, i, greatest);
  uint64_t unit = range / sum, there = low / unit < sum ? low / unit : sum - 1;
  int32_t i = 0;
  while (reading ? start + weight(row, i, greatest) <= there : i < token)
    start += weight(row, i++, greatest);
  low += reading ? -(start * unit) : start * unit;
  for (unsigned char *to = at; !reading && low < start * unit && ++*--to == 0;)
    ; /* carried into what is settled */
  for (range = weight(row, i, greatest) * unit; !(range >> 56); range <<= 8)
    shift(1);
  return i;
}

/* A file is this, little-endian as the machine, and the coded tokens. A text that its
 * tokens don't give back byte for byte is stored in their place. */
typedef struct {
  char magic[4];
  uint32_t crc; /* of all that follows */
  uint32_t text_crc, text_bytes;
  uint32_t tokens; /* 0: the text is stored */
  uint8_t identity[KVC_IDENTITY_BYTES];
} file_header;

static void begin_tokens(size_t room) {
  int32_t first = kvc_tokenizer_bos(tokenizer);
  tokens = allocate(1 + room, sizeof *tokens);
  tokens[0] = first < 0 || first >= info.vocab ? 0 : first;
}

/* Whether the tokens give a text of so many bytes; writes it. */
static int decode(int64_t count, unsigned char *text, size_t bytes) {
  int64_t got;
  return kvc_tokenizer_decode(tokenizer, tokens + 1, count, 0, (char *)text,
                              (int64_t)bytes, &got) == KVC_OK &&
         got == (int64_t)bytes;
}

static unsigned char *compress(const unsigned char *text, size_t bytes, size_t *size) {
  size_t room = bytes + 64; /* a token takes 7 bytes at most: its share is over 2^-49 */
  unsigned char *file = allocate(sizeof(file_header) + 8 * room, 1);
  file_header *header = (file_header *)file;
  int64_t count;
  at = file + sizeof *header;
  begin_tokens(room);
  int same = kvc_tokenizer_encode(tokenizer, (const char *)text, (int64_t)bytes, 0, 0,
                                  tokens + 1, (int64_t)room, &count) == KVC_OK &&
             decode(count, at, bytes) && !memcmp(at, text, bytes);
  for (int64_t i = 1; same && i <= count; ++i)
    same = tokens[i] < info.vocab;
  *header = (file_header){"kvz", 0, crc32(text, bytes), (uint32_t)bytes, 0, {0}};
  memcpy(header->identity, info.identity, sizeof info.identity);
  if (same && count > 0) {
    header->tokens = (uint32_t)count;
    known += count;
    for (int64_t i = 1; i < known; ++i)
      code(tokens[i]);
    shift(8);
  } else {
    fprintf(stderr, "%s: stored, since its tokens don't give it back\n", path);
    memcpy(at, text, bytes);
    at += bytes;
  }
  *size = (size_t)(at - file);
  header->crc = crc32(file + 8, *size - 8);
  return file;
}

static unsigned char *decompress(unsigned char *file, size_t size, size_t *bytes) {
  const file_header *header = (const file_header *)file;
  REQUIRE(size >= sizeof *header && !memcmp(header->magic, "kvz", 4),
          "%s: expected a file of compress, but it begins otherwise", path);
  REQUIRE(crc32(file + 8, size - 8) == header->crc,
          "%s: expected CRC-32 %08x, but it is damaged or cut off", path, header->crc);
  REQUIRE(!memcmp(header->identity, info.identity, sizeof info.identity),
          "%s: expected a file by model %s, but another one, or another version of "
          "its numerics, wrote it",
          path, info.name);
  at = file + sizeof *header;
  end = file + size;
  unsigned char *text = at;
  int same = end - at == header->text_bytes;
  if (header->tokens) {
    begin_tokens(header->tokens);
    for (shift(8); known <= header->tokens; ++known)
      tokens[known] = code(0);
    text = allocate(header->text_bytes, 1);
    same = decode(header->tokens, text, header->text_bytes);
  }
  REQUIRE(same && crc32(text, header->text_bytes) == header->text_crc,
          "%s: expected a text with CRC-32 %08x, but another tokenizer wrote it", path,
          header->text_crc);
  *bytes = header->text_bytes;
  return text;
}

static unsigned char *read_file(size_t *size) {
  FILE *file = fopen(path, "rb");
  unsigned char *data = NULL;
  size_t room = *size = 0;
  REQUIRE(file, "%s: %s", path, strerror(errno));
  do {
    data = realloc(data, room += room + (1 << 16));
    REQUIRE(data, "%s: no memory for %zu bytes", path, room);
    *size += fread(data + *size, 1, room - *size, file);
  } while (*size == room);
  REQUIRE(!ferror(file), "%s: %s", path, strerror(errno));
  REQUIRE(*size < 1u << 31, "%s: expected less than 2 GiB, but got more", path);
  fclose(file);
  return data;
}

int main(int argc, char **argv) {
  kvc_model *model = NULL;
  kvc_session_params params;
  int i = 1;
  char more;
  kvc_session_params_init(&params);
  kvc_model_info_init(&info);
  for (; i < argc && *argv[i] == '-'; ++i)
    if (!strcmp(argv[i], "-d"))
      reading = 1;
    else if (sscanf(argv[i], "--threads=%9d%c", &params.threads, &more) != 1 &&
             (sscanf(argv[i], "--chunk=%9d%c", &chunk, &more) != 1 || chunk < 1))
      break;
  REQUIRE(i + 2 == argc,
          "expected [-d] [--threads=N] [--chunk=N] FILE OUT, but got %s there",
          i < argc ? argv[i] : "nothing");
  path = argv[i];
  REQUIRE(kvc_model_open(MODEL_LIBRARY(), MODEL_WEIGHTS, NULL, &model) == KVC_OK &&
              kvc_model_query(model, &info) == KVC_OK &&
              kvc_session_create(model, &params, &session) == KVC_OK,
          "%s", kvc_last_error());
  REQUIRE(kvc_tokenizer_open(MODEL_DIR, &tokenizer) == KVC_OK, "%s",
          kvc_tokenizer_last_error());
  chunk = reading ? 1 : (int32_t)least(chunk, info.capacity);
  rows = allocate((size_t)(chunk * info.vocab), sizeof(double));
  size_t size, out_size;
  unsigned char *from = read_file(&size);
  unsigned char *to =
      reading ? decompress(from, size, &out_size) : compress(from, size, &out_size);
  FILE *out = fopen(argv[i + 1], "wb");
  REQUIRE(out && fwrite(to, 1, out_size, out) == out_size && fclose(out) == 0, "%s: %s",
          argv[i + 1], strerror(errno));
  fprintf(stderr, "%zu bytes -> %zu bytes\n", size, out_size);
  kvc_session_destroy(session);
  kvc_tokenizer_close(tokenizer);
  kvc_model_close(model);
  return 0;
}
