"""nan.py FAST PLAIN: what two libraries of one program store where others see it,
logits and cells of the cache, has one NaN, and in the same places; and each library
gives the same bits in one call and token by token, at every CPU level that this
machine has.
"""

import sys

import numpy as np

from cells import TYPES, Cache, call, open_library

# The first is longer than a tile of attention, and all its scores may be -inf there.
TOKENS = [[1] * 66 + [2, 3, 4, 0, 7, 5, 18, 11, 6], [9, 2, 2, 10, 3, 8], [17]]
QUIET = {"f64": 0x7FF8 << 48, "f32": 0x7FC0 << 16, "f16": 0x7E00, "bf16": 0x7FC0}
INFINITY = {"f64": 0x7FF0 << 48, "f32": 0x7F80 << 16, "f16": 0x7C00, "bf16": 0x7F80}


def nans(bits, kind):
    """Where the NaNs are, which are all the same."""
    size = 8 * bits.dtype.itemsize
    found = (bits & bits.dtype.type((1 << size - 1) - 1)) > INFINITY[kind]
    others = np.unique(bits[found & (bits != QUIET[kind])])
    assert not others.size, f"expected NaN to be {QUIET[kind]:x}, but got {', '.join(f'{x:x}' for x in others)}"
    return found


def run(library, kernels, weights, steps):
    """Logits of each token of each sequence, and the cells of all, by their bits."""
    cache = Cache(library, 0)
    logits = [[] for _ in TOKENS]
    cache.hold([len(tokens) for tokens in TOKENS])
    for step in steps:
        rows = call(library, kernels, weights, cache, [TOKENS[s][p] for s, p in step], [s for s, _ in step])
        for (s, _), row in zip(step, rows.reshape(len(step), -1)):
            logits[s].append(row.copy())
            cache.lengths[s] += 1
    number = np.dtype(f"u{cache.bits.itemsize}")
    group = library.groups[0]
    cells = [np.concatenate([page.reshape(group.layers, group.kv_heads, -1, width) for page in pages],
                            axis=2)[:, :, :len(tokens)].ravel()
             for s, tokens in enumerate(TOKENS)
             for pages, width in zip(cache.cells(cache.window, s, number), (group.key_width, group.value_width))]
    arithmetic = TYPES[library.arithmetic]
    return (np.concatenate([row for rows in logits for row in rows]).view(f"u{8 if arithmetic == 'f64' else 4}"),
            np.concatenate(cells))


def check(directory):
    library, weights = open_library(directory)
    everything = [(s, p) for s, tokens in enumerate(TOKENS) for p in range(len(tokens))]
    first, *others = [
        run(library, library.kernels[level], weights, steps)
        for level in range(library.kernels_count)
        if runs(library.kernels[level])
        for steps in ([everything], [[token] for token in everything])]
    for other in others:
        for one, two in zip(first, other):
            assert (one == two).all(), f"{directory}: other bits in one row or at another level"
    return [nans(bits, TYPES[kind]) for bits, kind in zip(first, (library.arithmetic, library.groups[0].type))]


def runs(kernels):
    with open("/proc/cpuinfo") as file:
        has = set(next(line for line in file if line.startswith("flags")).split())
    return set(kernels.features.decode().split()) <= has


def main(fast, plain):
    found = check(fast)
    for mine, its in zip(found, check(plain)):
        assert (mine == its).all(), "NaN in other places by the other lowering"
    logits, cells = found
    print(f"NaN in {logits.sum()} of {logits.size} logits and {cells.sum()} of {cells.size} cells, all the same")


main(*sys.argv[1:])
