"""The reference lowering of ops on rows against their formulas in NumPy.

usage: lower_rows.py FOLDER COMPILER
"""

import sys

import numpy as np

from forward_library import Cache, Library, pack
from number_types import ROUND
from oracle import gelu, gelu_tanh, relu, silu

VOCAB, WIDTH, LAYERS, LAYER = 7, 12, 3, 1
ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu, "relu": relu}
# A few units in the last place of sums of at most 12 terms of size 1.
TOLERANCE = {"f64": 1e-13, "f32": 2e-5}

TEMPLATE = """
!cache = {cache}
module {{
{weights}
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache)
      -> (tensor<?x{width}x{kind}>, !cache) {{
    %layer = arith.constant {layer} : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %tokens in @table : tensor<?xi32> -> tensor<?x12x{kind}>
    {op}
    %chosen = kvc.select %y rows %outputs : tensor<?x{width}x{kind}>, tensor<?xi64> -> tensor<?x{width}x{kind}>
    return %chosen, %cache : tensor<?x{width}x{kind}>, !cache
  }}
}}
"""


class Test:
    def __init__(self, folder, compiler):
        self.folder, self.compiler = folder, compiler
        self.random = np.random.default_rng(7)
        self.count = 0

    def check(self, op, expected, kind, weight_kind, shapes, width=WIDTH):
        """`shapes`: name -> shape of a stacked weight; `expected(x, positions,
        weights of the layer)` in float64."""
        self.count += 1
        table = ROUND[weight_kind](self.random.standard_normal((VOCAB, WIDTH)))
        stacks = {
            name: ROUND[weight_kind](self.random.standard_normal((LAYERS, *shape)))
            for name, shape in shapes.items()
        }
        declared = [f"  kvc.weight @table : tensor<{VOCAB}x{WIDTH}x{weight_kind}> from \"table\""]
        for name, stack in stacks.items():
            axes = "x".join(map(str, stack.shape))
            declared.append(f'  kvc.weight @{name} : tensor<{axes}x{weight_kind}> from "{{}}.{name}"')
        cache = Cache(1, 1, 20, 4, "f32", 2)
        module = TEMPLATE.format(
            cache=cache.type(), weights="\n".join(declared), kind=kind, width=width,
            layer=LAYER, op=op.replace("KIND", kind),
        )
        library = Library(self.folder, f"rows{self.count}", module, self.compiler)
        packed = pack([(table, weight_kind)] + [(s, weight_kind) for s in stacks.values()])
        cache.lengths[:] = [3, 11]
        tokens, sequences, outputs = [6, 0, 2, 5], [1, 1, 0, 0], [3, 0, 1]
        got = library.forward(packed, cache, tokens, sequences, outputs, width, kind)
        layer = {name: stack[LAYER] for name, stack in stacks.items()}
        rows = expected(table[tokens], np.array([11, 12, 3, 4]), layer)[outputs]
        worst = np.max(np.abs(got - rows))
        assert worst <= TOLERANCE[kind], f"{op}: {kind}, {weight_kind}: differs by {worst}"


def linear(x, weight, bias=0):
    return x @ weight.T + bias


def rotary(x, positions, dims, theta, divisors):
    x = x.reshape(len(x), -1, 6).copy()
    half = dims // 2
    angles = positions[:, None] * theta ** (-2 * np.arange(half) / dims) / divisors
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = x[..., :half].copy(), x[..., half:dims].copy()
    x[..., :half] = first * cos - second * sin
    x[..., half:dims] = second * cos + first * sin
    return x.reshape(len(x), -1)


def main(folder, compiler):
    test = Test(folder, compiler)
    rows, wide = "tensor<?x12xKIND>", "tensor<?x5xKIND>"
    for kind, weight_kind in (("f64", "f64"), ("f32", "bf16"), ("f32", "f16")):
        matrix, vector = {"w": (5, 12)}, {"b": (5,)}
        test.check(
            f"%y = kvc.linear %x by @w layer %layer : {rows} -> {wide}",
            lambda x, p, w: linear(x, w["w"]), kind, weight_kind, matrix, width=5,
        )
        test.check(
            f"""%r = kvc.linear %x by @u layer %layer : {rows} -> {wide}
            %y = kvc.linear %x by @w bias @b layer %layer activation silu residual(%r : {wide}) : {rows} -> {wide}""",
            lambda x, p, w: silu(linear(x, w["w"], w["b"])) + linear(x, w["u"]),
            kind, weight_kind, {"u": (5, 12), **matrix, **vector}, width=5,
        )
        test.check(
            f"%y = kvc.gated_linear %x by @w, @u gate_bias @b up_bias @c layer %layer activation gelu : {rows} -> {wide}",
            lambda x, p, w: gelu(linear(x, w["w"], w["b"])) * linear(x, w["u"], w["c"]),
            kind, weight_kind, {**matrix, "u": (5, 12), **vector, "c": (5,)}, width=5,
        )
        test.check(
            f"%y = kvc.rms_norm %x by @g layer %layer epsilon 0.01 : {rows}",
            lambda x, p, w: x / np.sqrt(np.mean(x**2, 1, keepdims=True) + 0.01) * w["g"],
            kind, weight_kind, {"g": (12,)},
        )
        test.check(
            f"%y = kvc.layer_norm %x by @g bias @b layer %layer epsilon 0.01 : {rows}",
            lambda x, p, w: (x - x.mean(1, keepdims=True))
            / np.sqrt(x.var(1, keepdims=True) + 0.01) * w["g"] + w["b"],
            kind, weight_kind, {"g": (12,), "b": (12,)},
        )
    for kind in ("f64", "f32"):
        for name, function in ACTIVATIONS.items():
            test.check(
                f"%y = kvc.activate %x {name} : {rows}",
                lambda x, p, w: function(x), kind, kind if kind == "f64" else "f16", {},
            )
    for dims, divisors in ((6, [1.0]), (4, [2.0]), (4, [1.0, 8.0])):
        text = ", ".join(map(str, divisors))
        test.check(
            f"%y = kvc.rotary %x at %positions head_dim 6 dims {dims} theta 100.0 divisors [{text}] : {rows}, tensor<?xi64>",
            lambda x, p, w: rotary(x, p, dims, 100.0, np.array(divisors)), "f64", "f64", {},
        )
    print(f"{test.count} programs agree with their formulas")


main(*sys.argv[1:])
