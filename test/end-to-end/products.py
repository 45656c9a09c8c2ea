"""Whether a linear layer's bits are those of its order of products: products.py FOLDER.

The logits of a token are twice its row of the table times a matrix, plus a bias.
"""

import json
import os
import subprocess
import sys

import numpy as np

from cells import open_library
from safetensors_file import write_safetensors

TOKENS, OUTPUTS, BLOCK = 19, 53, 256
IDS = np.arange(TOKENS)
PANEL, SUB = 32, 32  # rows and elements of a block of small integers
MODEL = """
!cache = !kvc.cache<layers 1, kv_heads 1, capacity {tokens}, key 1, value 1, f32, #kvc.contiguous>
!rows = tensor<?x{inputs}xf32>
module @product attributes {{kvc.numerics = "{numerics}", kvc.weights = "{weights}"}} {{
  kvc.weight @table : tensor<{outputs}x{inputs}xf32> from "table"
  kvc.weight @key : tensor<1x{inputs}xf32> from "key"
  kvc.weight @matrix : tensor<{outputs}x{inputs}x{type}> from "matrix"
  kvc.weight @bias : tensor<{outputs}xf32> from "bias"
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x{outputs}xf32>, !cache) {{
    %layer = arith.constant 0 : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %half = kvc.embed %tokens in @table : tensor<?xi32> -> !rows
    %x = arith.addf %half, %half : !rows
    %k = kvc.linear %x by @key : !rows -> tensor<?x1xf32>
    %next = kvc.append %k, %k to %cache layer %layer at %positions of %sequences : tensor<?x1xf32>, tensor<?x1xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %seen = kvc.attend %k to %next layer %layer at %positions of %sequences scale 1.0 : tensor<?x1xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %next by %sequences : !cache, tensor<?xi32>
    %chosen = kvc.select %x rows %outputs : !rows, tensor<?xi64> -> !rows
    %logits = kvc.linear %chosen {rounding} by @matrix bias @bias : !rows -> tensor<?x{outputs}xf32>
    return %logits, %after : tensor<?x{outputs}xf32>, !cache
  }}
}}
"""


def fma_odd(x, y, z):
    """x * y + z of f32 in f64, rounded to odd, so that rounding it to f32 is right."""
    product = x.astype(np.float64) * y  # exact
    total = product + z
    back = total - product
    error = (product - (total - back)) + (z - back)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    bits += np.where(np.isfinite(error) & (error != 0) & (bits % 2 == 0), away, 0)
    return total


def fma(x, y, z):
    """x * y + z of f32 in one rounding."""
    return fma_odd(x, y, z).astype(np.float32)


def flush(x):
    """Denormals of f32 become 0, with their sign."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def flushed_fma(x, y, z):
    """The same where denormals are 0, before and after: results that are tiny when
    they are rounded as if there were no smallest exponent."""
    total = fma_odd(flush(x), flush(y), flush(z))
    tiny = np.abs(total) < 2.0**-126 - 2.0**-151
    return np.where(tiny, np.copysign(0, total), total).astype(np.float32)


def flushed_add(x, y):
    return flush(flush(x) + flush(y))


def bf16_parts(numbers, count):
    """Numbers whose sum it is, the smallest first."""
    parts = []
    for _ in range(count - 1):
        parts.append((numbers.view(np.uint32) & 0xFFFF0000).view(np.float32))
        numbers = flushed_add(numbers, -parts[-1])
    return [*reversed([*parts, numbers])]


def narrowed(numbers):
    """Rounded to bf16, to nearest and ties to even."""
    bits = numbers.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def tiles_sums(rows, matrix, input_parts, weight_parts):
    """Of a block of inputs, in the class tiles."""
    pad = [(0, 0), (0, -rows.shape[1] % 32)]
    x = [np.pad(part, pad) for part in bf16_parts(rows, input_parts)]
    w = [np.pad(part, pad) for part in bf16_parts(matrix, weight_parts)]
    sums = np.zeros((len(rows), len(matrix)), np.float32)
    for first in range(0, x[0].shape[1], 32):
        for j in range(weight_parts):
            for i in range(max(0, weight_parts - 1 - j), input_parts):
                chains = [np.zeros_like(sums), np.zeros_like(sums)]
                for k in range(first, first + 32):
                    chains[k % 2] = flushed_fma(x[i][:, None, k], w[j][None, :, k], chains[k % 2])
                sums = flushed_add(sums, flushed_add(*chains))
    return sums


def float_sums(rows, matrix):
    """Of a block of inputs."""
    sums = np.zeros((len(rows), len(matrix)), np.float32)
    for k in range(rows.shape[1]):
        sums = fma(rows[:, None, k], matrix[None, :, k], sums)
    return sums


def rounded(rows):
    """Whole numbers and their scales: [rows][blocks][32], [rows][blocks]."""
    blocks = rows.reshape(len(rows), -1, SUB)
    with np.errstate(all="ignore"):
        scales = np.abs(blocks).max(2) / np.float32(127)
        whole = np.rint(blocks / scales[..., None])
    scales = np.where(np.isfinite(scales), scales, np.float32(np.nan))
    return np.where(scales[..., None] > 0, whole.clip(-127, 127), 0).astype(np.int64), scales


def integer_sums(rows, matrix):
    quants, scales, minima = matrix
    x, row_scales = rounded(rows)
    sums = np.zeros((len(rows), len(quants)), np.float32)
    for block in range(x.shape[1]):
        integers = (x[:, block] @ quants[:, block].T).astype(np.float32)
        sums = fma(integers, scales[None, :, block] * row_scales[:, None, block], sums)
    if minima is not None:
        for block in range(x.shape[1]):
            total = row_scales[:, block] * x[:, block].sum(1).astype(np.float32)
            sums = fma(minima[None, :, block], total[:, None], sums)
    return sums


def product(rows, matrix, bias, sums, add=np.add):
    total = np.broadcast_to(bias, (len(rows), len(bias)))
    for first in range(0, rows.shape[1], BLOCK):
        part = slice(first, first + BLOCK)
        subs = slice(first // SUB, (first + BLOCK) // SUB)
        cut = [m if m is None else m[:, subs] for m in matrix] if sums is integer_sums else matrix[:, part]
        total = add(total, sums(rows[:, part], cut))
    return np.where(np.isnan(total), np.float32(np.nan), total)


def packed_matrix(path, kind, inputs):
    """Quants [rows][blocks][32], scales and minima or None [rows][blocks]: from the
    packed file (Storage::pack)."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        begin, end = json.loads(file.read(length))["matrix"]["data_offsets"]
        file.seek(8 + length + begin)
        data = np.frombuffer(file.read(end - begin), np.uint8)
    words = SUB // 4 if kind == "q8_0" else SUB // 8
    headers = 2 if kind == "q4_1" else 1
    data = data.reshape(-1, inputs // SUB, 2 * PANEL * headers + 4 * PANEL * words)

    def by_row(array):  # [panels][blocks][32]... to [rows][blocks]...
        return array.swapaxes(1, 2).reshape(-1, inputs // SUB, *array.shape[3:])[:OUTPUTS]

    halves = [by_row(data[..., 64 * i:64 * (i + 1)].copy().view(np.float16).astype(np.float32)) for i in range(headers)]
    quants = data[..., 64 * headers:].reshape(*data.shape[:2], words, PANEL, 4).swapaxes(2, 3)
    quants = by_row(quants.reshape(*data.shape[:2], PANEL, 4 * words)).astype(np.int64)
    if kind != "q8_0":
        quants = np.concatenate([quants & 15, quants >> 4], axis=2)
    return quants - {"q8_0": 128, "q4_0": 8, "q4_1": 0}[kind], halves[0], halves[1] if headers == 2 else None


def features():
    with open("/proc/cpuinfo") as file:
        return set(next(line for line in file if line.startswith("flags")).split())


def has_instructions(uses_dots):
    """Of those that a test's compiler knows by their definition."""
    return "amx_tile" in features() or uses_dots and "avx512_bf16" in features()


def levels(folder):
    """The library's that this machine has, the best one first."""
    library, _ = open_library(folder)
    has = features()
    return [kernels.level.decode() for kernels in (library.kernels[i] for i in range(library.kernels_count))
            if set(kernels.features.decode().split()) <= has]


def check(folder, inputs, kind, numerics="fma", is_narrowed=False):
    random = np.random.default_rng(inputs)
    tensors = {name: random.normal(size=shape).astype(np.float32)
               for name, shape in (("table", (OUTPUTS, inputs)), ("key", (1, inputs)),
                                   ("matrix", (OUTPUTS, inputs)), ("bias", (OUTPUTS,)))}
    is_float = kind[0] != "q"
    if is_float:  # numbers that bf16 and f16 hold
        bits = tensors["matrix"].view(np.uint32) & 0xFFFF0000
        tensors["matrix"] = bits.view(np.float32).astype(np.float16).astype(np.float32)
        if numerics == "tiles":
            if kind == "f32":  # with digits for three parts
                tensors["matrix"] *= random.normal(size=tensors["matrix"].shape).astype(np.float32)
            if kind != "f16":  # products around the smallest normal number
                tensors["matrix"][::3] *= np.float32(2.0**-62)
            tensors["bias"][::2] = 0
            tensors["table"][1] *= np.float32(2.0**-64)
            tensors["table"][2] *= np.float32(2.0**-124)  # denormals, too
            tensors["table"][3, min(7, inputs - 1)] = 3e38  # infinite when it is doubled
            tensors["table"][4] *= np.float32(2.0) ** random.integers(-80, 0, inputs)
    else:
        tensors["table"][0, :SUB] = 0
        tensors["table"][1] *= np.float32(1e-40)  # its scales are too small for division
        tensors["table"][2] *= np.float32(2e-45)  # and these are 0
        tensors["table"][3, 7] = 3e38  # infinite when it is doubled
    weights, model, out = (os.path.join(folder, name) for name in ("model.safetensors", "product.mlir", "out"))
    write_safetensors(weights, tensors)
    with open(model, "w") as file:
        file.write(MODEL.format(tokens=TOKENS, inputs=inputs, outputs=OUTPUTS, weights=weights,
                                numerics=numerics, type=kind if is_float else f"!kvc.{kind}",
                                rounding="narrowed" if is_narrowed else "" if is_float else "rounded"))
    # Dot products and tiles of bf16 by the definition of their instructions, and, where
    # the machine has them, as they are.
    compilers = [["kvc-test-opt", "--model-tiles"]] + [["kvc-opt"]] * has_instructions(is_narrowed and numerics == "tiles")
    subprocess.run([*compilers[0], model, "-o", out], check=True)
    with np.errstate(over="ignore"):
        rows = tensors["table"][IDS] * np.float32(2)
    matrix = tensors["matrix"] if is_float else packed_matrix(os.path.join(out, "product.safetensors"), kind, inputs)
    with np.errstate(all="ignore"):
        if numerics == "tiles":
            rows = flush(flush(tensors["table"][IDS]) * np.float32(2))
        if is_narrowed:
            rows = narrowed(rows)
        if numerics == "tiles":
            parts = 1 if is_narrowed else 3, {"bf16": 1, "f16": 2, "f32": 3}[kind]
            expected = product(rows, matrix, tensors["bias"], lambda x, w: tiles_sums(x, w, *parts), flushed_add)
        else:
            expected = product(rows, matrix, tensors["bias"], float_sums if is_float else integer_sums)
    if not is_float or numerics == "tiles":
        assert (~np.isfinite(expected[3]) if is_narrowed else np.isnan(expected[3])).all()
        assert np.isfinite(np.delete(expected, 3, 0)).all()
    runs = [(level, out) for level in levels(out)]
    for compiler in compilers[1:]:
        subprocess.run([*compiler, model, "-o", out + "-native"], check=True)
        runs.append((levels(out + "-native")[0], out + "-native"))
    for level, out in runs:
        for chunks in "1", "2", "3", str(TOKENS):  # a row, a few and more
            logits = os.path.join(folder, "logits.npy")
            subprocess.run(["kvc-run", out, "--ids", ",".join(map(str, IDS)), "-n", "0", "--chunks", chunks,
                            "--cpu", level, "--logits", logits], check=True, stdout=subprocess.DEVNULL)
            got = np.load(logits)
            wrong = np.argwhere(got.view(np.uint32) != expected.view(np.uint32))
            assert not len(wrong), (f"{kind}, {inputs} inputs, {numerics}, {level}, chunks of {chunks}: {len(wrong)} differ, first "
                                    f"{wrong[0]}: expected {expected[tuple(wrong[0])]!r}, but got {got[tuple(wrong[0])]!r}")
    print(f"{numerics}, {'narrowed by ' * is_narrowed}{kind}, {inputs} inputs: the same bits")


for kind, inputs in (("f32", 5), ("f32", 256), ("f32", 600), ("f16", 600), ("bf16", 600), ("q8_0", 32), ("q8_0", 608),
                     ("q4_0", 256), ("q4_0", 608), ("q4_1", 608)):
    check(sys.argv[1], inputs, kind)
for kind, inputs in ("bf16", 5), ("bf16", 256), ("bf16", 613), ("f16", 600), ("f32", 600):
    check(sys.argv[1], inputs, kind, "tiles")
for inputs, numerics in (37, "fma"), (5, "tiles"), (256, "tiles"), (613, "tiles"):
    check(sys.argv[1], inputs, "bf16", numerics, is_narrowed=True)
