/* Sequences on pages: what each operation takes and gives back, what is
 * refused, and what the reports say. */
#include "check.h"
#include "fake_model.h"

static const fake_shape paged = {160, 16, 32, KVC_TYPE_F64};
static const int32_t text[160] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7};

static kvc_session *create(const kvc_model *model, int64_t sequences,
                           int64_t capacity, int64_t pool_pages) {
  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = sequences;
  params.capacity = capacity;
  params.threads = 1;
  params.poison = 1;
  params.pool_pages = pool_pages;
  kvc_session *session = NULL;
  CHECK_OK(kvc_session_create(model, &params, &session));
  return session;
}

static kvc_chunk chunk_of(int64_t sequence, int64_t count) {
  return (kvc_chunk){sequence, text, count, KVC_OUTPUTS_NONE};
}

static void append(kvc_session *session, int64_t sequence, int64_t count) {
  kvc_chunk chunk = chunk_of(sequence, count);
  CHECK_OK(kvc_forward(session, &chunk, 1, NULL, 0));
}

static kvc_session_info report(const kvc_session *session) {
  kvc_session_info info;
  kvc_session_info_init(&info);
  CHECK_OK(kvc_session_query(session, &info));
  return info;
}

static kvc_sequence_info query(const kvc_session *session, int64_t sequence) {
  kvc_sequence_info info;
  kvc_sequence_info_init(&info);
  CHECK_OK(kvc_sequence_query(session, sequence, &info));
  return info;
}

static kvc_plan_info plan(kvc_session *session, const kvc_chunk *chunks,
                          int64_t count) {
  kvc_plan_info info;
  kvc_plan_info_init(&info);
  CHECK_OK(kvc_plan(session, chunks, count, &info));
  return info;
}

/* Pages in use are ceil(length / page) at every length, on used pages, too. */
static void takes_pages_one_by_one(const kvc_model *model) {
  kvc_session *session = create(model, 2, 100, 0);
  CHECK_EQUAL(report(session).pages, 14); /* seven for each */
  for (int round = 0; round < 2; ++round) {
    for (int64_t length = 1; length <= 100; ++length) {
      append(session, 1, 1);
      kvc_session_info info = report(session);
      CHECK_EQUAL(info.live_pages, (length + 15) / 16);
      CHECK_EQUAL(info.partial_pages, length % 16 != 0);
      CHECK_EQUAL(info.live_bytes, info.live_pages * 256);
      CHECK_EQUAL(info.slack_bytes, info.live_bytes - length * 16);
      CHECK_EQUAL(query(session, 1).room, 100 - length);
    }
    for (int64_t length = 100; length-- > 0;) {
      CHECK_OK(kvc_sequence_truncate(session, 1, length));
      CHECK_EQUAL(report(session).live_pages, (length + 15) / 16);
    }
  }
  /* Tables twice, ten entries each and three for tokens; six arrays of two; three
   * lists of the pages, and of the two of 64 tokens for each sequence. */
  CHECK_EQUAL(report(session).metadata_bytes,
              8 * (2 * 2 * (10 + 3) + 6 * 2) + 14 * 3 * 8 +
                  4 * (3 * 8 + 64 * 4));
  kvc_session_destroy(session);
}

/* A fork takes nothing. Of three holders of a part-filled page that all append,
 * two copy it, and the plan knows. */
static void copies_when_it_must(const kvc_model *model) {
  kvc_session *session = create(model, 4, 160, 0);
  append(session, 0, 20);
  CHECK_OK(kvc_sequence_fork(session, 0, 1));
  CHECK_OK(kvc_sequence_fork(session, 1, 2));
  CHECK_EQUAL(report(session).live_pages, 2);
  CHECK_EQUAL(query(session, 0).shared_pages, 2);
  CHECK_EQUAL(query(session, 3).pages, 0);
  kvc_chunk chunks[] = {chunk_of(0, 1), chunk_of(1, 20), chunk_of(2, 12)};
  kvc_plan_info one = plan(session, chunks, 1);
  CHECK_EQUAL(one.new_pages, 1);
  CHECK_EQUAL(one.copied_pages, 1);
  kvc_plan_info all = plan(session, chunks, 3);
  CHECK_EQUAL(all.tokens, 33);
  CHECK_EQUAL(all.logits_rows, 0);
  CHECK_EQUAL(all.new_pages, 3); /* two copies, and 20 + 20 needs a third page */
  CHECK_EQUAL(all.copied_pages, 2);
  CHECK_EQUAL(all.free_pages, 38);
  CHECK_EQUAL(report(session).live_pages, 2);
  CHECK_OK(kvc_forward(session, chunks, 3, NULL, 0));
  CHECK_EQUAL(report(session).live_pages, 5);
  for (int64_t s = 0; s < 3; ++s)
    CHECK_EQUAL(query(session, s).shared_pages, 1);
  /* A full page is never copied. */
  CHECK_OK(kvc_sequence_fork(session, 2, 3));
  kvc_chunk full = chunk_of(3, 1);
  CHECK_EQUAL(plan(session, &full, 1).copied_pages, 0);
  CHECK_EQUAL(plan(session, &full, 1).new_pages, 1);
  kvc_session_destroy(session);
}

/* On pages in disorder, a fork cut to any length goes on by positions, and those
 * that share its pages go on as if it were not there. */
static void cuts_forks_anywhere(const fake_shape *shape, const char *folder) {
  enum { length = 48 };
  kvc_library library;
  kvc_model *model = fake_model_open(&library, shape, folder);
  int32_t tokens[2][length + 1], other[length + 1];
  for (int64_t i = 0; i <= length; ++i) {
    tokens[0][i] = (int32_t)(i * 5 % fake_vocab);
    tokens[1][i] = (int32_t)(i * 7 % fake_vocab);
  }
  for (int64_t cut = 0; cut <= length; ++cut) {
    kvc_session *session = create(model, 3, 160, 0);
    for (int64_t i = 0; i < length; i += 4) /* their pages take turns */
      for (int64_t s = 0; s < 2; ++s) {
        kvc_chunk chunk = {s, tokens[s] + i, 4, KVC_OUTPUTS_NONE};
        CHECK_OK(kvc_forward(session, &chunk, 1, NULL, 0));
      }
    CHECK_OK(kvc_sequence_fork(session, 0, 2));
    CHECK_OK(kvc_sequence_truncate(session, 2, cut));
    CHECK_EQUAL(query(session, 2).length, cut);
    memcpy(other, tokens[0], sizeof other);
    other[cut] = 18;
    double rows[3][fake_vocab], expected[fake_vocab];
    kvc_chunk chunks[] = {{2, other + cut, 1, KVC_OUTPUTS_LAST},
                          {0, tokens[0] + length, 1, KVC_OUTPUTS_LAST},
                          {1, tokens[1] + length, 1, KVC_OUTPUTS_LAST}};
    CHECK_OK(kvc_forward(session, chunks, 3, rows, 3));
    fake_expected_row(other, cut + 1, expected);
    CHECK(memcmp(rows[0], expected, sizeof expected) == 0);
    for (int64_t s = 0; s < 2; ++s) {
      fake_expected_row(tokens[s], length + 1, expected);
      CHECK(memcmp(rows[1 + s], expected, sizeof expected) == 0);
    }
    kvc_session_destroy(session);
  }
  kvc_model_close(model);
}

/* The pool runs short: the call is refused whole, and goes on when there are
 * pages again. */
static void runs_short(const kvc_model *model) {
  kvc_session *session = create(model, 3, 160, 4);
  append(session, 0, 40);
  CHECK_OK(kvc_sequence_fork(session, 0, 1));
  CHECK_EQUAL(query(session, 0).room, 8);
  kvc_chunk chunks[] = {chunk_of(0, 9), chunk_of(2, 1)};
  kvc_plan_info info;
  kvc_plan_info_init(&info);
  info.tokens = -7;
  const char *message = "the pool has 1 of 4 pages free and the call takes 3";
  CHECK_FAILS(kvc_plan(session, chunks, 2, &info), KVC_OUT_OF_CAPACITY,
              message);
  CHECK_EQUAL(info.tokens, -7);
  CHECK_FAILS(kvc_forward(session, chunks, 2, NULL, 0), KVC_OUT_OF_CAPACITY,
              message);
  CHECK_EQUAL(query(session, 0).length, 40);
  CHECK_EQUAL(query(session, 2).length, 0);
  CHECK_EQUAL(report(session).live_pages, 3);
  CHECK_FAILS(kvc_generate(session, 2, text, 10, 8, NULL, NULL, 0, NULL, NULL,
                           NULL, NULL),
              KVC_OUT_OF_CAPACITY,
              "the pool has 1 of 4 pages free and the call takes 2");
  CHECK_OK(kvc_generate(session, 2, text, 10, 7, NULL, NULL, 0, NULL, NULL,
                        NULL, NULL));
  /* No page is left to copy the shared one to. */
  CHECK_EQUAL(query(session, 0).room, 0);
  CHECK_OK(kvc_sequence_remove(session, 1));
  CHECK_EQUAL(query(session, 0).room, 8);
  append(session, 0, 8);
  CHECK_EQUAL(query(session, 0).room, 0);
  CHECK_EQUAL(report(session).live_pages, 4);
  kvc_session_destroy(session);
}

/* A window of 10 in 4 pages of 7: a slice has 19 tokens at most, and what a wrapped
 * append writes to is copied first where it is shared. */
static void keeps_a_window(const char *folder) {
  static const fake_shape shape = {160, 7, 64, KVC_TYPE_F64, 10, 4, 2};
  kvc_library library;
  kvc_model *model = fake_model_open(&library, &shape, folder);
  kvc_session *session = create(model, 3, 160, 0);
  double rows[2][fake_vocab], expected[fake_vocab];
  int64_t calls = fake_calls;
  append(session, 0, 50);
  CHECK_EQUAL(fake_calls - calls, 3);
  /* It holds 22 to 49, and can go on from where 22 is in the window. */
  CHECK_EQUAL(query(session, 0).pages, 4 + 4);
  CHECK_EQUAL(query(session, 0).cache_bytes, (28 + 50) * 16);
  CHECK_EQUAL(query(session, 0).shortest, 31);
  CHECK_EQUAL(report(session).slack_bytes, report(session).live_bytes - 78 * 16);
  CHECK_FAILS(kvc_sequence_truncate(session, 0, 30), KVC_INVALID_ARGUMENT,
              "expected length to be 0 or in 31..50, since sequence 0 has "
              "forgotten what a token before needs, but got 30");
  CHECK_EQUAL(query(session, 0).length, 50);
  CHECK_OK(kvc_sequence_fork(session, 0, 1));
  CHECK_OK(kvc_sequence_truncate(session, 1, 31));
  CHECK_EQUAL(query(session, 1).cache_bytes, (9 + 31) * 16);
  CHECK_EQUAL(query(session, 1).shortest, 31);
  /* Of the window's pages 49 is in the last and 50 in the first; 31 in the first;
   * the other group's pages are filled in part where both go on. */
  kvc_chunk chunks[] = {{0, text + 50, 1, KVC_OUTPUTS_LAST},
                        {1, text + 31, 1, KVC_OUTPUTS_LAST}};
  kvc_plan_info info = plan(session, chunks, 2);
  CHECK_EQUAL(info.copied_pages, 3);
  CHECK_EQUAL(info.new_pages, 3);
  CHECK_OK(kvc_forward(session, chunks, 2, rows, 2));
  fake_expected_row(text, 51, expected);
  CHECK(memcmp(rows[0], expected, sizeof expected) == 0);
  fake_expected_row(text, 32, expected);
  CHECK(memcmp(rows[1], expected, sizeof expected) == 0);

  /* A generation that fails goes back where that can be. */
  fake_broken_row = fake_rows_computed + 2;
  CHECK_EQUAL(kvc_generate(session, 1, text + 32, 5, 9, NULL, NULL, 0, NULL, NULL,
                           NULL, NULL),
              KVC_INVALID_ARGUMENT);
  CHECK_EQUAL(query(session, 1).length, 32);
  fake_broken_row = fake_rows_computed + 2;
  CHECK_EQUAL(kvc_generate(session, 0, text + 51, 25, 9, NULL, NULL, 0, NULL, NULL,
                           NULL, NULL),
              KVC_INVALID_ARGUMENT);
  CHECK_EQUAL(query(session, 0).length, 51 + 25 + 2);
  fake_broken_row = -1;

  /* Emptied, it begins anew. */
  CHECK_OK(kvc_sequence_truncate(session, 0, 0));
  CHECK_EQUAL(query(session, 0).shortest, 1);
  append(session, 0, 20);
  CHECK_OK(kvc_sequence_truncate(session, 0, 3));
  CHECK_EQUAL(query(session, 0).pages, 1 + 1);
  kvc_session_destroy(session);

  /* Each group has a pool of so many pages. */
  session = create(model, 2, 160, 5);
  append(session, 0, 50);
  kvc_chunk chunk = chunk_of(1, 8);
  CHECK_FAILS(kvc_forward(session, &chunk, 1, NULL, 0), KVC_OUT_OF_CAPACITY,
              "the pool of group 0 has 1 of 5 pages free and the call takes 2");
  chunk = chunk_of(0, 31);
  CHECK_FAILS(kvc_forward(session, &chunk, 1, NULL, 0), KVC_OUT_OF_CAPACITY,
              "the pool of group 1 has 1 of 5 pages free and the call takes 2");
  CHECK_EQUAL(query(session, 0).room, 30);
  CHECK_EQUAL(query(session, 1).room, 7);
  kvc_session_destroy(session);
  kvc_model_close(model);
}

static void reorders(const kvc_model *model) {
  kvc_session *session = create(model, 4, 160, 0);
  for (int64_t s = 0; s < 4; ++s)
    append(session, s, 10 * (s + 1));
  const int64_t order[] = {2, 2, 0};
  CHECK_OK(kvc_session_reorder(session, order, 3));
  static const int64_t expected[] = {30, 30, 10, 40};
  for (int64_t s = 0; s < 4; ++s)
    CHECK_EQUAL(query(session, s).length, expected[s]);
  CHECK_EQUAL(report(session).live_pages, 2 + 1 + 3); /* 20 was dropped */
  CHECK_OK(kvc_session_reorder(session, NULL, 0));
  CHECK_FAILS(kvc_session_reorder(session, order, 5), KVC_INVALID_ARGUMENT,
              "expected count to be in 0..4, but got 5");
  CHECK_FAILS(kvc_session_reorder(session, NULL, 1), KVC_INVALID_ARGUMENT,
              "expected order to be given, but got NULL");
  const int64_t wrong[] = {0, 4};
  CHECK_FAILS(kvc_session_reorder(session, wrong, 2), KVC_INVALID_ARGUMENT,
              "expected order[1] to be in 0..3, but got 4");
  CHECK_FAILS(kvc_session_reorder(NULL, wrong, 2), KVC_INVALID_ARGUMENT,
              "expected session to be given, but got NULL");
  CHECK_EQUAL(report(session).live_pages, 6);
  kvc_session_destroy(session);
}

static void refuses(const kvc_model *model) {
  kvc_session *session = create(model, 2, 160, 0);
  append(session, 0, 14);
  int32_t tokens[14];
  CHECK_FAILS(kvc_sequence_fork(session, 0, 2), KVC_INVALID_ARGUMENT,
              "expected sequence to be in 0..1, but got 2");
  CHECK_FAILS(kvc_sequence_fork(session, -1, 0), KVC_INVALID_ARGUMENT,
              "expected sequence to be in 0..1, but got -1");
  CHECK_FAILS(kvc_sequence_remove(session, 2), KVC_INVALID_ARGUMENT,
              "expected sequence to be in 0..1, but got 2");
  CHECK_FAILS(kvc_sequence_tokens(session, 0, 15, 0, tokens),
              KVC_INVALID_ARGUMENT,
              "expected first to be in 0..14 (the length of sequence 0), but "
              "got 15");
  CHECK_FAILS(kvc_sequence_tokens(session, 0, 4, 11, tokens),
              KVC_INVALID_ARGUMENT,
              "expected count to be in 0..10 (the positions of sequence 0 from "
              "4 on), but got 11");
  CHECK_FAILS(kvc_sequence_tokens(session, 0, 0, 1, NULL), KVC_INVALID_ARGUMENT,
              "expected out_tokens to be given, but got NULL");
  CHECK_OK(kvc_sequence_tokens(session, 0, 14, 0, NULL));
  CHECK_OK(kvc_sequence_tokens(session, 0, 2, 12, tokens));
  CHECK(memcmp(tokens, text + 2, 12 * sizeof *tokens) == 0);
  CHECK_FAILS(kvc_sequence_query(session, 0, NULL), KVC_INVALID_ARGUMENT,
              "expected out_info to be given, but got NULL");
  kvc_chunk chunk = chunk_of(0, 1);
  CHECK_FAILS(kvc_plan(session, &chunk, 1, NULL), KVC_INVALID_ARGUMENT,
              "expected out_info to be given, but got NULL");
  CHECK_OK(kvc_sequence_fork(session, 0, 0));
  CHECK_EQUAL(query(session, 0).shared_pages, 0);
  kvc_session_destroy(session);

  kvc_session_params params;
  kvc_session_params_init(&params);
  params.sequences = 3;
  params.capacity = 17;
  session = NULL;
  params.pool_pages = 7;
  CHECK_FAILS(kvc_session_create(model, &params, &session),
              KVC_INVALID_ARGUMENT,
              "expected pool_pages to be in 1..6 (2 for each of 3 sequences), "
              "or 0 for all of them, but got 7");
  params.pool_pages = -1;
  CHECK_FAILS(kvc_session_create(model, &params, &session),
              KVC_INVALID_ARGUMENT,
              "expected pool_pages to be in 1..6 (2 for each of 3 sequences), "
              "or 0 for all of them, but got -1");
  CHECK(session == NULL);
}

/* Between sessions: only of one model, and only when there is room. */
static void copies_between_sessions(const char *folder) {
  kvc_library library, other_library;
  kvc_model *model = fake_model_open(&library, &paged, folder);
  kvc_session *from = create(model, 1, 160, 0);
  kvc_session *to = create(model, 2, 50, 4);
  append(from, 0, 51);
  append(to, 0, 40);
  append(to, 1, 5);
  CHECK_FAILS(kvc_sequence_copy(from, 0, to, 0), KVC_OUT_OF_CAPACITY,
              "sequence 0 of to_session has 50 positions and the copy takes "
              "51");
  CHECK_OK(kvc_sequence_truncate(from, 0, 50));
  CHECK_FAILS(kvc_sequence_copy(from, 0, to, 0), KVC_OUT_OF_CAPACITY,
              "the pool of to_session has 3 of 4 pages for sequence 0 and the "
              "copy takes 4");
  CHECK_EQUAL(query(to, 0).length, 40);
  CHECK_OK(kvc_sequence_remove(to, 1));
  CHECK_OK(kvc_sequence_copy(from, 0, to, 0));
  CHECK_EQUAL(query(to, 0).length, 50);
  CHECK_EQUAL(query(to, 0).room, 0);
  CHECK_OK(kvc_sequence_copy(to, 0, to, 1));
  CHECK_EQUAL(report(to).live_pages, 4);

  fake_library_fill(&other_library, &paged);
  other_library.identity[7] ^= 0xff;
  char path[4096];
  snprintf(path, sizeof path, "%s/other.safetensors", folder);
  fake_weights_write(&other_library, path);
  kvc_model *other_model = NULL;
  CHECK_OK(kvc_model_open(&other_library, path, NULL, &other_model));
  kvc_session *stranger = create(other_model, 1, 0, 0);
  CHECK_FAILS(kvc_sequence_copy(from, 0, stranger, 0), KVC_INCOMPATIBLE,
              "expected to_session to be of a model with identity "
              "01080f161d242b32... (that of from_session), but got "
              "01080f161d242bcd...");
  CHECK_EQUAL(query(stranger, 0).length, 0);
  kvc_session_destroy(stranger);
  kvc_session_destroy(from);
  kvc_session_destroy(to);
  kvc_model_close(other_model);
  kvc_model_close(model);
}

void test_sequences(const char *folder) {
  kvc_library library;
  static const fake_shape contiguous = {160, 160, 32, KVC_TYPE_F64};
  cuts_forks_anywhere(&contiguous, folder);
  cuts_forks_anywhere(&paged, folder);
  copies_between_sessions(folder);
  keeps_a_window(folder);
  kvc_model *model = fake_model_open(&library, &paged, folder);
  takes_pages_one_by_one(model);
  copies_when_it_must(model);
  runs_short(model);
  reorders(model);
  refuses(model);
  kvc_model_close(model);
}
