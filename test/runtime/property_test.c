/* Random operations on the sequences of two sessions against a dense
 * oracle, which knows each sequence's tokens and works logits out from them
 * alone. The cache is poisoned, and a row of the model is NaN when any cell up
 * to it is not as it should be. */
#include "check.h"
#include "fake_model.h"

enum { sessions = 2, most_sequences = 6, room = 64, operations = 12000 };

typedef struct sequence {
  int32_t tokens[room];
  int64_t length;
  int64_t reached; /* length since something was written over, if it was */
} sequence;

typedef struct world {
  kvc_session *session;
  int64_t count; /* of sequences */
  int64_t capacity;
  const fake_shape *shape;
  sequence sequences[most_sequences];
} world;

/* How often each thing happened: all must. */
static struct {
  int64_t appended, refused, forked, truncated, removed, reset, reordered,
      copied, saved, pages_copied, short_of_pages, too_short;
} seen;

static uint64_t random_state;

static int64_t below(int64_t bound) {
  random_state = random_state * 6364136223846793005 + 1442695040888963407;
  return (int64_t)(random_state >> 33) % bound;
}

static kvc_session_info report(const world *w) {
  kvc_session_info info;
  kvc_session_info_init(&info);
  CHECK_OK(kvc_session_query(w->session, &info));
  return info;
}

/* The first position that a sequence holds in the first group. */
static int64_t oldest_of(const world *w, const sequence *s) {
  int64_t slots = w->shape->positions_per_page * w->shape->pages_per_sequence;
  return w->shape->window && s->reached > slots ? s->reached - slots : 0;
}

/* The shortest length but 0 that it can be cut back to. */
static int64_t shortest_of(const world *w, const sequence *s) {
  int64_t oldest = oldest_of(w, s);
  return oldest ? oldest + w->shape->window - 1 : 1;
}

static void cut(const world *w, sequence *s, int64_t length) {
  if (length == 0 || oldest_of(w, s) == 0)
    s->reached = length;
  s->length = length;
}

/* Pages where positions stand, one by one. */
static int64_t pages_of(const world *w, const sequence *s) {
  int64_t per_page = w->shape->positions_per_page, count = 0;
  int64_t pages = w->shape->window ? w->shape->pages_per_sequence : room;
  char used[room] = {0};
  for (int64_t p = oldest_of(w, s); p < s->length; ++p)
    used[p / per_page % pages] = 1;
  for (int64_t i = 0; i < room; ++i)
    count += used[i];
  return count + (w->shape->groups == 2 ? (s->length + 15) / 16 : 0);
}

/* Lengths, tokens and page counts are those of the oracle. */
static void check_world(const world *w) {
  int64_t held = 0, alone = 0, bytes = 0;
  for (int64_t s = 0; s < w->count; ++s) {
    const sequence *expected = &w->sequences[s];
    kvc_sequence_info info;
    kvc_sequence_info_init(&info);
    CHECK_OK(kvc_sequence_query(w->session, s, &info));
    CHECK_EQUAL(info.length, expected->length);
    int32_t tokens[room];
    CHECK_OK(kvc_sequence_tokens(w->session, s, 0, info.length, tokens));
    CHECK(memcmp(tokens, expected->tokens,
                 (size_t)info.length * sizeof *tokens) == 0);
    CHECK_EQUAL(info.pages, pages_of(w, expected));
    CHECK_EQUAL(info.shortest, shortest_of(w, expected));
    int64_t kept = info.length - oldest_of(w, expected);
    CHECK_EQUAL(info.cache_bytes,
                16 * (kept + (w->shape->groups == 2 ? info.length : 0)));
    held += info.pages;
    alone += info.pages - info.shared_pages;
    bytes += info.cache_bytes;
  }
  kvc_session_info info = report(w);
  CHECK_EQUAL(info.cache_bytes, bytes);
  CHECK(alone <= info.live_pages && info.live_pages <= held);
  CHECK(held == alone || info.live_pages < held);
  CHECK(info.partial_pages <= info.live_pages && info.slack_bytes >= 0);
}

/* A chunk's rows are what the oracle says. */
static const double *check_rows(const world *w, const kvc_chunk *chunk,
                                const double *row) {
  const sequence *s = &w->sequences[chunk->sequence];
  for (int64_t i = 0; i < chunk->count; ++i) {
    if (chunk->outputs == KVC_OUTPUTS_NONE ||
        (chunk->outputs == KVC_OUTPUTS_LAST && i < chunk->count - 1))
      continue;
    double expected[fake_vocab];
    fake_expected_row(s->tokens, s->length - chunk->count + i + 1, expected);
    CHECK(memcmp(row, expected, sizeof expected) == 0);
    row += fake_vocab;
  }
  return row;
}

/* Appends to several sequences at once. The call and the plan agree, and the
 * plan's pages are those that come to live. */
static void append(world *w) {
  kvc_chunk chunks[most_sequences];
  int32_t tokens[most_sequences][room];
  double logits[most_sequences * room * fake_vocab];
  int64_t count = 0;
  int fits = 1;
  for (int64_t s = below(w->count); s < w->count && count < 4;
       s += 1 + below(2)) {
    int64_t left = w->capacity - w->sequences[s].length;
    /* Rarely one more than there is room for. */
    int64_t most = left < 8 && below(20) == 0 ? left + 1 : left;
    if (most == 0)
      continue;
    int64_t n = 1 + below(below(4) && most > 5 ? 5 : most);
    fits &= n <= left;
    for (int64_t i = 0; i < n; ++i)
      tokens[count][i] = (int32_t)below(fake_vocab);
    chunks[count] = (kvc_chunk){s, tokens[count], n, (kvc_outputs)below(3)};
    ++count;
  }
  if (count == 0)
    return;
  kvc_plan_info plan;
  kvc_plan_info_init(&plan);
  int64_t live = report(w).live_pages;
  kvc_status status = kvc_plan(w->session, chunks, count, &plan);
  CHECK_EQUAL(report(w).live_pages, live);
  int64_t computed = fake_tokens_computed;
  CHECK_EQUAL(kvc_forward(w->session, chunks, count, logits,
                          most_sequences * room),
              status);
  if (status != KVC_OK) {
    CHECK_EQUAL(status, KVC_OUT_OF_CAPACITY);
    CHECK_EQUAL(fake_tokens_computed, computed);
    CHECK_EQUAL(report(w).live_pages, live);
    ++seen.refused;
    seen.short_of_pages += fits;
    return;
  }
  CHECK(fits);
  CHECK_EQUAL(report(w).live_pages, live + plan.new_pages);
  CHECK_EQUAL(plan.free_pages, report(w).pages - live);
  CHECK_EQUAL(fake_tokens_computed - computed, plan.tokens);
  seen.pages_copied += plan.copied_pages;
  ++seen.appended;
  for (int64_t i = 0; i < count; ++i) {
    sequence *s = &w->sequences[chunks[i].sequence];
    memcpy(s->tokens + s->length, chunks[i].tokens,
           (size_t)chunks[i].count * sizeof(int32_t));
    s->length += chunks[i].count;
    s->reached = s->reached < s->length ? s->length : s->reached;
  }
  const double *row = logits;
  for (int64_t i = 0; i < count; ++i)
    row = check_rows(w, &chunks[i], row);
  CHECK_EQUAL(row - logits, plan.logits_rows * fake_vocab);
}

static void reorder(world *w) {
  int64_t order[most_sequences], count = below(w->count + 1);
  sequence before[most_sequences];
  memcpy(before, w->sequences, sizeof before);
  for (int64_t i = 0; i < count; ++i) {
    order[i] = below(w->count);
    w->sequences[i] = before[order[i]];
  }
  CHECK_OK(kvc_session_reorder(w->session, order, count));
  ++seen.reordered;
}

static void copy(world *from, world *to) {
  int64_t i = below(from->count), j = below(to->count);
  kvc_status status = kvc_sequence_copy(from->session, i, to->session, j);
  if (status == KVC_OK) {
    to->sequences[j] = from->sequences[i];
    ++seen.copied;
  } else {
    CHECK_EQUAL(status, KVC_OUT_OF_CAPACITY);
    ++seen.refused;
  }
}

/* Saves a sequence and restores it to an emptied one of any session. */
static void save(world *from, world *to, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/property.state", folder);
  int64_t i = below(from->count), j = below(to->count);
  CHECK_OK(kvc_sequence_save(from->session, i, path));
  sequence saved = from->sequences[i];
  CHECK_OK(kvc_sequence_remove(to->session, j));
  cut(to, &to->sequences[j], 0);
  kvc_status status = kvc_sequence_restore(to->session, j, path);
  if (status == KVC_OK) {
    to->sequences[j] = saved;
    ++seen.saved;
  } else {
    CHECK_EQUAL(status, KVC_OUT_OF_CAPACITY);
    ++seen.refused;
  }
}

static void step(world *worlds, const char *folder) {
  world *w = &worlds[below(sessions)];
  int64_t i = below(w->count), j = below(w->count), length;
  sequence *s = &w->sequences[i];
  switch (below(16)) {
  default:
    append(w);
    break;
  case 0:
  case 1:
    CHECK_OK(kvc_sequence_fork(w->session, i, j));
    w->sequences[j] = *s;
    ++seen.forked;
    break;
  case 2:
  case 3:
    length = below(s->length + 1);
    if (length && length < shortest_of(w, s)) {
      CHECK_EQUAL(kvc_sequence_truncate(w->session, i, length),
                  KVC_INVALID_ARGUMENT);
      ++seen.too_short;
      break;
    }
    CHECK_OK(kvc_sequence_truncate(w->session, i, length));
    cut(w, s, length);
    ++seen.truncated;
    break;
  case 4:
    cut(w, s, 0);
    CHECK_OK(kvc_sequence_remove(w->session, i));
    ++seen.removed;
    break;
  case 5:
    reorder(w);
    break;
  case 6:
    copy(w, &worlds[below(sessions)]);
    break;
  case 7:
    if (below(8)) /* the disk is slow */
      break;
    save(w, &worlds[below(sessions)], folder);
    break;
  case 8:
    if (below(20))
      break;
    for (int64_t k = 0; k < w->count; ++k)
      cut(w, &w->sequences[k], 0);
    CHECK_OK(kvc_session_reset(w->session));
    CHECK_EQUAL(report(w).live_pages, 0);
    ++seen.reset;
  }
}

static void run(const fake_shape *shape, int64_t pool_pages,
                const char *folder) {
  kvc_library library;
  kvc_model *model = fake_model_open(&library, shape, folder);
  world worlds[sessions] = {{.count = 6, .capacity = shape->capacity},
                            {.count = 4, .capacity = shape->capacity - 9}};
  for (int i = 0; i < sessions; ++i) {
    kvc_session_params params;
    kvc_session_params_init(&params);
    params.sequences = worlds[i].count;
    params.capacity = worlds[i].capacity;
    params.threads = 1 + i;
    params.poison = 1;
    params.pool_pages = i == 0 ? 0 : pool_pages;
    CHECK_OK(kvc_session_create(model, &params, &worlds[i].session));
    worlds[i].shape = shape;
  }
  for (int i = 0; i < operations; ++i) {
    step(worlds, folder);
    for (int k = 0; k < sessions; ++k)
      check_world(&worlds[k]);
  }
  for (int i = 0; i < sessions; ++i) {
    for (int64_t s = 0; s < worlds[i].count; ++s)
      CHECK_OK(kvc_sequence_remove(worlds[i].session, s));
    CHECK_EQUAL(report(&worlds[i]).live_pages, 0);
    kvc_session_destroy(worlds[i].session);
  }
  kvc_model_close(model);
}

void test_property(const char *folder) {
  static const struct {
    fake_shape shape;
    int64_t pool_pages;
  } runs[] = {
      {{60, 60, 11, KVC_TYPE_F64}, 3}, /* contiguous, sliced */
      {{60, 7, 64, KVC_TYPE_F64}, 13}, /* pages that don't divide capacity */
      {{60, 16, 16, KVC_TYPE_F64}, 9}, /* pages as a generated library has */
      {{24, 1, 64, KVC_TYPE_F64}, 30}, /* a page for each position */
      {{60, 7, 64, KVC_TYPE_F64, 10, 4}, 9},  /* a window, sliced */
      {{60, 16, 64, KVC_TYPE_F64, 3, 1}, 3},  /* in a page */
      {{60, 1, 9, KVC_TYPE_F64, 9, 12}, 30},  /* in pages that don't stay */
      {{60, 7, 64, KVC_TYPE_F64, 10, 4, 2}, 9}, /* beside a group without one */
  };
  for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) {
    memset(&seen, 0, sizeof seen);
    random_state = i;
    run(&runs[i].shape, runs[i].pool_pages, folder);
    CHECK(seen.appended > operations / 10 && seen.refused && seen.forked &&
          seen.truncated && seen.removed && seen.reset && seen.reordered &&
          seen.copied && seen.saved && seen.short_of_pages);
    CHECK((seen.pages_copied > 0) ==
          (runs[i].shape.positions_per_page > 1 || runs[i].shape.window > 0));
    CHECK((seen.too_short > 0) == (runs[i].shape.window > 0));
  }
}
