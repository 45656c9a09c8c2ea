#!/usr/bin/env python3
"""Writes a small GGUF Llama of random blocks: every bit of a quant is used.

Rows are of 256 and 512 elements, whole blocks of each type; f16 and bf16 are types, too. Of
several types some matrices take the next one from layer to layer, as in the files
that people have; all others are of the first.
"""

import argparse

import numpy as np

from gguf_file import TYPES
from number_types import to_bf16
from write_gguf import write_gguf

WIDTH, HIDDEN, VOCAB, HEADS, KV_HEADS = 256, 512, 67, 4, 2
DIFFERING = "attn_v", "ffn_gate", "ffn_down"
NUMBERS = {name.lower(): (number, elements, size)
           for number, (name, elements, size, _) in TYPES.items()}
# Where the f16 scales of a block are, and how many elements share one.
HALVES = {"q4_0": [0], "q5_0": [0], "q8_0": [0], "q4_1": [0, 2], "q5_1": [0, 2],
          "q4_k": [0, 2], "q5_k": [0, 2], "q6_k": [208]}
# The product of what a scale is multiplied with, for numbers of about 1 / 16.
SIZES = {"q4_0": 8, "q5_0": 16, "q8_0": 128, "q4_1": 8, "q5_1": 16,
         "q4_k": 8 * 40, "q5_k": 16 * 40, "q6_k": 32 * 90}

random = np.random.default_rng(5)


def blocks(shape, kind):
    number, elements, size = NUMBERS[kind]
    if elements == 1:
        numbers = random.normal(0, 1 / 16, shape)
        return shape, number, (to_bf16(numbers) if kind == "bf16" else numbers.astype(np.float16)).tobytes()
    count = shape[0] * shape[1] // elements
    data = random.integers(0, 256, (count, size), np.uint8)
    for at in HALVES[kind]:
        scales = random.uniform(0.05, 0.1, count) / SIZES[kind]
        # A minimum makes good for quants without a sign.
        scales *= -SIZES[kind] / 2 if at == 2 and kind in ("q4_1", "q5_1") else 1
        scales *= 2 ** (4 if kind == "q5_k" else 3) if at == 2 and kind.endswith("_k") else 1
        data[:, at:at + 2] = scales.astype(np.float16).view(np.uint8).reshape(count, 2)
    return shape, number, data.tobytes()


def ones(width):
    return (width,), 0, np.ones(width, np.float32).tobytes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("types", nargs="+")
    parser.add_argument("--layers", type=int, default=3)
    options = parser.parse_args()
    types = options.types
    tensors = {"token_embd.weight": blocks((VOCAB, WIDTH), types[0]), "output_norm.weight": ones(WIDTH)}
    keys = KV_HEADS * WIDTH // HEADS
    for i in range(options.layers):
        shapes = {"attn_q": (WIDTH, WIDTH), "attn_k": (keys, WIDTH), "attn_v": (keys, WIDTH),
                  "attn_output": (WIDTH, WIDTH), "ffn_gate": (HIDDEN, WIDTH),
                  "ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN)}
        for name, shape in shapes.items():
            kind = types[i % len(types) if name in DIFFERING else 0]
            tensors[f"blk.{i}.{name}.weight"] = blocks(shape, kind)
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{i}.{name}.weight"] = ones(WIDTH)
    write_gguf(options.path, {
        "general.architecture": "llama", "llama.block_count": options.layers, "llama.context_length": 64,
        "llama.embedding_length": WIDTH, "llama.feed_forward_length": HIDDEN,
        "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": 10000.0,
        "llama.vocab_size": VOCAB}, tensors)


main()
