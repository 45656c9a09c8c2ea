"""Storage types of numbers, seen from float64."""

import numpy as np


def from_bf16(bits):
    """bits: u16 -> float64."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def to_bf16(x):
    """float64 -> u16 by way of f32, to nearest, ties to even; no NaN inside."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def blocks_of_32(x):
    """[rows, columns] -> [blocks, 32], or None where rows aren't whole blocks."""
    return x.reshape(-1, 32) if x.ndim == 2 and x.shape[1] % 32 == 0 else None


def quants(x, scale):
    """x / scale to nearest, 0 where the scale is 0."""
    return np.rint(np.divide(x, scale, out=np.zeros_like(x), where=scale != 0))


def half(x):
    return x.astype(np.float32).astype(np.float16).astype(np.float64)


def round_q8_0(b):  # the largest magnitude becomes 127
    d = half(np.abs(b).max(1, keepdims=True) / 127)
    return d * np.clip(quants(b, d), -127, 127)


def round_to_least(b, least):  # the number of the largest magnitude becomes `least`
    d = half(np.take_along_axis(b, np.abs(b).argmax(1)[:, None], 1) / least)
    return d * np.clip(quants(b, d), least, -least - 1)


def round_between(b, most):  # from the least number, 0, to the largest
    m = b.min(1, keepdims=True)
    d, m = half((b.max(1, keepdims=True) - m) / most), half(m)
    return (d * np.clip(quants(b - m, d), 0, most) + m).astype(np.float32).astype(np.float64)


def in_blocks(rounded):
    def whole(x):
        blocks = blocks_of_32(x)
        return x if blocks is None else rounded(blocks).reshape(x.shape)
    return whole


# Types that a matrix can't have where its rows aren't whole blocks: it stays what
# it is.
BLOCKS = {
    "q8_0": in_blocks(round_q8_0),
    "q4_0": in_blocks(lambda b: round_to_least(b, -8)),
    "q4_1": in_blocks(lambda b: round_between(b, 15)),
    "q5_0": in_blocks(lambda b: round_to_least(b, -16)),
    "q5_1": in_blocks(lambda b: round_between(b, 31)),
}

ROUND = {
    "f64": lambda x: x,
    "f32": lambda x: x.astype(np.float32).astype(np.float64),
    "f16": lambda x: x.astype(np.float32).astype(np.float16).astype(np.float64),
    "bf16": lambda x: from_bf16(to_bf16(x)),
}
