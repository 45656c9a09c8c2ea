"""random_programs.py COUNT SEED FOLDER: programs made at random, by both lowerings
and by their formulas.

Each program is a decoder in the kvc dialect that nobody would write: norms, linear
layers, activations, rotary embeddings, sums and products of whatever has the width,
a cache of one to three groups of layers, each with a geometry, type and layout of its
own, rings too, whose layers are appended to in loops and between them, branches, and
loops, nested too, that carry several rows and hand them on as they like: swapped, one of
them twice, unchanged, from outside. kvc-opt compiles it with the fast kernels and with
--emit=reference, kvc-run runs both in chunks of their own, and the program itself,
as it was made, computes the full prefix in float64 with no cache.

How far a library may be away is the program's own: each of its numbers is moved at
random by up to four roundings of its type, thrice, and the libraries may be four
times as far away as the farthest logit went; they round each number once, and a sum
of some twenty terms with each term. A program that so moves by more than a hundredth
of its largest logit tells nothing, and is left out.
"""

import random
import subprocess
import sys

import numpy as np

from number_types import ROUND
from oracle import (Affine, LayerNorm, RMSNorm, Rotary, gelu, gelu_tanh, relu, rotary_frequencies,
                    silu, unseen)
from random_weights import random_tensor

# Sums more often than what may grow, or divide by little.
COMBINATIONS = {"addf": (np.add, 6), "subf": (np.subtract, 2), "mulf": (np.multiply, 3), "divf": (np.divide, 1),
                "maximumf": (np.maximum, 1), "minimumf": (np.minimum, 1)}
COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sge": np.greater_equal}
ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu, "relu": relu}
# Half a unit in the last place, relative to the number.
ROUNDING = {"f64": 2.0 ** -53, "f32": 2.0 ** -24, "f16": 2.0 ** -11, "bf16": 2.0 ** -8}
STORED = {"f64": ("f64", "f32", "f16", "bf16"), "f32": ("f32", "f16", "bf16")}
EPSILON = 1e-5
FORMS = "library", "reference"


class Run:
    """An evaluation of a program. Numbers are moved by up to `noise` roundings of
    their type; 0 gives what the program says."""

    def __init__(self, program, tokens, noise=0, seed=0):
        self.program, self.noise = program, noise
        self.random = np.random.default_rng(seed)
        self.positions = np.arange(len(tokens))
        self.values = {"tokens": np.array(tokens)}  # rows and indices, by name
        self.cache = {}  # group and layer to keys and values, [time, width]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for statement in program.body:
                statement(self)
        self.logits = self.values[program.logits]

    def moved(self, x, kind, size=None):
        """x, off by roundings of numbers of that size (its own)."""
        return x + self.noise * ROUNDING[kind] * self.random.uniform(-1, 1, x.shape) * (x if size is None else size)

    def weight(self, name, index=None):
        """A weight, of the layer that the index `index` is."""
        shape, source, kind = self.program.weights[name]
        if index is not None:
            source, shape = source.replace("{}", str(self.values[index])), shape[1:]
        return ROUND[self.program.kind](ROUND[kind](random_tensor(self.program.seed, source, shape)))


class Group:
    """Layers of the cache that are alike. On a ring a query finds the last `window`
    positions, its own among them; else `window` is None, and it finds all."""

    def __init__(self, rng, name, kind, most):
        self.name, self.kind = name, rng.choice(STORED[kind])
        self.layers, self.kv_heads = rng.randint(1, most), rng.randint(1, 3)
        self.head = rng.choice([1, 2, 4, 6, 16, 18])
        self.queries = rng.choice([1, 1, 2, 3])  # heads that share a KV head
        self.width, self.window = self.kv_heads * self.head, None
        self.layout = rng.choice(["contiguous", "paged<16>", "paged<32>", "ring"])
        if self.layout == "ring":
            self.window = rng.choice([1, 7, 16, 20])
            self.layout = f"ring<{self.window}, {rng.choice([1, 3, 9, 16])}>"

    def text(self, capacity):
        return (f"layers {self.layers}, kv_heads {self.kv_heads}, capacity {capacity}, key {self.head}, "
                f"value {self.head}, {self.kind}, #kvc.{self.layout}")


class Scope:
    """What a block can use: rows, (name, width), and indices, (name, exclusive bound)."""

    def __init__(self, rows=(), indices=()):
        self.rows, self.indices = list(rows), list(indices)


class Program:
    """A module's text, `lines`, and what it computes, `body`: each line of text is
    made beside a function that does the same in a Run."""

    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        rng = self.random
        self.kind = rng.choice(list(STORED))
        count = rng.choice([1, 1, 2, 2, 3])
        self.groups = [Group(rng, f" group {i}" if count > 1 else "", self.kind, most=4 if count == 1 else 2)
                       for i in range(count)]
        self.length = rng.choice([3, 9, 17, 70])  # of the prompt
        self.capacity = self.length + 3
        self.vocab = rng.choice([5, 16, 19])
        self.width = rng.choice([4, 8, 12, *(group.width for group in self.groups)])
        self.weights, self.lines, self.names = {}, [], 0
        self.cache, self.body = "cache", []
        self.make(self.body)

    def text(self):
        cache = ", ".join(group.text(self.capacity) for group in self.groups)
        weights = [f'kvc.weight @{name} : tensor<{"x".join(map(str, shape))}x{kind}> from "{source}"'
                   for name, (shape, source, kind) in self.weights.items()]
        return "\n".join([f"!cache = !kvc.cache<{cache}>",
                          f'module @program attributes {{kvc.weights = "random:{self.seed}"}} {{',
                          *weights, *self.lines, "}", ""])

    def rows(self, width):
        return f"tensor<?x{width}x{self.kind}>"

    def fresh(self):
        self.names += 1
        return f"v{self.names}"

    def emit(self, block, text, compute):
        """%name = text, a row that `compute` gives of a Run."""
        name = self.fresh()
        self.lines.append(f"%{name} = {text}")
        block.append(lambda run: run.values.update({name: run.moved(compute(run), self.kind)}))
        return name

    def index(self, block, text, compute):
        name = self.fresh()
        self.lines.append(f"%{name} = {text} : index")
        block.append(lambda run: run.values.update({name: compute(run)}))
        return name

    def constant(self, block, value):
        return self.index(block, f"arith.constant {value}", lambda run: value)

    def declare(self, shape, layers=None, suffix="weight"):
        name = f"w{len(self.weights)}"
        source = f"{name}.{{}}.{suffix}" if layers else f"{name}.{suffix}"
        self.weights[name] = [layers] * bool(layers) + shape, source, self.random.choice(STORED[self.kind])
        return name

    def parameters(self, scope, shape, bias_shape=None):
        """A weight and, sometimes, a bias, stacked or not: as text, and two functions."""
        index, layers = None, None
        if scope.indices and self.random.random() < 0.6:
            index, layers = self.random.choice(scope.indices)
        name = self.declare(shape, layers)
        text, bias = f"by @{name}", None
        if bias_shape and self.random.random() < 0.5:
            bias = self.declare(bias_shape, layers, "bias")
            text += f" bias @{bias}"
        return (text + (f" layer %{index}" if index else ""), lambda run: run.weight(name, index),
                lambda run: run.weight(bias, index) if bias else None)

    # Each of these gives a new row, (name, width).

    def pick(self, scope):
        """A row that is there, one of the last rather than of the first."""
        return self.random.choice(scope.rows[-self.random.randint(1, len(scope.rows)):])

    def linear(self, block, scope, source, width):
        name, inputs = source
        text, weight, bias = self.parameters(scope, [width, inputs], [width])
        return self.emit(block, f"kvc.linear %{name} {text} : {self.rows(inputs)} -> {self.rows(width)}",
                         lambda run: Affine(weight(run), bias(run))(run.values[name])), width

    def norm(self, block, scope, source):
        name, width = source
        if self.random.random() < 0.5:
            kind = "rms_norm"
            text, weight, _ = self.parameters(scope, [width])
            function = lambda run: RMSNorm(weight(run), EPSILON)
        else:
            kind = "layer_norm"
            text, weight, bias = self.parameters(scope, [width], [width])
            function = lambda run: LayerNorm(weight(run), 0 if bias(run) is None else bias(run), EPSILON)
        return self.emit(block, f"kvc.{kind} %{name} {text} epsilon {EPSILON:e} : {self.rows(width)}",
                         lambda run: function(run)(run.values[name])), width

    def activate(self, block, source):
        name, width = source
        kind = self.random.choice(list(ACTIVATIONS))

        def compute(run):
            x = run.values[name]
            y = ACTIVATIONS[kind](x)
            # x (1 + tanh ...) loses digits below 0, where the two cancel.
            return run.moved(y, self.kind, x) if "gelu" in kind else y
        return self.emit(block, f"kvc.activate %{name} {kind} : {self.rows(width)}", compute), width

    def combine(self, block, scope, source):
        name, width = source
        other = self.random.choice([n for n, w in scope.rows if w == width])
        if self.random.random() < 0.5:
            name, other = other, name
        op, = self.random.choices(list(COMBINATIONS), [weight for _, weight in COMBINATIONS.values()])
        function, _ = COMBINATIONS[op]
        return self.emit(block, f"arith.{op} %{name}, %{other} : {self.rows(width)}",
                         lambda run: function(run.values[name], run.values[other])), width

    def negate(self, block, source):
        name, width = source
        return self.emit(block, f"arith.negf %{name} : {self.rows(width)}", lambda run: -run.values[name]), width

    def embed_positions(self, block, width):
        table = self.declare([self.capacity, width])
        return self.emit(block, f"kvc.embed %positions in @{table} : tensor<?xi64> -> {self.rows(width)}",
                         lambda run: run.weight(table)[run.positions]), width

    def rotary(self, block, source, head):
        name, width = source
        dims = 2 * self.random.randint(1, head // 2)
        theta = self.random.choice([10.0, 1e4, 5e5])
        divisors = self.random.choice([[], [2.0], [1.0 + i for i in range(dims // 2)]])
        turn = Rotary(rotary_frequencies(dims, theta) / (divisors or 1.0))
        divided = f" divisors {divisors}" if divisors else ""

        def compute(run):
            x = run.values[name]
            heads = x.reshape(len(x), -1, head).transpose(1, 0, 2)
            # An angle is rounded in f64, however large it is.
            size = np.abs(x).max(-1, keepdims=True) * run.positions[:, None]
            return run.moved(turn(heads).transpose(1, 0, 2).reshape(x.shape), "f64", size)
        return self.emit(block, f"kvc.rotary %{name} at %positions head_dim {head} dims {dims} theta {theta:e}"
                         f"{divided} : {self.rows(width)}, tensor<?xi64>", compute), width

    def projected(self, block, scope, width, head):
        """Queries, keys or values: of norms, so that scores aren't large."""
        suitable = [row for row in scope.rows if row[1] == width]
        if suitable and self.random.random() < 0.3:
            row = self.norm(block, scope, self.random.choice(suitable))
        else:
            row = self.linear(block, scope, self.norm(block, scope, self.pick(scope)), width)
        if head >= 2 and self.random.random() < 0.5:
            row = self.rotary(block, row, head)
        return row

    def append(self, block, scope, group, layer):
        width, kind = group.width, group.kind
        keys, values = (self.projected(block, scope, width, group.head)[0] for _ in range(2))
        old, self.cache = self.cache, self.fresh()
        self.lines.append(
            f"%{self.cache} = kvc.append %{keys}, %{values} to %{old}{group.name} layer %{layer} "
            f"at %positions of %sequences : "
            f"{self.rows(width)}, {self.rows(width)}, !cache, tensor<?xi64>, tensor<?xi32>")

        def statement(run):
            run.cache[group, run.values[layer]] = [run.moved(ROUND[kind](run.values[name]), kind)
                                                   for name in (keys, values)]
        block.append(statement)

    def attend(self, block, scope, group, layer):
        heads = group.kv_heads * group.queries
        queries, width = self.projected(block, scope, heads * group.head, group.head)
        scale = self.random.choice([0.25, group.head ** -0.5])
        window = self.random.choice([group.window] * 2 + [w for w in (1, 2, 15, 16, 17, 40, 64)
                                                          if not group.window or w < group.window])

        def compute(run):
            keys, values = (np.repeat(x.reshape(len(x), group.kv_heads, group.head), group.queries, axis=1)
                            for x in run.cache[group, run.values[layer]])
            asking = run.values[queries].reshape(-1, heads, group.head)
            scores = np.einsum("qhe,khe->hqk", asking, keys) * scale
            scores[:, unseen(run.positions[:, None], run.positions[None, :], window)] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            return np.einsum("hqk,khe->qhe", weights, values).reshape(len(asking), -1)
        return self.emit(block, f"kvc.attend %{queries} to %{self.cache}{group.name} layer %{layer} "
                         f"at %positions of %sequences scale {scale!r}{f' window {window}' if window else ''} : "
                         f"{self.rows(width)}, !cache, tensor<?xi64>, tensor<?xi32>", compute), width

    # Each of these adds to a block and its scope.

    def anything(self, block, scope, depth):
        rng, source, choice = self.random, self.pick(scope), self.random.random()
        if choice < 0.35:
            row = self.combine(block, scope, source)
        elif choice < 0.55:
            row = self.linear(block, scope, source, rng.choice([source[1], self.pick(scope)[1], self.width]))
        elif choice < 0.65:
            row = self.activate(block, source)
        elif choice < 0.67:
            row = self.negate(block, source)
        elif choice < 0.7:
            row = self.embed_positions(block, source[1])
        elif choice < 0.75 and source[1] >= 2:
            row = self.rotary(block, source, source[1])
        elif choice < 0.85 and depth < 2:
            return self.loop(block, scope, depth)
        elif choice < 0.9 and depth < 3 and scope.indices:
            return self.branch(block, scope, depth)
        else:
            row = self.norm(block, scope, source)
        scope.rows.append(row)

    def visit(self, block, scope, group, layer):
        """Appends to a layer and attends to it."""
        self.append(block, scope, group, layer)
        for _ in range(self.random.choice([1, 1, 2])):
            scope.rows.append(self.attend(block, scope, group, layer))

    def hand_on(self, block, scope, carried):
        """Rows for the next iteration: any, one of the last, a new one, or one twice."""
        rng, yielded = self.random, []
        for _, width in carried:
            suitable = [row for row in scope.rows if row[1] == width]
            again = [row for row in yielded if row[1] == width]
            choice = rng.random()
            if again and choice < 0.5:
                yielded.append(again[-1])
            elif choice < 0.7:
                yielded.append(self.linear(block, scope, self.pick(scope), width))
            else:
                yielded.append(rng.choice(suitable[-3:] if choice < 0.9 else suitable))
        return yielded

    def layer(self, block, variable, offset, first, last, step):
        """variable + offset, in one form or another, or the same from the last layer on."""
        choice = self.random.random()
        if step == 1 and choice < 0.3:
            op, function = "subi", lambda i: first + last - 1 - i
            text = f"%{self.constant(block, first + last - 1)}, %{variable}"
        elif offset or choice < 0.5:
            op, function = "addi", lambda i: i + offset
            text = f"%{variable}, %{self.constant(block, offset)}"
        elif choice < 0.6:
            op, function = "muli", lambda i: i
            text = f"%{variable}, %{self.constant(block, 1)}"
        else:
            return variable
        return self.index(block, f"arith.{op} {text}", lambda run: function(run.values[variable]))

    def loop(self, block, scope, depth, layers=(), groups=()):
        """A loop that appends to each of `layers` of `groups`, or is over no layers of the cache."""
        rng = self.random
        first = layers[0] if layers else rng.randint(0, 2)
        last = layers[-1] + 1 if layers else first + rng.choice([0, 1, 2, 2, 3])
        step = rng.choice([s for s in (1, 2) if len(layers) % s == 0])
        bounds = [self.constant(block, value) for value in (first, last, step)]
        carried = [self.pick(scope) for _ in range(rng.choice([1, 2, 2, 3]))]
        if rng.random() < 0.5:
            carried.append(self.linear(block, scope, carried[0], carried[0][1]))
        variable, result = self.fresh(), self.fresh()
        mine = [(self.fresh(), width) for _, width in carried]
        results = [(f"{result}#{i}", width) for i, (_, width) in enumerate(carried)]
        types = [self.rows(width) for _, width in carried]
        initial = [f"%{name} = %{value}" for (name, _), (value, _) in zip(mine, carried)]
        if layers:
            inner = self.fresh()
            types.append("!cache")
            initial.append(f"%{inner} = %{self.cache}")
            self.cache = inner

        before, self.lines = self.lines, []
        body, within = [], Scope(scope.rows + mine, scope.indices + [(variable, max(last, 1))])
        for row in mine:
            if rng.random() < 0.4:
                within.rows.append(self.combine(body, within, row))
                if rng.random() < 0.7:  # a row's last use
                    within.rows.remove(row)
        for _ in range(rng.randint(0, 2)):
            self.anything(body, within, depth + 1)
        for offset in range(step if layers else 0):
            for group in groups:
                self.visit(body, within, group, self.layer(body, variable, offset, first, last, step))
            self.anything(body, within, depth + 1)
        for _ in range(rng.randint(0, 2)):
            self.anything(body, within, depth + 1)
        yielded = self.hand_on(body, within, carried)

        gives = [f"%{name}" for name, _ in yielded]
        if layers:
            gives.append(f"%{self.cache}")
            self.cache = f"{result}#{len(carried)}"
        self.lines = before + [
            f"%{result}:{len(types)} = scf.for %{variable} = %{bounds[0]} to %{bounds[1]} step %{bounds[2]} "
            f"iter_args({', '.join(initial)}) -> ({', '.join(types)}) {{",
            *(f"  {line}" for line in self.lines), f"  scf.yield {', '.join(gives)} : {', '.join(types)}", "}"]

        def statement(run):
            state = [run.values[name] for name, _ in carried]
            for run.values[variable] in range(first, last, step):
                run.values.update(zip([name for name, _ in mine], state))
                for inside in body:
                    inside(run)
                state = [run.values[name] for name, _ in yielded]
            run.values.update(zip([name for name, _ in results], state))
        block.append(statement)
        scope.rows += results

    def branch(self, block, scope, depth):
        """Rows that one branch or the other gives, by the number of an iteration."""
        index, bound = self.random.choice(scope.indices)
        comparison = self.random.choice(list(COMPARISONS))
        value = self.random.randint(0, bound)
        number = self.constant(block, value)
        condition, result = self.fresh(), self.fresh()
        carried = [self.pick(scope) for _ in range(self.random.choice([1, 2, 2, 3]))]
        types = ", ".join(self.rows(width) for _, width in carried)
        before, text, branches = self.lines, [], []
        for _ in range(2):
            self.lines = []
            body, within = [], Scope(scope.rows, scope.indices)
            for _ in range(self.random.randint(0, 2)):
                self.anything(body, within, depth + 1)
            yielded = self.hand_on(body, within, carried)
            branches.append((body, yielded))
            text.append([*(f"  {line}" for line in self.lines),
                         f"  scf.yield {', '.join(f'%{name}' for name, _ in yielded)} : {types}"])
        self.lines = before + [
            f"%{condition} = arith.cmpi {comparison}, %{index}, %{number} : index",
            f"%{result}:{len(carried)} = scf.if %{condition} -> ({types}) {{", *text[0], "} else {", *text[1], "}"]

        def statement(run):
            body, yielded = branches[0 if COMPARISONS[comparison](run.values[index], value) else 1]
            for inside in body:
                inside(run)
            run.values.update({f"{result}#{i}": run.values[name] for i, (name, _) in enumerate(yielded)})
        block.append(statement)
        scope.rows += [(f"{result}#{i}", width) for i, (_, width) in enumerate(carried)]

    def make(self, block):
        rng, logits = self.random, self.rows(self.vocab)
        self.lines += [
            "func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, "
            f"%cache: !cache) -> ({logits}, !cache) {{",
            "%positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>"]
        table, scope = self.declare([self.vocab, self.width]), Scope()
        scope.rows.append((self.emit(
            block, f"kvc.embed %tokens in @{table} : tensor<?xi32> -> {self.rows(self.width)}",
            lambda run: run.weight(table)[run.values["tokens"]]), self.width))
        for _ in range(rng.randint(1, 3)):
            self.anything(block, scope, 0)
        left = {group: range(group.layers) for group in self.groups}
        while left:
            group = rng.choice(list(left))
            some = left[group][:rng.randint(1, len(left[group]))]
            # One loop can go over the same layers of several groups.
            groups = [other for other in left if other is group or
                      left[other][:len(some)] == some and rng.random() < 0.5]
            if len(some) > 1 or rng.random() < 0.7:
                self.loop(block, scope, 0, some, groups)
            else:
                for other in groups:
                    self.visit(block, scope, other, self.constant(block, some[0]))
            left = {other: layers[len(some) * (other in groups):] for other, layers in left.items()}
            left = {other: layers for other, layers in left.items() if layers}
            if rng.random() < 0.4:  # to any layer that the step appended to
                other = rng.choice([g for g in self.groups if g not in left or left[g][0]])
                layer = rng.randrange(left[other][0] if other in left else other.layers)
                scope.rows.append(self.attend(block, scope, other, self.constant(block, layer)))
            if rng.random() < 0.5:
                self.anything(block, scope, 0)
        last, width = scope.rows[-1]
        chosen = self.emit(block, f"kvc.select %{last} rows %outputs : {self.rows(width)}, tensor<?xi64> -> "
                           f"{self.rows(width)}", lambda run: run.values[last])
        normed = self.norm(block, Scope(), (chosen, width))
        self.logits, _ = self.linear(block, Scope(), normed, self.vocab)
        self.lines += [f"%after = kvc.advance %{self.cache} by %sequences : !cache, tensor<?xi32>",
                       f"return %{self.logits}, %after : {logits}, !cache", "}"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}: {done.stderr}"


def check(program, folder):
    """How far the libraries are from the program, in units of what they may be; None
    for a program that tells nothing."""
    rng = program.random
    tokens = [rng.randrange(program.vocab) for _ in range(program.length)]
    exact = Run(program, tokens).logits
    tolerance = 4 * max(np.abs(Run(program, tokens, 4, seed).logits - exact).max() for seed in range(3))
    if not tolerance < 1e-2 * np.abs(exact).max():
        return None
    path, worst = f"{folder}/{program.seed}.mlir", 0
    with open(path, "w") as file:
        file.write(program.text())
    for form in FORMS:
        out, logits = f"{folder}/{program.seed}.{form}", f"{folder}/{program.seed}.{form}.npy"
        run("kvc-opt", path, f"--emit={form}", "--target=cpu:native", "-o", out)
        chunks = ",".join(str(rng.randint(1, 9)) for _ in range(4))
        run("kvc-run", out, "--ids", ",".join(map(str, tokens)), "-n", "0", "--chunks", chunks, "--poison",
            "--logits", logits)
        off = np.abs(np.load(logits) - exact).max()
        assert off <= tolerance, f"{path}: {form}: expected logits within {tolerance:.3g}, but got {off:.3g}"
        worst = max(worst, off / tolerance)
    return worst


def main(count, seed, folder):
    worst, done = 0, 0
    while done < count:
        found = check(Program(seed), folder)
        seed += 1
        if found is not None:
            worst, done = max(worst, found), done + 1
    print(f"{count} programs agree, off by at most {worst:.2f} of what they may be")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
