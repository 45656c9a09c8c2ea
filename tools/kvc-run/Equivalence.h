// Cached equals full prefix, bit for bit: tried on a user's own model.
#ifndef KVC_RUN_EQUIVALENCE_H
#define KVC_RUN_EQUIVALENCE_H

#include "Options.h"
#include "Progress.h"

#include <kvc/kvc.h>

// Feeds random tokens in `options.equivalence` random ragged batches, each on 1
// and 2 threads and at every CPU level that the library carries and the machine
// can run, and compares the bits of every logit with those of the full prefix.
// Prints how many were compared, and the first difference. False if there is
// one.
bool checkEquivalence(const kvc_library *library, const kvc_model *model,
                      const Options &options, Progress &progress);

#endif
