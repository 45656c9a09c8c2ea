"""The weights that a spec's `random:<seed>` names: the same bits that the
compiler makes, from the description in docs/spec.md.

Numbers are drawn by splitmix64 (Steele, Lea, Flood: Fast Splittable
Pseudorandom Number Generators, 2014), keyed by the FNV-1a hash of a tensor's
name.
"""

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def fnv1a(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def mix(z):
    """splitmix64's finaliser, on u64 arrays (which wrap)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_tensor(seed, name, shape):
    key = mix(np.array([(seed ^ fnv1a(name)) & MASK], np.uint64))
    index = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64)
    drawn = mix(key + index * np.uint64(GOLDEN))
    r = ((drawn >> np.uint64(11)).astype(np.float64) * 2.0 ** -53 * 2 - 1).reshape(shape)
    if len(shape) == 2:
        return r * np.sqrt(3 / shape[1])
    return 0.1 * r if name.endswith(".bias") else 1 + 0.1 * r
