// The measurements for people.
#ifndef KVC_BENCH_TABLE_H
#define KVC_BENCH_TABLE_H

#include "Sweep.h"

void printTable(const Results &results, const BenchOptions &options);

// "AMD EPYC 9R14", or "unknown".
std::string machineName();

std::string identityOf(const kvc_model_info &info);
// Those of the cache's groups of layers: "paged<16>, ring<20, 32>".
std::string layoutsOf(const kvc_model_info &info);

#endif
