// Every sample, for programs.
#ifndef KVC_BENCH_JSON_H
#define KVC_BENCH_JSON_H

#include "Sweep.h"

// Writes options.json; dies where that fails. Times are seconds, rates bytes or
// operations a second.
void writeJson(const Results &results, const BenchOptions &options);

#endif
