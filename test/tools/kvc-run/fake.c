/* The library that kvc-run loads in its tests; WEIGHTS is the file beside it,
 * POSITIONS its capacity. */
#include "fake_model.h"

#ifndef POSITIONS
#define POSITIONS 40
#endif

const kvc_library *fake_library(void) {
  static const fake_shape shape = {POSITIONS, 40, 7, KVC_TYPE_F32};
  static kvc_library library;
  fake_library_fill(&library, &shape);
  fake_weights_write(&library, WEIGHTS);
  return &library;
}
