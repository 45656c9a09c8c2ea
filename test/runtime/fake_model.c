#include "fake_model.h"

#include "check.h"

#include <math.h>

_Atomic int64_t fake_rows_computed;
_Atomic int64_t fake_tokens_computed;
_Atomic int64_t fake_calls;
int64_t fake_broken_row = -1;

enum { weights_bytes = 256, workspace_bytes = 4096 };

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 31) * 0x7fb5d329728ea185;
  x = (x ^ x >> 27) * 0x81dadef4bc2dd44d;
  return x ^ x >> 33;
}

static uint64_t key_of(int32_t token, int64_t position) {
  return (uint64_t)position << 32 | (uint32_t)(token + 1);
}

static uint64_t value_of(uint64_t previous, uint64_t key) {
  return mix(previous * 3 + key);
}

static double logit_of(uint64_t value, int64_t id) {
  return (double)(mix(value + (uint64_t)id * 977) >> 40) * 0x1p-22;
}

void fake_expected_row(const int32_t *tokens, int64_t count, double *row) {
  uint64_t value = 0;
  for (int64_t i = 0; i < count; ++i)
    value = value_of(value, key_of(tokens[i], i));
  for (int64_t id = 0; id < fake_vocab; ++id)
    row[id] = logit_of(value, id);
}

/* One call of forward. */
typedef struct call {
  const kvc_library *library;
  char *pool;
  const int64_t *pages;
  const int64_t *lengths;
  const int32_t *tokens;
  const int32_t *sequences;
  const int64_t *outputs;
  void *logits;
  int64_t *positions; /* [n], in the workspace */
} call;

/* Cell of a sequence; a page holds the keys of its positions, then the values.
 */
static uint64_t *cell(const call *c, int64_t group, int64_t sequence,
                      int64_t position, int is_value) {
  int64_t entry = 0, stride = 0;
  for (int64_t i = 0; i < c->library->groups_count; ++i) {
    entry += i < group ? c->library->groups[i].pages_per_sequence : 0;
    stride += c->library->groups[i].pages_per_sequence;
  }
  const kvc_group *g = &c->library->groups[group];
  int64_t per_page = g->positions_per_page;
  entry += position / per_page % g->pages_per_sequence;
  int64_t page = c->pages[sequence * stride + entry];
  CHECK(page >= 0);
  int64_t index = position % per_page + (is_value ? per_page : 0);
  return (uint64_t *)(c->pool + page) + index;
}

/* The floating-point environment is the standard one: the half of the smallest
 * step above 1 rounds to even, and denormals stay. */
static void check_environment(void) {
  volatile double tiny = 0x1p-1074, one = 1;
  CHECK(one + 0x1p-53 == 1 && tiny * 1.5 == 0x1p-1073);
}

static void write_keys(void *context, int64_t begin, int64_t end) {
  const call *c = context;
  check_environment();
  for (int64_t i = begin; i < end; ++i)
    for (int64_t g = 0; g < c->library->groups_count; ++g)
      *cell(c, g, c->sequences[i], c->positions[i], 0) =
          key_of(c->tokens[i], c->positions[i]);
}

static void write_logits(void *context, int64_t begin, int64_t end) {
  const call *c = context;
  check_environment();
  for (int64_t i = begin; i < end; ++i) {
    int64_t row = c->outputs[i], sequence = c->sequences[row];
    uint64_t value = 0;
    int intact = 1;
    for (int64_t g = 0; g < c->library->groups_count; ++g) {
      int64_t window = c->library->groups[g].window;
      int64_t first = window ? c->positions[row] + 1 - window : 0;
      for (int64_t p = first < 0 ? 0 : first; p <= c->positions[row]; ++p) {
        uint64_t key = *cell(c, g, sequence, p, 0);
        uint64_t stored = *cell(c, g, sequence, p, 1);
        intact &= key >> 32 == (uint64_t)p;
        if (p == 0 || p > first)
          intact &= stored == value_of(p ? value : 0, key);
        value = stored;
      }
    }
    intact &= fake_broken_row != fake_rows_computed + i;
    for (int64_t id = 0; id < fake_vocab; ++id) {
      double logit = intact ? logit_of(value, id) : NAN;
      if (c->library->arithmetic == KVC_TYPE_F64)
        ((double *)c->logits)[i * fake_vocab + id] = logit;
      else
        ((float *)c->logits)[i * fake_vocab + id] = (float)logit;
    }
  }
}

/* The library filled last, whose forward is called: a real one has its
 * constants in its code. */
static const kvc_library *current;

static void forward(const kvc_buffer *weights, const kvc_buffer *pool,
                    const kvc_buffer *pages, const kvc_buffer *lengths,
                    const kvc_buffer *tokens, const kvc_buffer *sequences,
                    const kvc_buffer *outputs, const kvc_buffer *logits,
                    const kvc_buffer *workspace, const kvc_executor *executor) {
  const kvc_buffer *all[] = {weights,   pool,    pages,  lengths,  tokens,
                             sequences, outputs, logits, workspace};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    CHECK(all[i]->offset == 0 && all[i]->stride == 1);
  int64_t n = tokens->size, m = outputs->size;
  CHECK(n >= 1 && n <= current->max_tokens && m >= 0 && m <= n);
  CHECK_EQUAL(sequences->size, n);
  CHECK_EQUAL(logits->size, m * fake_vocab);
  CHECK_EQUAL(weights->size, weights_bytes);
  int64_t table = 0;
  for (int64_t i = 0; i < current->groups_count; ++i)
    table += current->groups[i].pages_per_sequence;
  CHECK_EQUAL(pages->size, lengths->size * table);
  CHECK_EQUAL(workspace->size, workspace_bytes + 8 * current->max_tokens);
  CHECK((uintptr_t)workspace->aligned % 64 == 0);
  CHECK((uintptr_t)pool->aligned % 64 == 0);
  for (int i = 0; i < weights_bytes; ++i)
    CHECK_EQUAL(((const uint8_t *)weights->aligned)[i], i);
  check_environment();

  call c = {current,          pool->aligned,   pages->aligned,
            lengths->aligned, tokens->aligned, sequences->aligned,
            outputs->aligned, logits->aligned, workspace->aligned};
  memset(workspace->aligned, 0xa5, (size_t)workspace->size);
  for (int64_t i = 0; i < n; ++i) {
    int together = i > 0 && c.sequences[i] == c.sequences[i - 1];
    c.positions[i] =
        together ? c.positions[i - 1] + 1 : c.lengths[c.sequences[i]];
    for (int64_t j = 0; j < i && !together; ++j)
      CHECK(c.sequences[j] != c.sequences[i]);
    for (int64_t g = 0; g < current->groups_count; ++g) {
      const kvc_group *group = &current->groups[g];
      int64_t slots = group->positions_per_page * group->pages_per_sequence;
      int64_t added = c.positions[i] - c.lengths[c.sequences[i]] + 1;
      CHECK(!group->window || added <= slots - group->window + 1);
    }
  }
  executor->parallel_for(executor, write_keys, &c, n);
  for (int64_t i = 0; i < n; ++i) {
    int64_t sequence = c.sequences[i], p = c.positions[i];
    for (int64_t g = 0; g < current->groups_count; ++g)
      *cell(&c, g, sequence, p, 1) =
          value_of(p ? *cell(&c, g, sequence, p - 1, 1) : 0,
                   *cell(&c, g, sequence, p, 0));
  }
  executor->parallel_for(executor, write_logits, &c, m);
  fake_rows_computed += m;
  fake_tokens_computed += n;
  ++fake_calls;
}

/* Pages that hold their keys, and then their values. */
static void fill_group(kvc_group *group, int64_t capacity, int64_t per_page,
                       int64_t pages, int64_t window, char *layout,
                       kvc_section *sections) {
  sprintf(layout, window ? "ring<%lld>" : "paged<%lld>",
          (long long)(window ? window : per_page));
  sections[0] = (kvc_section){0, 1, 1, 1, 8};
  sections[1] = (kvc_section){8 * per_page, 1, 1, 1, 8};
  *group = (kvc_group){
      .layers = 1,
      .kv_heads = 1,
      .key_width = 1,
      .value_width = 1,
      .type = KVC_TYPE_F64,
      .layout = window || per_page < capacity ? layout : "contiguous",
      .positions_per_page = per_page,
      .pages_per_sequence = pages ? pages : (capacity - 1) / per_page + 1,
      .page_bytes = 16 * per_page,
      .window = window,
      .sections_count = 2,
      .sections = sections,
  };
}

kvc_group *fake_group(const kvc_library *library, int64_t index) {
  return (kvc_group *)(uintptr_t)&library->groups[index];
}

void fake_library_fill(kvc_library *library, const fake_shape *shape) {
  static const kvc_kernels kernels = {"any", "", forward};
  /* Of the libraries that were filled last. */
  static struct {
    kvc_group groups[2];
    kvc_section sections[2][2];
    char layouts[2][32];
  } kept[16], *mine;
  static int filled_before;
  mine = &kept[filled_before++ % 16];
  fill_group(&mine->groups[0], shape->capacity, shape->positions_per_page,
             shape->pages_per_sequence, shape->window, mine->layouts[0],
             mine->sections[0]);
  fill_group(&mine->groups[1], shape->capacity, 16, 0, 0, mine->layouts[1],
             mine->sections[1]);
  kvc_library filled = {
      .abi_version = KVC_ABI_VERSION,
      .struct_size = sizeof(kvc_library),
      .name = "fake",
      .compiler = "by hand",
      .vocab = fake_vocab,
      .width = 1,
      .layers = 1,
      .heads = 1,
      .capacity = shape->capacity,
      .arithmetic = shape->arithmetic,
      .exact = 1,
      .weights_bytes = weights_bytes,
      .max_tokens = shape->max_tokens,
      .workspace_bytes = workspace_bytes + 8 * shape->max_tokens,
      .groups_count = shape->groups ? shape->groups : 1,
      .groups = mine->groups,
      .kernels_count = 1,
      .kernels = &kernels,
  };
  for (int i = 0; i < KVC_IDENTITY_BYTES; ++i)
    filled.identity[i] = (uint8_t)(7 * i + 1);
  *library = filled;
  current = library;
}

void fake_weights_write(const kvc_library *library, const char *path) {
  char header[512];
  int length = sprintf(header, "{\"__metadata__\":{\"format\":\"kvc\","
                               "\"kvc_abi\":\"%d\",\"kvc_identity\":\"",
                       KVC_ABI_VERSION);
  for (int i = 0; i < KVC_IDENTITY_BYTES; ++i)
    length += sprintf(header + length, "%02x", library->identity[i]);
  length +=
      sprintf(header + length, "\"},\"w\":{\"dtype\":\"U8\",\"shape\":[256],"
                               "\"data_offsets\":[0,256]}}");
  while ((length + 8) % 64)
    header[length++] = ' ';
  FILE *file = fopen(path, "wb");
  CHECK(file);
  for (int i = 0; i < 8; ++i)
    fputc((int)((uint64_t)length >> 8 * i & 0xff), file);
  fwrite(header, 1, (size_t)length, file);
  for (int i = 0; i < weights_bytes; ++i)
    fputc(i, file);
  CHECK(fclose(file) == 0);
}
