#!/usr/bin/env python3
"""Writes a Hugging Face Llama directory as GGUF version 3.

    write_gguf.py DIR OUT.gguf --type f32|f16|bf16|q8_0|q4_0|q4_1

Matrices get the type, other tensors F32. The rows of each head of Q and K (and
their biases) are moved from half order (i, i + d/2) to pair order (2i, 2i + 1),
as GGUF's Llama has them; llama3 scaling becomes the tensor rope_freqs.weight.
There is no tokenizer inside.
"""

import argparse
import os
import struct

import numpy as np

import oracle
from files import load_json
from gguf_file import ARRAY, SCALARS, STRING
from number_types import to_bf16
from safetensors_file import Safetensors

ALIGNMENT = 32
U32, F32 = (next(k for k, form in SCALARS.items() if form == f) for f in "If")


# --- Block formats: array -> bytes, rows of a multiple of 32 ------------------

def blocks_of_32(x):
    if x.shape[-1] % 32:
        raise ValueError(f"expected rows of a multiple of 32, but got {x.shape[-1]}")
    return x.reshape(-1, 32).astype(np.float32)


def inverse(d):
    return np.divide(1, d, out=np.zeros_like(d), where=d != 0)


def pack_nibbles(q):
    return (q[:, :16] | q[:, 16:] << 4).astype(np.uint8)


def halves(d):
    return d.astype(np.float16).view(np.uint8)


def q8_0(x):  # the largest magnitude becomes +-127
    x = blocks_of_32(x)
    d = np.abs(x).max(1, keepdims=True) / 127
    return np.hstack([halves(d), np.rint(x * inverse(d)).astype(np.int8).view(np.uint8)])


def q4_0(x):  # the element of largest magnitude becomes -8
    x = blocks_of_32(x)
    d = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1) / -8
    q = np.clip(np.rint(x * inverse(d)) + 8, 0, 15).astype(np.uint8)
    return np.hstack([halves(d), pack_nibbles(q)])


def q4_1(x):  # from the smallest, 0, to the largest, 15
    x = blocks_of_32(x)
    m = x.min(1, keepdims=True)
    d = (x.max(1, keepdims=True) - m) / 15
    q = np.clip(np.rint((x - m) * inverse(d)), 0, 15).astype(np.uint8)
    return np.hstack([halves(d), halves(m), pack_nibbles(q)])


# Name -> (type number, encoder).
TYPES = {
    "f32": (0, lambda x: x.astype(np.float32)),
    "f16": (1, lambda x: x.astype(np.float16)),
    "q4_0": (2, q4_0),
    "q4_1": (3, q4_1),
    "q8_0": (8, q8_0),
    "bf16": (30, to_bf16),
}


# --- The container ------------------------------------------------------------

def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(key, value):
    if isinstance(value, str):
        return string(key) + struct.pack("<I", STRING) + string(value)
    if isinstance(value, list):
        items = b"".join(map(string, value))
        return string(key) + struct.pack("<IIQ", ARRAY, STRING, len(value)) + items
    kind = F32 if isinstance(value, float) else U32
    return string(key) + struct.pack("<I" + SCALARS[kind], kind, value)


def write_gguf(path, keys, tensors):
    """keys: name -> str, int, float or list of str; tensors: name ->
    (shape, type number, bytes)."""
    infos, offset = b"", 0
    for name, (shape, kind, data) in tensors.items():
        infos += string(name) + struct.pack("<I", len(shape))
        infos += struct.pack(f"<{len(shape)}QIQ", *reversed(shape), kind, offset)
        offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    header += b"".join(metadata(k, v) for k, v in keys.items()) + infos
    with open(path, "wb") as file:
        for part in (header, *(data for _, _, data in tensors.values())):
            file.write(part + b"\0" * (-len(part) % ALIGNMENT))


# --- From Hugging Face --------------------------------------------------------

NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm"}
OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name):
    stem, kind = name.rsplit(".", 1)
    if stem in OUTER:
        return f"{OUTER[stem]}.{kind}"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{NAMES[part]}.{kind}"


def to_pair_order(rows, head_dim):
    heads = rows.reshape(-1, 2, head_dim // 2, *rows.shape[1:])
    return heads.swapaxes(1, 2).reshape(rows.shape)


def convert(directory, kind):
    """-> keys and tensors for write_gguf."""
    config = load_json(os.path.join(directory, "config.json"))
    if config["model_type"] != "llama":
        raise ValueError(f"{directory}: model_type: expected llama, but got {config['model_type']}")
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    rope = config.get("rope_parameters") or dict(config.get("rope_scaling") or {},
                                                 rope_theta=config["rope_theta"])
    scaling = rope.get("rope_type", rope.get("type", "default"))
    keys = {
        "general.architecture": "llama",
        "general.name": os.path.basename(os.path.normpath(directory)),
        "llama.vocab_size": config["vocab_size"],
        "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": config["hidden_size"],
        "llama.block_count": config["num_hidden_layers"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": config.get("num_key_value_heads") or heads,
        "llama.attention.key_length": head_dim,
        "llama.attention.value_length": head_dim,
        "llama.attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "llama.rope.dimension_count": head_dim,
        "llama.rope.freq_base": float(rope["rope_theta"]),
    }
    tensors = {}

    def add(name, array):
        number, encode = TYPES[kind if array.ndim == 2 else "f32"]
        tensors[name] = (array.shape, number, encode(array).tobytes())

    if scaling == "linear":
        keys["llama.rope.scaling.type"] = "linear"
        keys["llama.rope.scaling.factor"] = float(rope["factor"])
    elif scaling == "llama3":
        plain = oracle.rotary_frequencies(head_dim, rope["rope_theta"])
        add("rope_freqs.weight", plain / oracle.llama3_frequencies(
            plain, rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"],
            rope["original_max_position_embeddings"]))
    elif scaling != "default":
        raise ValueError(f"{directory}: rope_type: expected default, linear or llama3, but got {scaling}")
    file = Safetensors(os.path.join(directory, "model.safetensors"))
    for name in file.header:
        array = file[name]
        if ".q_proj." in name or ".k_proj." in name:
            array = to_pair_order(array, head_dim)
        add(gguf_name(name), array)
    return keys, tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("out", metavar="OUT.gguf")
    parser.add_argument("--type", choices=list(TYPES), default="f32")
    options = parser.parse_args()
    write_gguf(options.out, *convert(options.directory, options.type))


if __name__ == "__main__":
    main()
