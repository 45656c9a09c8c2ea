/* The lesson's checks on the lesson's decoder (story.json): a cache changes
 * nothing but the work. Two sequences of 17 tokens stand for its batch. */
#include "story.h"

#include <kvc/kvc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { vocab = 19, batch = 2, length = 17, prompt = 5, count = 12 };

/* logits: [batch, length, vocab] */
typedef double logits_array[batch][length][vocab];

static int32_t ids[batch][length];

static void check(kvc_status status) {
  if (status == KVC_OK)
    return;
  fprintf(stderr, "error: %s\n", kvc_last_error());
  exit(1);
}

static void expect(int holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "failed: %s\n", what);
  exit(1);
}

/* Ids from a linear congruential generator. */
static void draw_ids(void) {
  uint32_t state = 42;
  for (int b = 0; b < batch; ++b)
    for (int t = 0; t < length; ++t) {
      state = state * 1664525 + 1013904223;
      ids[b][t] = (int32_t)((state >> 16) % vocab);
    }
}

/* Appends tokens [begin, end) of both sequences, in one call. Positions come
 * from the lengths of the sequences; no argument could get them wrong. */
static void forward(kvc_session *session, int begin, int end,
                    logits_array logits) {
  double rows[batch * length][vocab];
  kvc_chunk chunks[batch];
  for (int b = 0; b < batch; ++b)
    chunks[b] = (kvc_chunk){b, &ids[b][begin], end - begin, KVC_OUTPUTS_ALL};
  check(kvc_forward(session, chunks, batch, rows, batch * (end - begin)));
  for (int b = 0; b < batch; ++b)
    memcpy(logits[b][begin], rows[b * (end - begin)],
           sizeof rows[0] * (size_t)(end - begin));
}

static void chunks_equal_full_prefix(kvc_session *session) {
  static logits_array full, chunked;
  static const int bounds[][2] = {{0, 5}, {5, 8}, {8, 9}, {9, 17}};
  check(kvc_session_reset(session));
  forward(session, 0, length, full);
  check(kvc_session_reset(session));
  for (int i = 0; i < 4; ++i)
    forward(session, bounds[i][0], bounds[i][1], chunked);
  expect(memcmp(full, chunked, sizeof full) == 0,
         "chunks give the bits of the full prefix");
  for (int b = 0; b < batch; ++b) {
    int64_t cached;
    check(kvc_sequence_length(session, b, &cached));
    expect(cached == length, "each sequence holds what was forwarded");
  }
}

/* The whole prefix again for every token. */
static void generate_without_cache(kvc_session *session, int b, int32_t *out) {
  int32_t all[prompt + count];
  memcpy(all, ids[b], sizeof all[0] * prompt);
  for (int i = 0; i < count; ++i) {
    double row[vocab];
    kvc_chunk chunk = {b, all, prompt + i, KVC_OUTPUTS_LAST};
    check(kvc_sequence_truncate(session, b, 0));
    check(kvc_forward(session, &chunk, 1, row, 1));
    int32_t best = 0;
    for (int32_t id = 1; id < vocab; ++id)
      best = row[id] > row[best] ? id : best;
    all[prompt + i] = out[i] = best;
  }
}

static void generation_agrees(kvc_session *session) {
  for (int b = 0; b < batch; ++b) {
    int32_t cached[count], full[count];
    int64_t made;
    check(kvc_session_reset(session));
    check(kvc_generate(session, b, ids[b], prompt, count, NULL, NULL, 0, NULL,
                       NULL, cached, &made));
    expect(made == count, "as many tokens as were asked for");
    generate_without_cache(session, b, full);
    expect(memcmp(cached, full, sizeof full) == 0,
           "greedy ids agree with and without a cache");

    int64_t before, after;
    check(kvc_sequence_length(session, b, &before));
    check(kvc_generate(session, b, ids[b], prompt, 0, NULL, NULL, 0, NULL, NULL,
                       cached, &made));
    check(kvc_sequence_length(session, b, &after));
    expect(made == 0 && before == after,
           "count 0 returns the prompt and forwards nothing");
  }
}

static void capacity_is_kept(kvc_session *session) {
  int64_t capacity, cached;
  static logits_array before, after;
  check(kvc_session_capacity(session, &capacity));
  check(kvc_session_reset(session));
  forward(session, 0, length, before);
  int64_t room = capacity - length;
  int32_t *more = calloc((size_t)room + 1, sizeof *more);
  expect(more != NULL, "memory");
  kvc_chunk chunk = {0, more, room + 1, KVC_OUTPUTS_NONE};
  expect(kvc_forward(session, &chunk, 1, NULL, 0) == KVC_OUT_OF_CAPACITY,
         "one token above capacity is refused");
  check(kvc_sequence_length(session, 0, &cached));
  expect(cached == length, "a refused chunk changes nothing");
  chunk.count = room;
  check(kvc_forward(session, &chunk, 1, NULL, 0));
  check(kvc_session_reset(session));
  forward(session, 0, length, after);
  expect(memcmp(before, after, sizeof before) == 0, "the session goes on");
  free(more);
}

int main(int argc, char **argv) {
  kvc_model *model = NULL;
  kvc_session *session = NULL;
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = batch;
  check(kvc_model_open(story_library(), argc > 1 ? argv[1] : STORY_WEIGHTS,
                       NULL, &model));
  check(kvc_session_create(model, &params, &session));
  draw_ids();
  chunks_equal_full_prefix(session);
  generation_agrees(session);
  capacity_is_kept(session);
  kvc_session_destroy(session);
  kvc_model_close(model);
  printf("cached/full logits, chunked prefill, greedy generation and capacity "
         "control pass\n");
  return 0;
}
