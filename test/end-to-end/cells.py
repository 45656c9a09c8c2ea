"""What a generated library writes into the cache, cell by cell, against the oracle.

    cells.py MODEL DIR CACHE TOLERANCE

The library of MODEL in DIR, compiled with --cache=CACHE, is called as the runtime
calls it, on memory of our own: pages in disorder with room between them, all of it
NaN. After each step the cells below each length hold the oracle's keys and values,
within TOLERANCE of the largest, and no other byte has changed; a page that isn't
held is -1 in the table. The same again with pages past 2^31 elements and 2^32
bytes: the same bits.
"""

import ctypes
import glob
import mmap
import os
import sys

import numpy as np

from files import read_model
from forward_library import LANES, NUMPY, Buffer, decode
from oracle import forward

TYPES = "f64", "f32", "f16", "bf16"
SEQUENCES = 3
STEPS = (1, 0, 5), (14, 1, 10), (1, 16, 1), (1, 15, 0), (15, 1, 18)  # tokens of each
NEAR, FAR = 0, 17 << 30
GUARD = 64
MAP_NORESERVE = 0x4000

int64, pointer, text = ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p


class Kernels(ctypes.Structure):
    _fields_ = [("level", text), ("features", text), ("forward", pointer)]


class Section(ctypes.Structure):
    """kvc_section of runtime/include/kvc/abi.h."""
    _fields_ = [(name, int64) for name in ("offset", "rows", "pieces", "lanes", "bytes")]


class Group(ctypes.Structure):
    """kvc_group."""
    _fields_ = (
        [(name, int64) for name in ("layers", "kv_heads", "key_width", "value_width")]
        + [("type", ctypes.c_int), ("layout", text)]
        + [(name, int64) for name in ("positions_per_page", "pages_per_sequence", "page_bytes", "page_padding",
                                      "window", "sections_count")]
        + [("sections", ctypes.POINTER(Section))])


class DeviceKernel(ctypes.Structure):
    """kvc_device_kernel."""
    _fields_ = [("name", text), ("threads", int64)]


class DeviceCode(ctypes.Structure):
    """kvc_device_code."""
    _fields_ = [("device", text), ("level", text), ("code", text), ("code_bytes", int64),
                ("workspace_bytes", int64), ("kernels_count", int64),
                ("kernels", ctypes.POINTER(DeviceKernel)), ("forward", pointer)]


class Description(ctypes.Structure):
    """kvc_library of runtime/include/kvc/abi.h."""
    _fields_ = (
        [("abi_version", ctypes.c_uint32), ("struct_size", ctypes.c_uint32), ("name", text),
         ("compiler", text), ("identity", ctypes.c_uint8 * 32)]
        + [(name, int64) for name in ("vocab", "width", "layers", "heads", "capacity")]
        + [("arithmetic", ctypes.c_int), ("numerics", ctypes.c_int)]
        + [(name, int64) for name in ("exact", "weights_bytes", "weights_padding", "max_tokens",
                                      "workspace_bytes", "groups_count")]
        + [("groups", ctypes.POINTER(Group)), ("kernels_count", int64), ("kernels", ctypes.POINTER(Kernels)),
           ("device_codes_count", int64), ("device_codes", ctypes.POINTER(DeviceCode))])


TASK = ctypes.CFUNCTYPE(None, pointer, int64, int64)
PARALLEL = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, int64)


@PARALLEL
def last_first(_, task, context, count):
    for i in reversed(range(count)):
        TASK(task)(context, i, i + 1)


def guarded(size):
    """An array of 0xff with room around it, and the whole of it."""
    whole = np.full(size + 3 * GUARD, 0xFF, np.uint8)
    start = GUARD + -(whole.ctypes.data + GUARD) % GUARD
    return whole[start:start + size], (whole, start, size)


def check_guard(whole, start, size, what):
    assert (whole[:start] == 0xFF).all() and (whole[start + size:] == 0xFF).all(), f"{what}: written beside it"


class Cache:
    """Pages of the library in disorder, from byte `base` of a pool that is mostly a
    hole."""

    def __init__(self, library, base):
        self.library = library.groups[0]
        library, self.kind = self.library, TYPES[self.library.type]
        size = np.dtype(NUMPY[self.kind]).itemsize
        count = SEQUENCES * library.pages_per_sequence
        order = np.random.default_rng(1).permutation(count)
        self.places = (base + (2 * order + 1) * library.page_bytes).reshape(SEQUENCES, -1)
        end = base + (2 * count + 1) * library.page_bytes
        self.pool = np.frombuffer(mmap.mmap(-1, end, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE), np.uint8)
        self.window = self.pool[base:end]
        self.window[:] = 0xFF
        self.base, self.bits = base, np.dtype(f"u{size}")
        self.pages = np.full((SEQUENCES, library.pages_per_sequence), -1, np.int64)
        self.lengths = np.zeros(SEQUENCES, np.int64)

    def hold(self, lengths):
        """The page table for these lengths."""
        for s, length in enumerate(lengths):
            held = -(-length // self.library.positions_per_page)
            self.pages[s, :held] = self.places[s, :held]

    def cells(self, window, s, dtype):
        """Keys and values of a sequence, [layers, kv heads, positions, width], as
        views of the window: assigning to them writes to it."""
        l = self.library
        keys, values = [], []
        for place in self.places[s] - self.base:
            page = window[place:place + l.page_bytes].view(dtype)
            rows = l.layers * l.kv_heads * l.positions_per_page
            groups = page[:rows * l.key_width].reshape(l.layers, l.kv_heads, -1, l.key_width, LANES)
            keys.append(groups.transpose(0, 1, 2, 4, 3))
            values.append(page[rows * l.key_width:rows * (l.key_width + l.value_width)]
                          .reshape(l.layers, l.kv_heads, l.positions_per_page, l.value_width))
        return keys, values

    def read(self, s):
        keys, values = self.cells(self.window, s, NUMPY[self.kind])
        l = self.library
        keys = [k.reshape(l.layers, l.kv_heads, l.positions_per_page, l.key_width) for k in keys]
        return [decode(np.concatenate(parts, axis=2), self.kind) for parts in (keys, values)]

    def unwritten(self):
        """The bytes that no position below a length stands in."""
        free = np.ones(len(self.window), np.uint8)
        for s, length in enumerate(self.lengths):
            keys, values = self.cells(free, s, self.bits)
            for p in range(length):
                page, place = divmod(p, self.library.positions_per_page)
                keys[page][:, :, place // LANES, place % LANES] = 0
                values[page][:, :, place] = 0
        return free.view(bool)


def oracle_cells(model, tokens):
    """Keys and values of each layer, [layers, kv heads, positions, width]."""
    stored, kept = model.stored or (lambda x: x), []

    def keep(x):
        kept.append(stored(x))
        return kept[-1]

    model.stored = keep
    forward(model, tokens)
    model.stored = stored
    return np.stack(kept[::2]), np.stack(kept[1::2])


def run(library, weights, tokens, expected, tolerance, base):
    cache = Cache(library, base)
    kernels = library.kernels[library.kernels_count - 1]
    everything = []
    for counts in STEPS:
        before, untouched = cache.window.copy(), cache.unwritten()
        step = [(s, int(cache.lengths[s]) + i) for s in (1, 0, 2) for i in range(counts[s])]
        cache.hold(cache.lengths + counts)
        logits = call(library, kernels, weights, cache, [tokens[s][p] for s, p in step], [s for s, _ in step])

        cache.lengths += counts
        still = cache.unwritten()
        assert (cache.window[still] == 0xFF).all(), "a byte that is no cell of the step was written"
        assert (cache.window[~untouched] == before[~untouched]).all(), "an older cell was written"
        for s in range(SEQUENCES):
            for got, right in zip(cache.read(s), expected[s]):
                right = right[:, :, :cache.lengths[s]]
                if right.size:
                    worst = np.abs(got[:, :, :cache.lengths[s]] - right).max() / np.abs(right).max()
                    assert worst <= tolerance, f"sequence {s}, length {cache.lengths[s]}: differs by {worst}"
        everything.append(logits.tobytes())
    return b"".join(everything) + cache.window.tobytes(), int(cache.lengths.sum())


def open_library(directory):
    """What kvc-opt wrote there: its description and its weights."""
    shared, = glob.glob(f"{directory}/lib*.so")
    name = os.path.basename(shared)[3:-3]
    accessor = ctypes.CDLL(shared)[f"{name}_library"]
    accessor.restype = ctypes.POINTER(Description)
    library = accessor().contents
    assert library.struct_size == ctypes.sizeof(Description)
    with open(f"{directory}/{name}.safetensors", "rb") as file:
        file.seek(int.from_bytes(file.read(8), "little") + 8)
        data = np.frombuffer(file.read(), np.uint8)
    weights, _ = guarded(len(data))
    weights[:] = data
    return library, weights


def call(library, kernels, weights, cache, tokens, sequences):
    """One step with a row of logits for each token, as bytes of the arithmetic's type."""
    function = ctypes.CFUNCTYPE(None, *[pointer] * 10)(kernels.forward)
    workspace, workspace_guard = guarded(library.workspace_bytes)
    logits, logits_guard = guarded(len(tokens) * library.vocab * (8 if library.arithmetic == 0 else 4))
    arrays = [
        weights, cache.pool, cache.pages.reshape(-1), cache.lengths,
        np.array(tokens, np.int32), np.array(sequences, np.int32),
        np.arange(len(tokens), dtype=np.int64), logits.view(NUMPY[TYPES[library.arithmetic]]), workspace,
    ]
    buffers = [Buffer.of(array) for array in arrays]
    executor = PARALLEL(last_first)
    function(*[ctypes.addressof(b) for b in buffers], ctypes.addressof(executor))
    check_guard(*workspace_guard, "workspace")
    check_guard(*logits_guard, "logits")
    return logits


def main(path, directory, cache_type, tolerance):
    library, weights = open_library(directory)
    model = read_model(path, None, cache_type)
    random = np.random.default_rng(2)
    tokens = [random.integers(0, library.vocab, sum(step[s] for step in STEPS)) for s in range(SEQUENCES)]
    expected = [oracle_cells(model, t) for t in tokens]
    near, positions = run(library, weights, tokens, expected, tolerance, NEAR)
    far, _ = run(library, weights, tokens, expected, tolerance, FAR)
    assert near == far, "other bits past 2^32 bytes"
    print(f"{library.groups[0].layout.decode()}: keys and values of {positions} positions agree, and nothing else is written")


if __name__ == "__main__":
    main(*sys.argv[1:4], float(sys.argv[4]))
