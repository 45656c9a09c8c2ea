"""Builds a module's @forward by the reference lowering, and calls it.

The library counts its calls of malloc and free: see `Library.forward`.
"""

import ctypes
import subprocess

import numpy as np

from number_types import from_bf16, to_bf16

NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16}
LANES = 16  # positions whose keys are interleaved, and what capacity rounds to

COUNTERS = """
#include <stdint.h>
#include <stdlib.h>
int64_t live_buffers;
void *__real_malloc(size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size) { ++live_buffers; return __real_malloc(size); }
void __wrap_free(void *p) { live_buffers -= p != 0; __real_free(p); }
"""


def encode(x, kind):
    """float64 numbers to an array of `kind`'s bits."""
    return to_bf16(x) if kind == "bf16" else np.asarray(x, np.float32 if kind == "f16" else None).astype(NUMPY[kind])


def decode(bits, kind):
    return from_bf16(bits) if kind == "bf16" else bits.astype(np.float64)


def pack(weights):
    """Weights, (array of float64, type) each, row-major at multiples of 64."""
    data = bytearray()
    for array, kind in weights:
        data += bytes(-len(data) % 64) + encode(array, kind).tobytes()
    return np.frombuffer(bytes(data), np.uint8).copy()


class Buffer(ctypes.Structure):
    """kvc_buffer of runtime/include/kvc/abi.h."""

    _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p)] + [
        (name, ctypes.c_int64) for name in ("offset", "size", "stride")
    ]

    @staticmethod
    def of(array):
        address = array.ctypes.data
        return Buffer(address, address, 0, array.size, 1)


class Cache:
    """The buffers of a contiguous cache; every cell is NaN until written."""

    def __init__(self, layers, heads, capacity, width, kind, sequences):
        self.layers, self.heads, self.capacity = layers, heads, capacity
        self.width, self.kind = width, kind
        self.rounded = -(-capacity // LANES) * LANES
        cells = layers * heads * self.rounded * width
        nan = np.uint16(0x7FC0) if kind == "bf16" else NUMPY[kind](np.nan)
        self.elements = np.full((sequences, 2, cells), nan, NUMPY[kind])
        self.pool = self.elements.reshape(-1).view(np.uint8)
        # Sequences stand in the pool in reverse: the page table decides.
        page_bytes = self.pool.size // sequences
        self.pages = np.arange(sequences - 1, -1, -1, dtype=np.int64) * page_bytes
        self.lengths = np.zeros(sequences, np.int64)

    def type(self):
        return (
            f"!kvc.cache<layers {self.layers}, kv_heads {self.heads}, capacity {self.capacity}, "
            f"key {self.width}, value {self.width}, {self.kind}, #kvc.contiguous>"
        )

    def keys(self, sequence):
        """[layers, heads, capacity, width] of float64."""
        cells = self.elements[len(self.lengths) - 1 - sequence, 0]
        groups = cells.reshape(self.layers, self.heads, -1, self.width, LANES)
        keys = groups.transpose(0, 1, 2, 4, 3)
        return decode(keys.reshape(self.layers, self.heads, self.rounded, self.width), self.kind)

    def values(self, sequence):
        cells = self.elements[len(self.lengths) - 1 - sequence, 1]
        return decode(cells.reshape(self.layers, self.heads, self.rounded, self.width), self.kind)


class Library:
    def __init__(self, folder, name, module, compiler):
        base = f"{folder}/{name}"
        with open(f"{base}.mlir", "w") as f:
            f.write(module)
        with open(f"{base}.c", "w") as f:
            f.write(COUNTERS)
        for command in (
            f"kvc-test-opt {base}.mlir --kvc-reference-pipeline -o {base}.llvm.mlir",
            f"mlir-translate --mlir-to-llvmir {base}.llvm.mlir -o {base}.ll",
            f"{compiler} -O1 -march=native -Wno-override-module -shared -fPIC -Wl,--wrap=malloc,--wrap=free "
            f"{base}.ll {base}.c -lm -o {base}.so",
        ):
            subprocess.run(command.split(), check=True)
        self.library = ctypes.CDLL(f"{base}.so")
        self.live_buffers = ctypes.c_int64.in_dll(self.library, "live_buffers")

    def forward(self, weights, cache, tokens, sequences, outputs, width, kind):
        """One step; gives [outputs, width] of float64. Lengths stay as they are."""
        logits = np.full(len(outputs) * width, np.nan, NUMPY[kind])
        arrays = [
            weights, cache.pool, cache.pages, cache.lengths,
            np.array(tokens, np.int32), np.array(sequences, np.int32),
            np.array(outputs, np.int64), logits, np.zeros(1, np.uint8),
        ]
        buffers = [Buffer.of(array) for array in arrays]
        self.library._mlir_ciface_forward(*[ctypes.byref(b) for b in buffers], None)
        assert self.live_buffers.value == 0, f"{self.live_buffers.value} buffers leaked"
        return logits.reshape(len(outputs), width).astype(np.float64)
