/* compress: a text as what a language model didn't foresee of it.
 *
 *   compress [options] FILE OUT       writes FILE's bytes, compressed, to OUT
 *   compress -d [options] FILE OUT    and back
 *
 * The writer knows the whole text and gives it to the model in chunks. The reader
 * knows what it has read so far, and goes token by token. Both need the same
 * probabilities to the last bit, and have them: the model's logits are the same
 * bits for any chunks, threads and CPU level, and what is made of them here is
 * integer arithmetic. Numbers in files are little-endian. */
#include MODEL_HEADER
#include <errno.h>
#include <kvc/kvc.h>
#include <kvc/tokenizer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("error: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  exit(1);
}

static void must(kvc_status status, const char *(*message)(void)) {
  if (status != KVC_OK)
    die("%s", message());
}

/* Bytes that become more; 32-bit numbers, too. */
typedef struct {
  unsigned char *data;
  size_t size, room;
} bytes;

static void reserve(bytes *to, size_t room) {
  if (room <= to->room)
    return;
  to->room = room < 2 * to->room ? 2 * to->room : room;
  to->data = realloc(to->data, to->room);
  if (!to->data)
    die("no memory for %zu bytes", to->room);
}

static void append(bytes *to, const void *from, size_t count) {
  reserve(to, to->size + count + 1);
  if (count)
    memcpy(to->data + to->size, from, count);
  to->size += count;
}

static void append_byte(bytes *to, uint64_t byte) {
  append(to, &(unsigned char){byte & 0xff}, 1);
}

static void append_number(bytes *to, uint64_t number, int size) {
  for (int i = 0; i < size; ++i)
    append_byte(to, number >> 8 * i);
}

static uint64_t number_at(const unsigned char *from, int size) {
  uint64_t number = 0;
  while (size)
    number = number << 8 | from[--size];
  return number;
}

static uint32_t crc32(const unsigned char *data, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

/* Arithmetic coder -------------------------------------------------------- */

/* An interval of fractions, [low, low + range) / 2^64 behind the bytes that are
 * settled. Each symbol narrows it to the symbol's share. */
static int reading;
static uint64_t low,
    range = UINT64_MAX; /* reading: low counts from the file's */
static bytes coded;
static const unsigned char *next, *end; /* of the file; 7 zeros follow it */
static int zeros;

static void shift(void) {
  if (reading) {
    if (next == end && ++zeros > 7)
      die("expected the coded events to end, but they go on behind the file's "
          "end");
    low = low << 8 | (next < end ? *next++ : 0);
  } else {
    append_byte(&coded, low >> 56);
    low <<= 8;
  }
}

static void raise_low(uint64_t by) {
  low += by;
  for (size_t i = coded.size; low < by && ++coded.data[--i] == 0;)
    ; /* carried into what is settled */
}

/* Codes one of the symbols with these weights, whose sum is at most 2^48. Returns
 * it; the reader doesn't know it before. */
static int32_t code(const uint32_t *weights, uint64_t sum, int32_t symbol) {
  uint64_t unit = range / sum, start = 0;
  int32_t i = 0;
  if (reading) {
    uint64_t at = low / unit < sum ? low / unit : sum - 1;
    while (start + weights[i] <= at)
      start += weights[i++];
    low -= start * unit;
  } else {
    while (i < symbol)
      start += weights[i++];
    raise_low(start * unit);
  }
  for (range = weights[i] * unit; !(range >> 56); range <<= 8)
    shift();
  return i;
}

/* Model ------------------------------------------------------------------- */

static kvc_model_info info;
static kvc_session *session;
static kvc_tokenizer *tokenizer;
static int64_t chunk = 512, context; /* positions */
static bytes tokens;                 /* i32, a first one and then the text's */
static unsigned char *rows;          /* logits [chunk, vocab] */
static int64_t row_bytes;
static uint32_t *weights; /* [vocab] */

static int64_t token_count(void) {
  return (int64_t)(tokens.size / sizeof(int32_t));
}

static void forward(int64_t first, int64_t count, kvc_outputs outputs) {
  kvc_chunk piece = {0, (int32_t *)tokens.data + first, count, outputs};
  must(kvc_forward(session, &piece, 1, rows,
                   outputs == KVC_OUTPUTS_ALL ? count : 0),
       kvc_last_error);
}

/* The logits behind the next token: each call goes on by one. The model is given
 * what is known, as far as chunk and context go: the reader's one token or the
 * writer's many. A context that is full begins again: with the first token of all
 * and the last quarter of those that it held. */
static const unsigned char *next_row(void) {
  static int64_t given, cached, row,
      row_count; /* given: tokens, to the model */
  if (row == row_count) {
    if (cached == context) {
      must(kvc_session_reset(session), kvc_last_error);
      forward(0, 1, KVC_OUTPUTS_NONE);
      cached = 1 + context / 4;
      if (cached > 1)
        forward(given - context / 4, context / 4, KVC_OUTPUTS_NONE);
    }
    row_count = token_count() - given;
    row_count = row_count < chunk ? row_count : chunk;
    row_count = row_count < context - cached ? row_count : context - cached;
    forward(given, row_count, KVC_OUTPUTS_ALL);
    given += row_count;
    cached += row_count;
    row = 0;
  }
  return rows + row_bytes * row++;
}

/* A logit in units of 2^-16. Scaling by a power of two is exact, and the rest is
 * cut off, so that no machine and no compiler's option gives another number, as
 * exp() of a libm would. */
static int64_t fixed(const unsigned char *row, int64_t i) {
  double logit = info.arithmetic == KVC_TYPE_F64 ? ((const double *)row)[i]
                                                 : ((const float *)row)[i];
  logit = logit > -32768 ? logit : -32768; /* NaN, too */
  return (int64_t)((logit < 32768 ? logit : 32768) * 65536);
}

/* Makes the weights, 1 + 2^28 exp(logit - greatest); returns their sum. With
 * exp(-d) = 2^-(n + f), 2^-f is a polynomial, right to 4e-6; units are 2^-30. */
static uint64_t weigh(const unsigned char *row) {
  int64_t greatest = fixed(row, 0);
  for (int64_t i = 1; i < info.vocab; ++i)
    greatest = fixed(row, i) > greatest ? fixed(row, i) : greatest;
  uint64_t sum = 0;
  for (int64_t i = 0; i < info.vocab; ++i) {
    const uint64_t log2_e = 1549082005;
    uint64_t x = (uint64_t)(greatest - fixed(row, i)) * log2_e >> 16;
    uint64_t n = x >> 30, f = x & ((1 << 30) - 1), y;
    y = 57108570 - (f * 7342532 >> 30);
    y = 257037730 - (f * y >> 30);
    y = 744134529 - (f * y >> 30);
    y = 1073737660 - (f * y >> 30);
    weights[i] = 1 + (uint32_t)(n < 28 ? y >> (2 + n) : 0);
    sum += weights[i];
  }
  return sum;
}

/* Text -------------------------------------------------------------------- */

/* A text is runs of tokens and bytes between them: those that tokens don't give
 * back, since they are no UTF-8, or normalised, or unknown to the tokenizer. An
 * event is a token, or else -1 - byte, or -1 - 256 between run and run. */
enum { boundary = 256 };

/* Codes an event: whether it is a token, as it mostly is behind one; and which. */
static int32_t code_event(int32_t event) {
  static const uint32_t behind_token[] = {4095, 1}, behind_byte[] = {1, 1};
  static int behind; /* the last event was a byte */
  uint32_t equal[boundary + 1];
  for (int i = 0; i <= boundary; ++i)
    equal[i] = 1;
  behind =
      code(behind ? behind_byte : behind_token, behind ? 2 : 4096, event < 0);
  if (behind)
    return -1 - code(equal, boundary + 1, -1 - event);
  uint64_t sum = weigh(next_row());
  return code(weights, sum, event);
}

/* The text of tokens, as a run. */
static kvc_status decode(const int32_t *run, int64_t count, bytes *text) {
  int64_t size;
  kvc_status status;
  while ((status = kvc_tokenizer_decode(tokenizer, run, count, 0,
                                        (char *)text->data, (int64_t)text->room,
                                        &size)) == KVC_OUT_OF_CAPACITY)
    reserve(text, (size_t)size);
  text->size = (size_t)size;
  return status;
}

/* Appends the events of text[0..size): one run if its tokens give it back, or else
 * those of its halves, down to bytes. */
static void make_events(bytes *events, const char *text, int64_t size) {
  static bytes run, again;
  int64_t count, good = 0, half = size / 2;
  kvc_status status;
  while ((status = kvc_tokenizer_encode(tokenizer, text, size, 0, 0,
                                        (int32_t *)run.data,
                                        (int64_t)(run.room / sizeof(int32_t)),
                                        &count)) == KVC_OUT_OF_CAPACITY)
    reserve(&run, (size_t)count * sizeof(int32_t));
  const int32_t *ids = (const int32_t *)run.data;
  while (status == KVC_OK && good < count && ids[good] < info.vocab)
    ++good;
  if (status == KVC_OK && good == count &&
      decode(ids, count, &again) == KVC_OK && again.size == (size_t)size &&
      !memcmp(again.data, text, again.size)) {
    if (events->size &&
        number_at(events->data + events->size - 4, 4) >> 31 == 0)
      append_number(events, (uint64_t)(-1 - boundary), 4);
    append(events, ids, (size_t)count * sizeof(int32_t));
  } else if (size == 1) {
    append_number(events, (uint64_t)(-1 - (unsigned char)*text), 4);
  } else {
    while (half > 1 && (text[half] & 0xc0) == 0x80)
      --half; /* to the beginning of a character */
    make_events(events, text, half);
    make_events(events, text + half, size - half);
  }
}

/* Files ------------------------------------------------------------------- */

static const char magic[] = {'k', 'v', 'c', 'z', 1};
enum { header_bytes = sizeof magic + KVC_IDENTITY_BYTES + 4 + 8 + 4 };

static void open_session(const kvc_model *model, kvc_session_params *params) {
  int32_t first = kvc_tokenizer_bos(tokenizer);
  first = first < 0 ? kvc_tokenizer_eos(tokenizer) : first;
  append(&tokens, &(int32_t){first < info.vocab && first > 0 ? first : 0}, 4);
  chunk = reading ? 1 : chunk < context ? chunk : context;
  row_bytes = info.vocab * (info.arithmetic == KVC_TYPE_F64 ? 8 : 4);
  rows = malloc((size_t)(chunk * row_bytes));
  weights = malloc((size_t)info.vocab * sizeof *weights);
  if (!rows || !weights)
    die("no memory for %lld rows of logits", (long long)chunk);
  params->capacity = context;
  must(kvc_session_create(model, params, &session), kvc_last_error);
}

/* magic; the model's identity; context, u32; number of events, u64; the text's
 * CRC-32; the coded events; the CRC-32 of all of these. */
static bytes write_text(const bytes *text, const kvc_model *model,
                        kvc_session_params *params) {
  bytes packed = {0}, events = {0};
  context = info.capacity < UINT32_MAX ? info.capacity : UINT32_MAX;
  open_session(model, params);
  if (text->size)
    make_events(&events, (const char *)text->data, (int64_t)text->size);
  size_t count = events.size / 4;
  const int32_t *event = (const int32_t *)events.data;
  for (size_t i = 0; i < count; ++i)
    if (event[i] >= 0)
      append(&tokens, &event[i], 4);
  for (size_t i = 0; i < count; ++i)
    code_event(event[i]);
  raise_low(((uint64_t)1 << 56) - 1); /* range >= 2^56: one byte says enough */
  shift();
  append(&packed, magic, sizeof magic);
  append(&packed, info.identity, sizeof info.identity);
  append_number(&packed, (uint64_t)context, 4);
  append_number(&packed, count, 8);
  append_number(&packed, crc32(text->data, text->size), 4);
  append(&packed, coded.data, coded.size);
  append_number(&packed, crc32(packed.data, packed.size), 4);
  return packed;
}

static bytes read_text(const char *path, const bytes *packed,
                       const kvc_model *model, kvc_session_params *params) {
  bytes text = {0}, part = {0};
  const unsigned char *at = packed->data;
  if (packed->size < sizeof magic || memcmp(at, magic, sizeof magic))
    die("%s: expected a file that compress wrote, but it begins otherwise",
        path);
  end = at + packed->size - 4;
  if (packed->size < header_bytes + 4 ||
      crc32(at, packed->size - 4) != number_at(end, 4))
    die("%s: expected the checksum of its bytes at the end, but they are "
        "damaged or "
        "cut off",
        path);
  if (memcmp(at += sizeof magic, info.identity, KVC_IDENTITY_BYTES))
    die("%s: expected identity %08llx... (that of model %s), but got "
        "%08llx...: "
        "another model, or numerics version, wrote it",
        path, (unsigned long long)number_at(info.identity, 4), info.name,
        (unsigned long long)number_at(at, 4));
  context = (int64_t)number_at(at += KVC_IDENTITY_BYTES, 4);
  uint64_t count = number_at(at + 4, 8);
  uint32_t checksum = (uint32_t)number_at(at + 12, 4);
  if (context < 2 || context > info.capacity)
    die("%s: expected a context of 2 to %lld positions (the capacity of model "
        "%s), "
        "but got %lld",
        path, (long long)info.capacity, info.name, (long long)context);
  next = at + 16;
  for (int i = 0; i < 8; ++i)
    shift();
  open_session(model, params);
  for (int64_t run = 1; count; --count) { /* run: its first token */
    int32_t event = code_event(0);
    if (event >= 0)
      append(&tokens, &event, 4);
    if (event >= 0 && count > 1)
      continue;
    must(decode((int32_t *)tokens.data + run, token_count() - run, &part),
         kvc_tokenizer_last_error);
    append(&text, part.data, part.size);
    run = token_count();
    if (event < 0 && event != -1 - boundary)
      append_byte(&text, (uint64_t)(-1 - event));
  }
  if (crc32(text.data, text.size) != checksum)
    die("%s: expected a text with CRC-32 %08x, but got %08x: another tokenizer "
        "wrote it",
        path, checksum, crc32(text.data, text.size));
  return text;
}

static void read_file(const char *path, bytes *all) {
  unsigned char part[1 << 16];
  FILE *file = fopen(path, "rb");
  for (size_t got; file && (got = fread(part, 1, sizeof part, file)) != 0;)
    append(all, part, got);
  if (!file || ferror(file))
    die("%s: %s", path, strerror(errno));
  fclose(file);
}

static void write_file(const char *path, const bytes *all) {
  FILE *file = fopen(path, "wb");
  size_t written = file ? fwrite(all->data, 1, all->size, file) : 0;
  if (!file || fclose(file) != 0 || written != all->size)
    die("%s: %s", path, strerror(errno));
}

static int64_t number(const char *name, const char *value, int64_t most) {
  char *stop;
  long long result = strtoll(value, &stop, 10);
  if (stop == value || *stop || result < 1 || result > most)
    die("%s: expected a number from 1 to %lld, but got %s", name,
        (long long)most, value);
  return result;
}

static const char help[] =
    "compress [-d] [options] FILE OUT\n\n"
    "Writes FILE to OUT, compressed by a language model; with -d, back.\n"
    "None of the options changes a bit of OUT:\n"
    "  --threads N   threads (default: one for each CPU)\n"
    "  --cpu LEVEL   one of the library's CPU levels (default: the best)\n"
    "  --chunk N     tokens that the writer forwards at once (default: 512)\n";

int main(int argc, char **argv) {
  kvc_model *model = NULL;
  kvc_session_params params;
  const char *paths[2];
  int path_count = 0;
  bytes from = {0}, to;
  kvc_session_params_init(&params);
  for (int i = 1; i < argc; ++i) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(name, "--help"))
      return fputs(help, stdout) < 0;
    if (!strcmp(name, "-d"))
      reading = 1;
    else if (*name != '-' && path_count < 2)
      paths[path_count++] = name;
    else if (*name != '-')
      die("expected two files, but got %s too", name);
    else if (!value)
      die("%s: expected an option and a value (see --help)", name);
    else if (++i, !strcmp(name, "--cpu"))
      params.cpu_level = value;
    else if (!strcmp(name, "--threads"))
      params.threads = (int32_t)number(name, value, 1024);
    else if (!strcmp(name, "--chunk"))
      chunk = number(name, value, 1 << 20);
    else
      die("unknown option %s (see --help)", name);
  }
  if (path_count < 2)
    die("expected two files (see --help)");
  kvc_model_info_init(&info);
  must(kvc_model_open(MODEL_LIBRARY(), MODEL_WEIGHTS, NULL, &model),
       kvc_last_error);
  must(kvc_model_query(model, &info), kvc_last_error);
  must(kvc_tokenizer_open(MODEL_DIR, &tokenizer), kvc_tokenizer_last_error);
  read_file(paths[0], &from);
  to = reading ? read_text(paths[0], &from, model, &params)
               : write_text(&from, model, &params);
  write_file(paths[1], &to);
  fprintf(stderr, "%zu bytes -> %zu bytes\n", from.size, to.size);
  kvc_session_destroy(session);
  kvc_tokenizer_close(tokenizer);
  kvc_model_close(model);
  return 0;
}
