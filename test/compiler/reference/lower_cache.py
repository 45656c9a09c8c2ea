"""The reference lowering of ops on caches against NumPy, cell by cell.

usage: lower_cache.py FOLDER COMPILER
"""

import sys

import numpy as np

from forward_library import Cache, Library, pack
from number_types import ROUND

VOCAB, LAYERS, LAYER, WIDTH, SCALE = 9, 2, 1, 3, 0.7
# Sums of a few dozen terms of size 1 in the arithmetic's precision; the cached
# numbers are rounded before, in NumPy too.
TOLERANCE = {"f64": 1e-13, "f32": 2e-6}

DECODER = """
!cache = {cache}
module {{
  kvc.weight @q : tensor<{vocab}x{queries}x{kind}> from "q"
  kvc.weight @k : tensor<{vocab}x{keys}x{kind}> from "k"
  kvc.weight @v : tensor<{vocab}x{keys}x{kind}> from "v"
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache)
      -> (tensor<?x{queries}x{kind}>, !cache) {{
    %layer = arith.constant {layer} : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %q = kvc.embed %tokens in @q : tensor<?xi32> -> tensor<?x{queries}x{kind}>
    %k = kvc.embed %tokens in @k : tensor<?xi32> -> tensor<?x{keys}x{kind}>
    %v = kvc.embed %tokens in @v : tensor<?xi32> -> tensor<?x{keys}x{kind}>
    %next = kvc.append %k, %v to %cache layer %layer at %positions of %sequences
      : tensor<?x{keys}x{kind}>, tensor<?x{keys}x{kind}>, !cache, tensor<?xi64>, tensor<?xi32>
    %a = kvc.attend %q to %next layer %layer at %positions of %sequences scale {scale}
      : tensor<?x{queries}x{kind}>, !cache, tensor<?xi64>, tensor<?xi32>
    %chosen = kvc.select %a rows %outputs : tensor<?x{queries}x{kind}>, tensor<?xi64> -> tensor<?x{queries}x{kind}>
    return %chosen, %next : tensor<?x{queries}x{kind}>, !cache
  }}
}}
"""

UPDATE = """
!cache = {cache}
module {{
  kvc.weight @none : tensor<1x1xf32> from "none"
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache)
      -> (tensor<?x1xf32>, !cache) {{
    %none = kvc.embed %tokens in @none : tensor<?xi32> -> tensor<?x1xf32>
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %2 = arith.constant 2 : index
    %5 = arith.constant 5 : index
    %17 = arith.constant 17 : index
    {op}
    return %none, %next : tensor<?x1xf32>, !cache
  }}
}}
"""


def attend(query, keys, values):
    """query [heads, WIDTH], keys and values [kv heads, positions, WIDTH]"""
    group = len(query) // len(keys)
    out = []
    for h, q in enumerate(query):
        scores = SCALE * keys[h // group] @ q
        weights = np.exp(scores - scores.max())
        out.append(weights @ values[h // group] / weights.sum())
    return np.concatenate(out)


def check_decoder(folder, compiler, name, kv_heads, group, kind, cache_kind):
    """Two sequences, cut into steps of awkward sizes around 16 positions."""
    random = np.random.default_rng(3)
    heads, capacity = kv_heads * group, 20
    q, k, v = (
        ROUND[kind](random.standard_normal((VOCAB, n * WIDTH))) for n in (heads, kv_heads, kv_heads)
    )
    cache = Cache(LAYERS, kv_heads, capacity, WIDTH, cache_kind, 2)
    module = DECODER.format(
        cache=cache.type(), kind=kind, vocab=VOCAB, queries=heads * WIDTH,
        keys=kv_heads * WIDTH, layer=LAYER, scale=SCALE,
    )
    library = Library(folder, name, module, compiler)
    weights = pack([(x, kind) for x in (q, k, v)])
    tokens = [list(random.integers(0, VOCAB, capacity)) for _ in range(2)]
    # Positions of each sequence: 0 to 1, 15, 16, 17, 18 and 1, 17, 18, 18, 20.
    for counts in ((1, 1), (14, 16), (1, 1), (1, 0), (1, 2)):
        step = [(s, int(cache.lengths[s]) + i) for s in (1, 0) for i in range(counts[s])]
        got = library.forward(
            weights, cache, [tokens[s][p] for s, p in step], [s for s, _ in step],
            range(len(step)), heads * WIDTH, kind,
        )
        cache.lengths += counts
        for row, (s, p) in zip(got, step):
            seen = tokens[s][: p + 1]
            keys, values = (
                ROUND[cache_kind](x[seen]).reshape(-1, kv_heads, WIDTH).transpose(1, 0, 2)
                for x in (k, v)
            )
            expected = attend(q[tokens[s][p]].reshape(heads, WIDTH), keys, values)
            worst = np.max(np.abs(row - expected))
            assert worst <= TOLERANCE[kind], f"{name}: sequence {s}, position {p}: differs by {worst}"
        # The cells of the layer are the rounded rows; nothing else is written.
        for s in range(2):
            length = cache.lengths[s]
            for cells, table in ((cache.keys(s), k), (cache.values(s), v)):
                rows = ROUND[cache_kind](table[tokens[s][:length]])
                rows = rows.reshape(-1, kv_heads, WIDTH).transpose(1, 0, 2)
                assert np.array_equal(cells[LAYER, :, :length], rows), f"{name}: cached cells"
                assert np.isnan(cells[LAYER, :, length:]).all(), f"{name}: cells behind the length"
                assert np.isnan(cells[1 - LAYER]).all(), f"{name}: another layer's cells"


def check_no_key(folder, compiler):
    """A query at position -1 sees no key and gives zeros; one beside it, as ever."""
    module = DECODER.format(
        cache="!kvc.cache<layers 2, kv_heads 1, capacity 20, key 3, value 3, f64, #kvc.contiguous>",
        kind="f64", vocab=VOCAB, queries=WIDTH, keys=WIDTH, layer=LAYER, scale=SCALE,
    )
    # Twice its position less one: -1 at 0, and 1 at 1.
    module = module.replace("    %a = kvc.attend", """    %one = arith.constant 1 : i64
    %rows = arith.constant 2 : index
    %ones = tensor.splat %one[%rows] : tensor<?xi64>
    %double = arith.addi %positions, %positions : tensor<?xi64>
    %before = arith.subi %double, %ones : tensor<?xi64>
    %a = kvc.attend""").replace("layer %layer at %positions of %sequences scale", "layer %layer at %before of %sequences scale")
    random = np.random.default_rng(4)
    q, k, v = (random.standard_normal((VOCAB, WIDTH)) for _ in range(3))
    cache = Cache(LAYERS, 1, 20, WIDTH, "f64", 1)
    library = Library(folder, "no-key", module, compiler)
    tokens = [3, 5]
    got = library.forward(pack([(x, "f64") for x in (q, k, v)]), cache, tokens, [0, 0], [0, 1], WIDTH, "f64")
    assert np.array_equal(got[0], np.zeros(WIDTH)), f"no key: {got[0]}"
    expected = attend(q[5].reshape(1, WIDTH), k[tokens][None], v[tokens][None])
    assert np.max(np.abs(got[1] - expected)) <= TOLERANCE["f64"], f"beside it: {got[1]}"


def check_update(folder, compiler, name, op, expected_from, expected_lengths):
    """`expected_from[s]`: whose cells sequence s has afterwards."""
    cache = Cache(LAYERS, 2, 20, WIDTH, "f16", 3)
    library = Library(folder, name, UPDATE.format(cache=cache.type(), op=op), compiler)
    cache.elements[:] = np.random.default_rng(5).standard_normal(cache.elements.shape)
    cache.lengths[:] = [4, 17, 20]
    old = [(cache.keys(s).copy(), cache.values(s).copy()) for s in range(3)]
    library.forward(pack([(np.zeros((1, 1)), "f32")]), cache, [0, 0, 0], [1, 0, 0], [0, 1, 2], 1, "f32")
    assert list(cache.lengths) == expected_lengths, f"{name}: {cache.lengths}"
    for s, source in enumerate(expected_from):
        assert np.array_equal(cache.keys(s), old[source][0]), f"{name}: keys of {s}"
        assert np.array_equal(cache.values(s), old[source][1]), f"{name}: values of {s}"


def main(folder, compiler):
    cases = [
        (1, 1, "f64", "f64"), (2, 3, "f64", "f32"), (3, 1, "f64", "bf16"),
        (2, 3, "f32", "f16"), (1, 3, "f32", "bf16"), (2, 1, "f32", "f32"),
    ]
    for kv_heads, group, kind, cache_kind in cases:
        name = f"decoder-{kv_heads}x{group}-{kind}-{cache_kind}"
        check_decoder(folder, compiler, name, kv_heads, group, kind, cache_kind)

    check_no_key(folder, compiler)

    order = "%order = arith.constant dense<[{}]> : tensor<3xi32>\n    %next = kvc.reorder %cache by %order : !cache, tensor<3xi32>"
    # kvc-defer-advance would take an advance that comes last.
    advance = """%a = kvc.advance %cache by %sequences : !cache, tensor<?xi32>
    %next = kvc.truncate %a sequence %2 to %17 : !cache"""
    updates = [
        ("advance", advance, [0, 1, 2], [6, 18, 17]),
        ("truncate", "%next = kvc.truncate %cache sequence %1 to %5 : !cache", [0, 1, 2], [4, 5, 20]),
        ("truncate-longer", "%next = kvc.truncate %cache sequence %0 to %17 : !cache", [0, 1, 2], [4, 17, 20]),
        ("fork", "%next = kvc.fork %cache from %2 to %0 : !cache", [2, 1, 2], [20, 17, 20]),
        ("reorder", order.format("2, 0, 1"), [2, 0, 1], [20, 4, 17]),
        ("reorder-duplicates", order.format("1, 1, 0"), [1, 1, 0], [17, 17, 4]),
    ]
    for name, op, expected_from, lengths in updates:
        check_update(folder, compiler, name, op, expected_from, lengths)
    print(f"{len(cases)} decoders and {len(updates)} updates agree cell by cell")


main(*sys.argv[1:])
