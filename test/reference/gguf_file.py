"""The GGUF container, versions 2 and 3, and the block formats that we read.

Layout and block formats: the GGUF specification (ggml, docs/gguf.md) and the
definitions of ggml's block types. Half precision is `d` (scale) and `m`
(minimum); quants are written q.
"""

import struct

import numpy as np

from number_types import from_bf16

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
           10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


def half(blocks, at):
    """The f16 at byte `at` of each block: [blocks, 1] float64."""
    return blocks[:, at:at + 2].copy().view(np.float16).astype(np.float64)


def nibbles(packed):
    """[blocks, n] bytes -> [blocks, 2n]: all low halves, then all high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float64)


def q4_0(b):  # d, 16 bytes of nibbles: d * (q - 8)
    return half(b, 0) * (nibbles(b[:, 2:]) - 8)


def q4_1(b):  # d, m, 16 bytes of nibbles: d * q + m
    return half(b, 0) * nibbles(b[:, 4:]) + half(b, 2)


def q8_0(b):  # d, 32 signed bytes: d * q
    return half(b, 0) * b[:, 2:].copy().view(np.int8)


# Type number -> (name, elements of a block, bytes of a block, decoder).
TYPES = {
    0: ("F32", 1, 4, lambda b: b.copy().view(np.float32).astype(np.float64)),
    1: ("F16", 1, 2, lambda b: half(b, 0)),
    2: ("Q4_0", 32, 18, q4_0),
    3: ("Q4_1", 32, 20, q4_1),
    8: ("Q8_0", 32, 34, q8_0),
    30: ("BF16", 1, 2, lambda b: from_bf16(b.copy().view(np.uint16))),
}


class GGUF:
    """Metadata as `keys`, tensors by name as float64, outermost axis first."""

    def __init__(self, path):
        self.bytes, self.at = np.memmap(path, np.uint8, "r"), 0
        magic, version, tensors, keys = self.take("<4sIQQ")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path}: expected GGUF version 2 or 3, but got {magic} {version}")
        self.keys, self.tensors = {}, {}
        for _ in range(keys):
            name = self.string()
            self.keys[name] = self.value(self.take("<I")[0])
        for _ in range(tensors):
            name = self.string()
            rank, = self.take("<I")
            shape = self.take(f"<{rank}Q")[::-1]
            self.tensors[name] = (shape, *self.take("<IQ"))
        alignment = self.keys.get("general.alignment", 32)
        unknown = {kind for _, kind, _ in self.tensors.values()} - TYPES.keys()
        if unknown:
            raise ValueError(f"{path}: expected tensors of types {sorted(TYPES)}, but got {sorted(unknown)}")
        self.start = -(-self.at // alignment) * alignment

    def take(self, form):
        size = struct.calcsize(form)
        self.at += size
        return struct.unpack(form, self.bytes[self.at - size:self.at].tobytes())

    def string(self):
        return self.take(f"<{self.take('<Q')[0]}s")[0].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.take("<IQ")
            if element in SCALARS:
                return list(self.take(f"<{count}{SCALARS[element]}"))
            return [self.value(element) for _ in range(count)]
        return self.take("<" + SCALARS[kind])[0]

    def __contains__(self, name):
        return name in self.tensors

    def in_blocks(self, name):
        return TYPES[self.tensors[name][1]][1] > 1

    def __getitem__(self, name):
        shape, kind, offset = self.tensors[name]
        _, elements, size, decode = TYPES[kind]
        blocks = int(np.prod(shape)) // elements
        begin = self.start + offset
        raw = np.asarray(self.bytes[begin:begin + blocks * size]).reshape(blocks, size)
        return decode(raw).reshape(shape)
