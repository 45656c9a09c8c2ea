"""A small model with one number of interest among its weights.

    one_number.py make FOLDER TYPE NUMBER
        writes FOLDER/spec.json and FOLDER/model.safetensors, whose tensor
        layers.1.down.weight is of TYPE and has NUMBER at [3, 5]
    one_number.py show PACKED
        prints that number's bits in the packed file PACKED
"""

import json
import os
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "frontend"))
import formats

ROW, COLUMN = 3, 5


def bits(dtype, number):
    if dtype == "BF16":  # as its bits: NumPy has no such type
        return int(number, 16).to_bytes(2, "little")
    return np.array(float(number), {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[dtype]).tobytes()


def make(folder, dtype, number):
    os.makedirs(folder, exist_ok=True)
    width, heads, hidden = formats.WIDTH, formats.HEADS * formats.HEAD_DIM, formats.HIDDEN
    keys = formats.KV_HEADS * formats.HEAD_DIM
    tensors = {"token_embedding.weight": (formats.VOCAB, width), "final_norm.weight": (width,),
               "head.weight": (formats.VOCAB, width)}
    for layer in range(formats.LAYERS):
        for name, shape in {"attention_norm": (width,), "query": (heads, width), "key": (keys, width),
                            "value": (keys, width), "output": (width, heads), "feed_forward_norm": (width,),
                            "gate": (hidden, width), "up": (hidden, width), "down": (width, hidden)}.items():
            tensors[f"layers.{layer}.{name}.weight"] = shape
    tensors = {name: formats.f32(*shape) for name, shape in tensors.items()}
    one = bits(dtype, number)
    raw = bytearray(width * hidden * len(one))
    at = (ROW * hidden + COLUMN) * len(one)
    raw[at:at + len(one)] = one
    tensors["layers.1.down.weight"] = (dtype, [width, hidden], bytes(raw))
    spec = dict(formats.spec(), weights="model.safetensors", biases={})
    with open(os.path.join(folder, "spec.json"), "w") as file:
        json.dump(spec, file)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(formats.safetensors_bytes(*formats.safetensors(tensors)))


def show(packed):
    with open(packed, "rb") as file:
        content = file.read()
    length = struct.unpack_from("<Q", content)[0]
    entry = json.loads(content[8:8 + length])["layers.down"]
    layers, panels, columns, lanes = entry["shape"]
    begin, end = entry["data_offsets"]
    size = (end - begin) // (layers * panels * columns * lanes)
    at = 8 + length + begin + (((panels + ROW // lanes) * columns + COLUMN) * lanes + ROW % lanes) * size
    print(f"{entry['dtype']} {int.from_bytes(content[at:at + size], 'little'):#x}")


if __name__ == "__main__":
    {"make": make, "show": show}[sys.argv[1]](*sys.argv[2:])
