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


def fifth_bits(b, at):
    """The u32 at byte `at` of each block, a bit an element: [blocks, 32]."""
    return np.unpackbits(b[:, at:at + 4], axis=1, bitorder="little").astype(np.float64)


def q5_0(b):  # d, 32 fifth bits, 16 bytes of nibbles: d * (q - 16)
    return half(b, 0) * (nibbles(b[:, 6:]) + 16 * fifth_bits(b, 2) - 16)


def q5_1(b):  # d, m, 32 fifth bits, 16 bytes of nibbles: d * q + m
    return half(b, 0) * (nibbles(b[:, 8:]) + 16 * fifth_bits(b, 4)) + half(b, 2)


def pairs(b):
    """12 bytes of 8 scales and 8 minima of 6 bits: each [blocks, 8, 1]."""
    low, middle, high = (b[:, at:at + 4].astype(int) for at in (4, 8, 12))
    scales = np.hstack([low & 63, high & 15 | low >> 6 << 4])
    minima = np.hstack([middle & 63, high >> 4 | middle >> 6 << 4])
    return scales[..., None], minima[..., None]


def by_32(packed):
    """[blocks, 128] bytes -> [blocks, 8, 32]: the low halves of 32, then the high."""
    packed = packed.reshape(-1, 4, 1, 32)
    return np.concatenate([packed & 15, packed >> 4], axis=2).reshape(-1, 8, 32)


def of_pairs(b, q):  # d * scale * q - m * minimum
    scales, minima = pairs(b)
    d, m = half(b, 0)[..., None], half(b, 2)[..., None]
    return (d * scales * q - m * minima).reshape(-1, 256)


def q4_k(b):  # d, m, pairs, 128 bytes of nibbles
    return of_pairs(b, by_32(b[:, 16:]))


def q5_k(b):  # d, m, pairs, 32 bytes with a bit of each 32 elements, nibbles
    fifth = b[:, None, 16:48] >> np.arange(8)[:, None] & 1
    return of_pairs(b, by_32(b[:, 48:]) + 16 * fifth)


def q6_k(b):  # 128 bytes of nibbles, 64 of pairs of bits, 16 signed scales, d
    low = b[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    upper = b[:, 128:192].reshape(-1, 2, 1, 32) >> (2 * np.arange(4)[:, None]) & 3
    q = (low | upper << 4).astype(float).reshape(-1, 16, 16) - 32
    scales = b[:, 192:208].copy().view(np.int8).astype(float)[..., None]
    return (half(b, 208)[..., None] * scales * q).reshape(-1, 256)


# Type number -> (name, elements of a block, bytes of a block, decoder).
TYPES = {
    0: ("F32", 1, 4, lambda b: b.copy().view(np.float32).astype(np.float64)),
    1: ("F16", 1, 2, lambda b: half(b, 0)),
    2: ("Q4_0", 32, 18, q4_0),
    3: ("Q4_1", 32, 20, q4_1),
    6: ("Q5_0", 32, 22, q5_0),
    7: ("Q5_1", 32, 24, q5_1),
    8: ("Q8_0", 32, 34, q8_0),
    12: ("Q4_K", 256, 144, q4_k),
    13: ("Q5_K", 256, 176, q5_k),
    14: ("Q6_K", 256, 210, q6_k),
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

    def storage(self, name):
        return TYPES[self.tensors[name][1]][0].lower()

    def __getitem__(self, name):
        shape, kind, offset = self.tensors[name]
        _, elements, size, decode = TYPES[kind]
        blocks = int(np.prod(shape)) // elements
        begin = self.start + offset
        raw = np.asarray(self.bytes[begin:begin + blocks * size]).reshape(blocks, size)
        return decode(raw).reshape(shape)
