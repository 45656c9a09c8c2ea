"""Storage types of numbers, seen from float64."""

import numpy as np


def from_bf16(bits):
    """bits: u16 -> float64."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def to_bf16(x):
    """float64 -> u16 by way of f32, to nearest, ties to even; no NaN inside."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


ROUND = {
    "f64": lambda x: x,
    "f32": lambda x: x.astype(np.float32).astype(np.float64),
    "f16": lambda x: x.astype(np.float32).astype(np.float16).astype(np.float64),
    "bf16": lambda x: from_bf16(to_bf16(x)),
}
