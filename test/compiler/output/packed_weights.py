"""Compares a packed weight file with the model's own tensors.

    packed_weights.py MODEL FOLDER [kvc-opt option ...]

compiles MODEL to FOLDER and checks every tensor of the packed file by the
packing that `--emit=fused` shows: a matrix [rows, columns] in panels of 16 is
[rows/16, columns, 16], a vector is padded to 16s, and padding is zero. Panels of
0 are row-major. A matrix in blocks of 32 columns is in panels of 32 rows: for each
block scales, minima, quants.
"""

import ctypes
import json
import os
import re
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "reference"))
import files
import gguf_file
from number_types import BLOCKS
from safetensors_file import Safetensors

model, folder, *options = sys.argv[1:]
reference = "--emit=reference" in options
subprocess.run(["kvc-opt", model, "-o", folder, "--target=cpu:x86-64-v3", *options], check=True)
name, = (f.removesuffix(".safetensors") for f in os.listdir(folder) if f.endswith(".safetensors"))
path = os.path.join(folder, name + ".safetensors")
packed = Safetensors(path)

# Tensors follow each other without holes, from a multiple of 64 bytes.
assert packed.start % 64 == 0, packed.start
end = 0
for entry in sorted(packed.header.values(), key=lambda e: e["data_offsets"]):
    assert entry["data_offsets"][0] == end, (entry, end)
    end = entry["data_offsets"][1]
assert packed.start + end == len(packed.bytes), (end, len(packed.bytes))

emitted = subprocess.run(["kvc-opt", model, "--emit=fused",
                          *(o for o in options if not o.startswith("--emit"))],
                         check=True, capture_output=True, text=True).stdout
weights = re.findall(r'kvc\.weight @(\S+) : tensor<([0-9x]+)x(f64|f32|f16|bf16|!kvc\.q[0-9_]+)> from "([^"]+)"( transposed)?'
                     r'(?: first_row (\d+))?(?: paired_heads \d+)? packed <offset (\d+), panel (16|32)>', emitted)
assert len(weights) == emitted.count("kvc.weight @"), "an unread line"
assert {w[0] for w in weights} | {n for n in packed.header if n.startswith("__padding__.")} == set(packed.header)

arithmetic = "f64" if "xf64>" in emitted else "f32"
stored = next((o.split("=")[1] for o in options if o.startswith("--weights=")), arithmetic)
if os.path.isdir(model):
    own = files.Weights(Safetensors(os.path.join(model, "model.safetensors")), arithmetic, stored)
else:
    spec = files.load_json(model)
    if spec["weights"].startswith("random:"):
        file = files.RandomFile(int(spec["weights"].split(":")[1]), files.spec_shapes(spec))
    else:
        file = Safetensors(os.path.join(os.path.dirname(model), spec["weights"]))
    own = files.Weights(file, arithmetic, stored)


def layer_of(source, layer, rows, transposed, first_row):
    array = own.array(source.replace("{}", str(layer)))
    array = array.T if transposed else array
    return array[int(first_row or 0):][:rows]


def from_panels(kind, data, columns):
    """The bytes of blocks in panels of 32 rows -> [rows, columns]."""
    header = 128 if kind == "q4_1" else 64
    quants = 1024 if kind == "q8_0" else 512
    blocks = data.reshape(-1, columns // 32, header + quants)
    half = blocks[..., :header].copy().view(np.float16).astype(np.float64)
    quants = blocks[..., header:].reshape(*blocks.shape[:2], -1, 32, 4)
    if kind == "q8_0":
        quants = quants.astype(np.float64) - 128
    else:
        quants = np.concatenate([quants & 15, quants >> 4], axis=2).astype(np.float64)
        quants -= 8 if kind == "q4_0" else 0
    # [panel, block, group, row, 4] -> [panel, block, row, 32]
    quants = quants.transpose(0, 1, 3, 2, 4).reshape(*blocks.shape[:2], 32, 32)
    numbers = half[..., :32, None] * quants
    if kind == "q4_1":
        numbers = (numbers + half[..., 32:, None]).astype(np.float32).astype(np.float64)
    return numbers.transpose(0, 2, 1, 3).reshape(-1, columns)


def from_rows(kind, data, shape):
    return TYPES[kind](data.reshape(-1, BYTES[kind])).reshape(shape)


TYPES = {name.lower(): decode for name, _, _, decode in gguf_file.TYPES.values()}
BYTES = {name.lower(): size for name, _, size, _ in gguf_file.TYPES.values()}

for symbol, shape, kind, source, transposed, first_row, offset, panel in weights:
    shape = [int(n) for n in shape.split("x")]
    kind = kind.removeprefix("!kvc.")
    layers = shape.pop(0) if "{}" in source else 1
    if kind in BLOCKS:
        assert packed.header[symbol]["dtype"] == "U8" and panel == "32", symbol
        begin, end = packed.header[symbol]["data_offsets"]
        data = packed.bytes[packed.start + begin:packed.start + end].reshape(layers, -1)
        for layer in range(layers):
            expected = layer_of(source, layer, shape[0], transposed, first_row)
            if reference:
                found = from_rows(kind, data[layer], shape)
            else:
                found = from_panels(kind, data[layer], shape[1])
                expected = np.pad(expected, [(0, -shape[0] % 32), (0, 0)])
            assert np.array_equal(found, expected), f"{symbol} of layer {layer}"
        continue
    assert packed.header[symbol]["dtype"] == kind.upper() and panel == "16", symbol
    found = packed[symbol].reshape(layers, -1)
    if not reference:
        assert packed.header[symbol]["data_offsets"][0] == int(offset), symbol
    for layer in range(layers):
        expected = layer_of(source, layer, shape[0], transposed, first_row)
        if not reference:
            # rows up to a multiple of 16, then 16 of them side by side
            padding = [(0, -shape[0] % 16)] + [(0, 0)] * (len(shape) - 1)
            expected = np.pad(expected, padding)
            if len(shape) == 2:
                expected = expected.reshape(-1, 16, shape[1]).transpose(0, 2, 1)
        assert np.array_equal(found[layer], expected.ravel()), f"{symbol} of layer {layer}"
for tensor in packed.header:
    assert not tensor.startswith("__padding__.") or not packed.bytes[
        packed.start + packed.header[tensor]["data_offsets"][0]:
        packed.start + packed.header[tensor]["data_offsets"][1]].any(), tensor
print(f"tensors as the model has them: {len(weights)}")


class Library(ctypes.Structure):
    """The first fields of kvc_library (abi.h)."""

    _fields_ = [("abi_version", ctypes.c_uint32), ("struct_size", ctypes.c_uint32),
                ("name", ctypes.c_char_p), ("compiler", ctypes.c_char_p),
                ("identity", ctypes.c_uint8 * 32)]


accessor = ctypes.CDLL(os.path.join(os.path.abspath(folder), f"lib{name}.so"))[f"{name}_library"]
accessor.restype = ctypes.POINTER(Library)
with open(path, "rb") as file:
    length = int.from_bytes(file.read(8), "little")
    metadata = json.loads(file.read(length))["__metadata__"]
library = accessor().contents
assert metadata["kvc_identity"] == bytes(library.identity).hex(), metadata
assert metadata["kvc_abi"] == str(library.abi_version), metadata
print("identity as in the descriptor")
