// The sweeps as a picture.
#ifndef KVC_BENCH_PLOT_H
#define KVC_BENCH_PLOT_H

#include "Sweep.h"

// Writes options.plot, an SVG with a panel for each sweep: every sample as a dot,
// medians as lines, both axes from 0 and nothing fitted. Dies where that fails.
void writePlot(const Results &results, const BenchOptions &options);

#endif
