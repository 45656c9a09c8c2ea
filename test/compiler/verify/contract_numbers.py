"""Each mistake of the cache contract changes numbers where nothing checks.

usage: contract_numbers.py FOLDER COMPILER

A right and a wrong `@forward`, both by the reference lowering, which doesn't
check the contract, for the chunks of one prompt. kvc-verify-cache-contract
accepts the right one and rejects the wrong one with the words given here.
"""

import subprocess
import sys

import numpy as np

from forward_library import Cache, Library, pack

WIDTH, VOCAB, CAPACITY = 4, 9, 16
TOKENS = [1, 7, 3, 3, 0, 8]

MODULE = """
!cache = {cache}
module {{
  kvc.weight @p : tensor<{rows}x4xf64> from "p"
  kvc.weight @q : tensor<9x4xf64> from "q"
  kvc.weight @k : tensor<9x4xf64> from "k"
  kvc.weight @v : tensor<9x4xf64> from "v"
  func.func @forward(%tokens: tensor<?xi32>, %s: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache)
      -> (tensor<?x4xf64>, !cache) {{
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %q = kvc.embed %tokens in @q : tensor<?xi32> -> tensor<?x4xf64>
    %k = kvc.embed %tokens in @k : tensor<?xi32> -> tensor<?x4xf64>
    %v = kvc.embed %tokens in @v : tensor<?xi32> -> tensor<?x4xf64>
    %n = tensor.dim %tokens, %0 : tensor<?xi32>
    %at = kvc.positions %cache of %s : !cache, tensor<?xi32> -> tensor<?xi64>
    {body}
    %after = kvc.advance %last by %s : !cache, tensor<?xi32>
    %chosen = kvc.select %y rows %outputs : tensor<?x4xf64>, tensor<?xi64> -> tensor<?x4xf64>
    return %chosen, %after : tensor<?x4xf64>, !cache
  }}
}}
"""


def append(result, cache, keys="%k", values="%v", layer="%0", at="%at"):
    return f"""{result} = kvc.append {keys}, {values} to {cache} layer {layer} at {at} of %s
      : tensor<?x4xf64>, tensor<?x4xf64>, !cache, tensor<?xi64>, tensor<?xi32>
    """


def attend(result, cache, queries="%q", layer="%0", at="%at"):
    return f"""{result} = kvc.attend {queries} to {cache} layer {layer} at {at} of %s scale 0.5
      : tensor<?x4xf64>, !cache, tensor<?xi64>, tensor<?xi32>
    """


ROWS = """%rows = tensor.generate %n {
    ^bb0(%i: index):
      %row = arith.index_cast %i : index to i64
      tensor.yield %row : i64
    } : tensor<?xi64>
    """
ONE = append("%last", "%cache") + attend("%y", "%last")
LAYER_1 = append("%second", "%first", layer="%1") + attend("%b", "%second", "%a", "%1")
TWO = append("%first", "%cache") + attend("%a", "%first")
EARLY_EXIT = f"""%many = arith.cmpi ugt, %n, %1 : index
    %y, %last = scf.if %many -> (tensor<?x4xf64>, !cache) {{
    {LAYER_1}scf.yield %b, %second : tensor<?x4xf64>, !cache
    }} else {{
    scf.yield %a, %first : tensor<?x4xf64>, !cache
    }}
    """
TABLE = ONE.replace("%y", "%a") + """%place = kvc.embed %at in @p : tensor<?xi64> -> tensor<?x4xf64>
    %y = arith.addf %a, %place : tensor<?x4xf64>
    """
# Keys beside others: a join along the wrong axis, and the same element by
# element, since the reference lowering has no joins.
JOINED = """%h = tensor.extract_slice %q[0, 0] [%n, 2] [1, 1] : tensor<?x4xf64> to tensor<?x2xf64>
    %g = tensor.extract_slice %k[0, 0] [%n, 2] [1, 1] : tensor<?x4xf64> to tensor<?x2xf64>
    %j = tensor.concat dim(1) %h, %g : (tensor<?x2xf64>, tensor<?x2xf64>) -> tensor<?x4xf64>
    """
ELEMENTS = """%2 = arith.constant 2 : index
    %j = tensor.generate %n {
    ^bb0(%i: index, %e: index):
      %c = arith.remui %e, %2 : index
      %h = tensor.extract %q[%i, %c] : tensor<?x4xf64>
      %g = tensor.extract %k[%i, %c] : tensor<?x4xf64>
      %old = arith.cmpi ult, %e, %2 : index
      %x = arith.select %old, %h, %g : f64
      tensor.yield %x : f64
    } : tensor<?x4xf64>
    """

# number: right, wrong, what the check says
MISTAKES = {
    1: (ONE, ROWS + append("%last", "%cache", at="%rows") + attend("%y", "%last", at="%rows"),
        "expected positions that kvc.positions made"),
    2: (ONE, ROWS + append("%last", "%cache") + attend("%y", "%last", at="%rows"),
        "a mask that is square"),
    3: (ONE, attend("%y", "%cache") + append("%last", "%cache"),
        "to be appended before they are read"),
    # Two futures of one cache: the second is written over the first.
    4: (ONE, append("%first", "%cache") + append("%last", "%cache", "%v", "%k") + attend("%y", "%first"),
        "expected the newest value of the cache"),
    # The same keys again would write the same numbers: these are the rows as
    # they are before and after a projection.
    5: (ONE, append("%once", "%cache") + append("%last", "%once", "%v", "%k") + attend("%y", "%last"),
        "a second one to layer 0"),
    # A single token leaves layer 1 out.
    6: (TWO + LAYER_1.replace("%second", "%last").replace("%b", "%y"), TWO + EARLY_EXIT,
        "under scf.for and scf.if whose numbers are constants"),
    7: (ONE, JOINED + append("%last", "%cache", "%j") + attend("%y", "%last"),
        "joined along the width to be whole heads"),
    9: (TABLE, TABLE, "expected a position table"),
}


def text(cache, body, rows):
    return MODULE.format(cache=cache.type(), body=body, rows=rows)


def new_cache(body):
    return Cache(2 if "layer %1" in body else 1, 1, CAPACITY, WIDTH, "f64", 2)


def forward(folder, compiler, name, module, cache, tables, chunks):
    """The logits of each chunk (sequence, tokens), one after the other."""
    library = Library(folder, name, module, compiler)
    weights = pack([(table, "f64") for table in tables])
    logits = []
    for sequence, tokens in chunks:
        n = len(tokens)
        logits.append(library.forward(weights, cache, tokens, [sequence] * n, range(n), WIDTH, "f64"))
        cache.lengths[sequence] += n
    return logits


def run(folder, compiler, name, body, table):
    """Logits of TOKENS in chunks of 3, 1 and 2."""
    cache = new_cache(body)
    module = text(cache, body.replace(JOINED, ELEMENTS), len(table))
    random = np.random.default_rng(7)
    tables = (table, *random.standard_normal((3, VOCAB, WIDTH)))
    chunks = [(0, TOKENS[:3]), (0, TOKENS[3:4]), (0, TOKENS[4:])]
    return np.concatenate(forward(folder, compiler, name, module, cache, tables, chunks))


def verdict(program):
    """What kvc-verify-cache-contract says; nothing if it accepts."""
    command = ["kvc-test-opt", "-", "--kvc-verify-cache-contract", "-o", "/dev/null"]
    return subprocess.run(command, input=program, capture_output=True, text=True).stderr


def check_chunk(folder, compiler):
    """Mistake 8: what doesn't fit into sequence 0 is written over sequence 1."""
    count = CAPACITY + 2
    calls = [(1, [1, 7, 3]), (0, [i % VOCAB for i in range(count)]), (1, [8])]
    rows, said = [], []
    for name, capacity in (("right-8", 2 * CAPACITY), ("wrong-8", CAPACITY)):
        cache = Cache(1, 1, capacity, WIDTH, "f64", 2)
        module = text(cache, ONE, CAPACITY)
        # The check needs sequences that are constants; a call may bring any.
        constant = module.replace("of %s", "of %zero").replace("by %s", "by %zero")
        said.append(verdict(constant.replace("%n =", f"""%zeros = arith.constant dense<0> : tensor<{count}xi32>
    %zero = tensor.cast %zeros : tensor<{count}xi32> to tensor<?xi32>
    %n =""")))
        random = np.random.default_rng(7)
        tables = [random.standard_normal((n, WIDTH)) for n in (CAPACITY, VOCAB, VOCAB, VOCAB)]
        rows.append(forward(folder, compiler, name, module, cache, tables, calls)[-1][-1])
    assert said[0] == "", f"mistake 8: the right program is rejected: {said[0]}"
    words = "fits into the capacity of 16 positions, but got 18 tokens of sequence 0"
    assert words in said[1], f"mistake 8: expected an error with '{words}', but got '{said[1]}'"
    assert np.isfinite(rows[0]).all(), f"mistake 8: the right program gives {rows[0]}"
    assert not np.max(np.abs(rows[1] - rows[0])) <= 1e-6, "mistake 8: expected other numbers, but got the same"
    print("mistake 8: a row of another sequence differs")


def check_layout(folder, compiler):
    """Mistake 10: the layout keeps 16 positions, and the prompt has 24."""
    chunks = [(0, [n % VOCAB for n in range(16)])] + [(0, [n % VOCAB]) for n in range(16, 24)]
    random = np.random.default_rng(7)
    tables = [random.standard_normal((n, WIDTH)) for n in (CAPACITY, VOCAB, VOCAB, VOCAB)]
    rows, said = [], []
    for name, layout in (("right-10", "#kvc.contiguous"), ("wrong-10", "#kvc_test.forgetting")):
        cache = Cache(1, 1, 24, WIDTH, "f64", 2)
        module = text(cache, ONE, CAPACITY).replace("#kvc.contiguous", layout)
        said.append(verdict(module))
        rows.append(np.concatenate(forward(folder, compiler, name, module, cache, tables, chunks)))
    assert said[0] == "", f"mistake 10: the right program is rejected: {said[0]}"
    words = "expected a layout that keeps every position"
    assert words in said[1], f"mistake 10: expected an error with '{words}', but got '{said[1]}'"
    assert np.isfinite(rows[0]).all(), f"mistake 10: the right program gives {rows[0]}"
    differ = np.flatnonzero((~(np.abs(rows[1] - rows[0]) <= 1e-6)).any(axis=1))
    assert differ.size, "mistake 10: expected other numbers, but got the same"
    print(f"mistake 10: {differ.size} of {len(rows[0])} rows differ, from row {differ[0]} on")


def main(folder, compiler):
    table = np.random.default_rng(11).standard_normal((CAPACITY, WIDTH))
    for number, (right, wrong, words) in MISTAKES.items():
        rows = 4 if number == 9 else CAPACITY
        expected = run(folder, compiler, f"right-{number}", right, table)
        got = run(folder, compiler, f"wrong-{number}", wrong, table[:rows])
        assert np.isfinite(expected).all(), f"mistake {number}: the right program gives {expected}"
        said = verdict(text(new_cache(right), right, CAPACITY))
        assert said == "", f"mistake {number}: the right program is rejected: {said}"
        said = verdict(text(new_cache(wrong), wrong, rows))
        assert words in said, f"mistake {number}: expected an error with '{words}', but got '{said}'"
        differ = int((~(np.abs(got - expected) <= 1e-6)).any(axis=1).sum())
        assert differ, f"mistake {number}: expected other numbers, but got the same"
        print(f"mistake {number}: {differ} of {len(TOKENS)} rows differ")
    check_chunk(folder, compiler)
    check_layout(folder, compiler)


main(*sys.argv[1:])
