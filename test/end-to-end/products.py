"""Whether a linear layer's bits are those of its order of products: products.py FOLDER.

The logits of a token are its row of the table times a matrix, plus a bias.
"""

import os
import subprocess
import sys

import numpy as np

from safetensors_file import write_safetensors

TOKENS, OUTPUTS, BLOCK = 19, 53, 256
IDS = np.arange(TOKENS)
MODEL = """
!cache = !kvc.cache<layers 1, kv_heads 1, capacity {tokens}, key 1, value 1, f32, #kvc.contiguous>
!rows = tensor<?x{inputs}xf32>
module @product attributes {{kvc.weights = "{weights}"}} {{
  kvc.weight @table : tensor<{outputs}x{inputs}xf32> from "table"
  kvc.weight @key : tensor<1x{inputs}xf32> from "key"
  kvc.weight @matrix : tensor<{outputs}x{inputs}x{kind}> from "matrix"
  kvc.weight @bias : tensor<{outputs}xf32> from "bias"
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (tensor<?x{outputs}xf32>, !cache) {{
    %layer = arith.constant 0 : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %tokens in @table : tensor<?xi32> -> !rows
    %k = kvc.linear %x by @key : !rows -> tensor<?x1xf32>
    %next = kvc.append %k, %k to %cache layer %layer at %positions of %sequences : tensor<?x1xf32>, tensor<?x1xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %seen = kvc.attend %k to %next layer %layer at %positions of %sequences scale 1.0 : tensor<?x1xf32>, !cache, tensor<?xi64>, tensor<?xi32>
    %after = kvc.advance %next by %sequences : !cache, tensor<?xi32>
    %chosen = kvc.select %x rows %outputs : !rows, tensor<?xi64> -> !rows
    %logits = kvc.linear %chosen by @matrix bias @bias : !rows -> tensor<?x{outputs}xf32>
    return %logits, %after : tensor<?x{outputs}xf32>, !cache
  }}
}}
"""


def fma(x, y, z):
    """x * y + z of f32 in one rounding: the sum in f64, rounded to odd, so that
    rounding it to f32 is right."""
    product = x.astype(np.float64) * y  # exact
    total = product + z
    back = total - product
    error = (product - (total - back)) + (z - back)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    bits += np.where((error != 0) & (bits % 2 == 0), away, 0)
    return total.astype(np.float32)


def product(rows, matrix, bias):
    total = np.broadcast_to(bias, (len(rows), len(matrix)))
    for first in range(0, rows.shape[1], BLOCK):
        block = np.zeros_like(total)
        for k in range(first, min(first + BLOCK, rows.shape[1])):
            block = fma(rows[:, None, k], matrix[None, :, k], block)
        total = total + block
    return total


def check(folder, inputs, kind):
    random = np.random.default_rng(inputs)
    tensors = {name: random.normal(size=shape).astype(np.float32)
               for name, shape in (("table", (OUTPUTS, inputs)), ("key", (1, inputs)),
                                   ("matrix", (OUTPUTS, inputs)), ("bias", (OUTPUTS,)))}
    # Numbers that bf16 and f16 hold.
    tensors["matrix"] = (tensors["matrix"].view(np.uint32) & 0xFFFF0000).view(np.float32).astype(np.float16).astype(np.float32)
    weights, model, out = (os.path.join(folder, name) for name in ("model.safetensors", "product.mlir", "out"))
    write_safetensors(weights, tensors)
    with open(model, "w") as file:
        file.write(MODEL.format(tokens=TOKENS, inputs=inputs, outputs=OUTPUTS, kind=kind, weights=weights))
    expected = product(tensors["table"][IDS], tensors["matrix"], tensors["bias"])
    for target in "x86-64-v3", "native":
        subprocess.run(["kvc-opt", model, f"--target=cpu:{target}", "-o", out], check=True)
        for chunks in "1", str(TOKENS):
            logits = os.path.join(folder, "logits.npy")
            subprocess.run(["kvc-run", out, "--ids", ",".join(map(str, IDS)), "-n", "0", "--chunks", chunks,
                            "--logits", logits], check=True, stdout=subprocess.DEVNULL)
            got = np.load(logits)
            wrong = np.argwhere(got.view(np.uint32) != expected.view(np.uint32))
            assert not len(wrong), (f"{kind}, {inputs} inputs, {target}, chunks of {chunks}: {len(wrong)} differ, first "
                                    f"{wrong[0]}: expected {expected[tuple(wrong[0])]!r}, but got {got[tuple(wrong[0])]!r}")
    print(f"{kind}, {inputs} inputs: the same bits")


for kind, inputs in ("f32", 5), ("f32", 256), ("f32", 600), ("f16", 600), ("bf16", 600):
    check(sys.argv[1], inputs, kind)
