/* A generated library written by hand: the ABI's other side, with a "model"
 * whose logits depend on every cached token of the sequence and on its order.
 * The key of a position holds token and position; its value holds a hash of the
 * previous position's value and of the key. A row of logits is random numbers
 * seeded by the value, or NaN when any cell up to there, or in the window, is not as
 * it should be.
 */
#ifndef KVC_TEST_FAKE_MODEL_H
#define KVC_TEST_FAKE_MODEL_H

#include <kvc/kvc.h>

typedef struct fake_shape {
  int64_t capacity;
  int64_t positions_per_page; /* not a divisor of capacity: fine */
  int64_t max_tokens;
  kvc_type arithmetic;
  /* Where the cache keeps a window: its positions, at least 2, and the pages of a
   * sequence. 0: it keeps all. */
  int64_t window;
  int64_t pages_per_sequence;
  /* 2: a second group holds the same numbers, in as many pages of 16 positions as
   * the capacity needs. 0: there is one group. */
  int64_t groups;
} fake_shape;

enum { fake_vocab = 19 };

/* Fills a library of this shape, one CPU level "any" without demands; models of
 * libraries filled before can no longer be run. */
void fake_library_fill(kvc_library *library, const fake_shape *shape);

/* A group of the library, to be altered. */
kvc_group *fake_group(const kvc_library *library, int64_t index);

/* Writes the packed weights of a library. */
void fake_weights_write(const kvc_library *library, const char *path);

/* Both, and opens the model; the file stands in `folder`. `library` must live
 * as long as the model. */
kvc_model *fake_model_open(kvc_library *library, const fake_shape *shape,
                           const char *folder);

/* The logits after tokens[0..count) that have the positions 0..count-1. */
void fake_expected_row(const int32_t *tokens, int64_t count, double *row);

/* Rows of logits that the model has computed, and calls of its forward. */
extern _Atomic int64_t fake_rows_computed;
extern _Atomic int64_t fake_tokens_computed;
extern _Atomic int64_t fake_calls;

/* Rows whose index (counted from 0 by fake_rows_computed) is this are all NaN;
 * -1: none. */
extern int64_t fake_broken_row;

#endif
