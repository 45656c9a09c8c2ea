// What the compiler knows of a CPU that it compiles for.
#ifndef KVC_COMPILER_CPU_TARGET_H
#define KVC_COMPILER_CPU_TARGET_H

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kvc {

// The register tile of a matrix product: `rows` rows by `groups` groups of 16
// columns.
struct TileShape {
  int64_t rows;
  int64_t groups;
};

// Of a product: of few rows, at most as many as the tile has, which read each weight
// once at the speed of memory, and of more.
struct ProductShapes {
  TileShape few, many;
};

// What products are written for.
struct LinearTarget {
  int64_t vectorBits; // of a register
  bool hasByteDot;    // AVX-512 VNNI: vpdpbusd
  bool hasPairDot;    // AVX-512 BF16: vdpbf16ps
  bool hasTiles;      // AMX, for bytes and bf16: TileOps.h
  // Attention's, in f32, whose sums fill the registers but for the operands: 16
  // registers of 8 lanes hold 6x16 sums (12), 32 registers of 16 lanes hold 14x32
  // (28). Measured forms: docs/pipeline.md.
  TileShape tile;
  // Of products of floats, which widen what they read, and of bytes, whose integers
  // stand beside the sums; tiles have 16 rows of them.
  ProductShapes floats, integers;
  // Rows of a task of many rows, about: as many as read a block of a matrix from the
  // caches.
  int64_t taskRows = 224;
  // A device's: its memory is touched by tasks alone, and nothing is read to tell how
  // many there are. Bytes of a task's own memory there; 0: the CPU's, on its stack.
  int64_t taskBytes = 0;
  bool isDevice() const { return taskBytes != 0; }

  // Whether requests for memory stand between loads that keep their places: where 16
  // registers are few for a product, it is spilled instead.
  bool spreadsRequests() const { return vectorBits == 512; }
};

struct TargetDescription {
  std::string level;    // "x86-64-v3"; a kvc_kernels::level of abi.h
  std::string cpu;      // LLVM's name of the instruction set
  std::string tuneCpu;  // LLVM's name of the machine to schedule for
  std::string features; // kvc_kernels::features of abi.h
  std::string llvmFeatures; // beyond those of `cpu`, as LLVM writes them
  LinearTarget linear;
};

// Reads "cpu:x86-64-v3" or another level, "cpu:native" (the highest
// level that this machine has, scheduled for it), or several of them separated by
// commas. Best first in the result.
llvm::Expected<std::vector<TargetDescription>>
parseCpuTargets(llvm::StringRef option);

// Whether this machine has tiles of bytes and of bf16, and dot products of two bf16.
bool machineHasTiles();
bool machineHasPairDot();

// The targets of a library for any machine.
inline constexpr llvm::StringLiteral kDefaultTargets =
    "cpu:x86-64-v3,cpu:x86-64-v4,cpu:x86-64-v4-vnni,cpu:x86-64-v4-bf16,"
    "cpu:x86-64-v4-amx";

} // namespace kvc

#endif // KVC_COMPILER_CPU_TARGET_H
