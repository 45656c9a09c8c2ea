"""Compares the device's code of a library with the CPU's, bit by bit.

    device.py DIR DRIVER [STEPS]

The library in DIR, compiled with --target=...,cuda:sm_80, is called as the runtime
calls it, on the CPU and through DRIVER, a libcuda.so.1: ragged steps of several
sequences, in pages in disorder. The rows of logits and every byte of the cache's pages
are the same ones. STEPS is "1+0+5,14+1+10": tokens of each sequence, step by step.
"""

import ctypes
import sys

import numpy as np

from cells import SEQUENCES, STEPS, Cache, call, open_library
from forward_library import NUMPY, Buffer

int64, pointer, size = ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t
TYPES = "f64", "f32", "f16", "bf16"
LAUNCH = ctypes.CFUNCTYPE(None, pointer, int64, int64, pointer, int64)
BUFFER_POINTER, BUFFER_SIZE, END = 1, 2, 0  # CU_LAUNCH_PARAM_*


class Device:
    """The device's code of a library, loaded into the driver."""

    def __init__(self, library, driver, change):
        self.driver = ctypes.CDLL(driver)
        self.code, self.arithmetic = library.device_codes[0], TYPES[library.arithmetic]
        self.vocab = library.vocab
        self.check("cuInit", 0)
        self.stream, module = pointer(), pointer()
        self.check("cuStreamCreate", ctypes.byref(self.stream), 0)
        log = ctypes.create_string_buffer(1024)
        options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
        values = (pointer * 2)(ctypes.cast(log, pointer), len(log))
        text = ctypes.c_char_p(change(self.code.code.decode()).encode())
        status = self.driver.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values)
        assert status == 0, f"cuModuleLoadDataEx: {status}: {log.value.decode()}"
        self.functions = []
        for kernel in self.code.kernels[:self.code.kernels_count]:
            self.functions.append(pointer())
            self.check("cuModuleGetFunction", ctypes.byref(self.functions[-1]), module, kernel.name)
        self.launcher = LAUNCH(self.launch)
        self.launches = 0

    def check(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def launch(self, _, kernel, tasks, arguments, count):
        if not tasks:
            return
        threads, count = self.code.kernels[kernel].threads, size(count)
        extra = (pointer * 5)(BUFFER_POINTER, arguments, BUFFER_SIZE, ctypes.addressof(count), END)
        self.launches += 1
        self.check("cuLaunchKernel", self.functions[kernel], int(tasks), 1, 1, int(threads), 1, 1, 0, self.stream, None, extra)

    def upload(self, array):
        """A copy of the array's bytes on the device, and where."""
        address = ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(address), size(max(array.nbytes, 1)))
        self.check("cuMemcpyHtoDAsync_v2", address, pointer(array.ctypes.data), size(array.nbytes), self.stream)
        self.check("cuStreamSynchronize", self.stream)
        return address.value

    def download(self, address, array):
        self.check("cuMemcpyDtoHAsync_v2", pointer(array.ctypes.data), ctypes.c_uint64(address), size(array.nbytes), self.stream)
        self.check("cuStreamSynchronize", self.stream)

    def call(self, weights, pool, cache, tokens, sequences):
        """One step as `cells.call` makes it; `weights` and `pool` are the device's."""
        logits = np.zeros(len(tokens) * self.vocab, NUMPY[self.arithmetic])
        inputs = [cache.pages.reshape(-1), cache.lengths, np.array(tokens, np.int32),
                  np.array(sequences, np.int32), np.arange(len(tokens), dtype=np.int64)]
        there = [(self.upload(array), array.size) for array in inputs]
        result, workspace = ctypes.c_uint64(), ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(result), size(logits.nbytes))
        self.check("cuMemAlloc_v2", ctypes.byref(workspace), size(self.code.workspace_bytes))
        buffers = [Buffer(at, at, 0, count, 1) for at, count in
                   [weights, pool, *there, (result.value, logits.size), (workspace.value, self.code.workspace_bytes)]]
        function = ctypes.CFUNCTYPE(None, *[pointer] * 10)(self.code.forward)
        function(*[ctypes.addressof(b) for b in buffers], ctypes.addressof(self.launcher))
        self.check("cuStreamSynchronize", self.stream)
        self.download(result.value, logits)
        for address, _ in [*there, (result.value, 0), (workspace.value, 0)]:
            self.check("cuMemFree_v2", ctypes.c_uint64(address))
        return logits


def main(directory, driver, steps, change=lambda ptx: ptx):
    library, weights = open_library(directory)
    device = Device(library, driver, change)
    random = np.random.default_rng(3)
    cache = Cache(library, 0)
    kernels = library.kernels[library.kernels_count - 1]
    uploaded = device.upload(weights), weights.size
    pool = np.ascontiguousarray(cache.pool)
    at = device.upload(pool), pool.size
    positions = rows = 0
    for counts in steps:
        order = [s for s in (1, 0, 2) for _ in range(counts[s])]
        tokens = random.integers(0, library.vocab, len(order))
        cache.hold(cache.lengths + counts)
        expected = call(library, kernels, weights, cache, tokens, order).view(NUMPY[device.arithmetic])
        got = device.call(uploaded, at, cache, tokens, order)
        bits = f"u{got.itemsize}"
        differ = int((got.view(bits) != expected.view(bits)).sum())
        assert differ == 0, f"lengths {cache.lengths}: {differ} of {got.size} logits differ, by {np.abs(got - expected).max()}"
        device.download(at[0], pool)
        assert np.array_equal(pool, cache.pool), f"lengths {cache.lengths}: the caches differ"
        cache.lengths += counts
        positions, rows = int(cache.lengths.sum()), rows + len(order)
    print(f"{library.groups[0].layout.decode()}: {rows} rows of {library.vocab} logits and the keys and values of "
          f"{positions} positions have the CPU's bits; {device.launches} launches in {len(steps)} calls")


if __name__ == "__main__":
    given = [tuple(map(int, step.split("+"))) for step in sys.argv[3].split(",")] if len(sys.argv) > 3 else STEPS
    assert all(len(step) == SEQUENCES for step in given)
    main(sys.argv[1], sys.argv[2], given)
