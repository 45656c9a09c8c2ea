#!/usr/bin/env python3
"""Makes a tiny random GPT-2 directory, as published ones are laid out.

    make_gpt2.py DIR [--seed 0]

Matrices stand in Conv1D order [inputs, outputs], Q, K and V are fused, names
have no `transformer.` in front, and the causal masks that old files carry as
buffers (`h.0.attn.bias`) are there too. The widths are awkward on purpose.
"""

import argparse
import json
import os

import numpy as np

from safetensors_file import write_safetensors

VOCAB, WIDTH, HEADS, LAYERS, POSITIONS = 61, 40, 5, 3, 48
CONFIG = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": VOCAB,
    "n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": POSITIONS,
    "n_ctx": POSITIONS, "n_inner": None, "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-05, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1,
    "initializer_range": 0.02, "bos_token_id": 60, "eos_token_id": 60, "tie_word_embeddings": True,
    "torch_dtype": "float32", "transformers_version": "4.40.0", "use_cache": True,
}


def make_tensors(seed):
    random = np.random.default_rng(seed)

    def normal(scale, *shape):
        return random.normal(0, scale, shape).astype(np.float32)

    tensors = {"wte.weight": normal(1, VOCAB, WIDTH), "wpe.weight": normal(0.5, POSITIONS, WIDTH)}

    def conv1d(name, inputs, outputs):
        tensors[name + ".weight"] = normal(inputs ** -0.5, inputs, outputs)
        tensors[name + ".bias"] = normal(0.1, outputs)

    def norm(name):
        tensors[name + ".weight"] = 1 + normal(0.1, WIDTH)
        tensors[name + ".bias"] = normal(0.1, WIDTH)

    for i in range(LAYERS):
        layer = f"h.{i}."
        norm(layer + "ln_1")
        tensors[layer + "attn.bias"] = np.tril(np.ones((1, 1, POSITIONS, POSITIONS), np.float32))
        conv1d(layer + "attn.c_attn", WIDTH, 3 * WIDTH)
        conv1d(layer + "attn.c_proj", WIDTH, WIDTH)
        norm(layer + "ln_2")
        conv1d(layer + "mlp.c_fc", WIDTH, 4 * WIDTH)
        conv1d(layer + "mlp.c_proj", 4 * WIDTH, WIDTH)
    norm("ln_f")
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.makedirs(options.directory, exist_ok=True)
    with open(os.path.join(options.directory, "config.json"), "w", encoding="utf-8") as file:
        json.dump(CONFIG, file, indent=2)
    write_safetensors(os.path.join(options.directory, "model.safetensors"), make_tensors(options.seed))


if __name__ == "__main__":
    main()
