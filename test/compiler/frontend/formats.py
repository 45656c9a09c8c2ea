"""Writes safetensors and GGUF, and tiny valid models to start from.

A tensor is (type, shape outermost first, bytes).
"""

import json
import struct

# Of the tiny Llama, its grouped and odd sizes told apart by their values.
WIDTH, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, VOCAB, CONTEXT, LAYERS = 8, 2, 1, 4, 12, 10, 16, 2


def f32(*shape, value=0.5):
    count = 1
    for extent in shape:
        count *= extent
    return "F32", list(shape), struct.pack("<f", value) * count


# --- safetensors --------------------------------------------------------------

def safetensors(tensors):
    """The header as a dict, and the data."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return header, data


def safetensors_bytes(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


# --- GGUF ---------------------------------------------------------------------

U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "Q3_K": 11}


def gguf_string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_value(value):
    """Type and bytes of a Python value; a bytes is a value ready-made."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return struct.pack("<IB", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + gguf_string(value)
    kinds = [gguf_value(element) for element in value]
    return struct.pack("<I", ARRAY) + kinds[0][:4] + struct.pack("<Q", len(kinds)) + b"".join(k[4:] for k in kinds)


class GGUF:
    """`pairs` and `tensors` are lists of (name, value), so that a name can
    stand twice. A tensor's fourth element, if any, is its offset."""

    version = 3
    alignment = 32

    def __init__(self, pairs, tensors):
        self.pairs, self.tensors = list(pairs.items()), list(tensors.items())

    def set(self, key, value):
        self.pairs = [pair for pair in self.pairs if pair[0] != key]
        if value is not None:
            self.pairs.append((key, value))

    def tensor(self, name, value):
        self.tensors = [tensor for tensor in self.tensors if tensor[0] != name]
        if value is not None:
            self.tensors.append((name, value))

    def to_bytes(self):
        out = b"GGUF" + struct.pack("<IQQ", self.version, len(self.tensors), len(self.pairs))
        for key, value in self.pairs:
            out += gguf_string(key) + gguf_value(value)
        data = b""
        for name, (dtype, shape, raw, *offset) in self.tensors:
            data += b"\0" * (-len(data) % self.alignment)
            out += gguf_string(name) + struct.pack("<I", len(shape))
            out += struct.pack(f"<{len(shape)}Q", *reversed(shape))
            out += struct.pack("<IQ", TYPES[dtype], offset[0] if offset else len(data))
            data += raw
        return out + b"\0" * (-len(out) % self.alignment) + data


# --- valid models -------------------------------------------------------------

def spec():
    return {
        "kvc_spec": 1, "name": "tiny", "vocab": VOCAB, "width": WIDTH, "layers": LAYERS, "heads": HEADS,
        "kv_heads": KV_HEADS, "hidden": HIDDEN, "context": CONTEXT, "norm": {"kind": "rms_norm", "epsilon": 1e-5},
        "positions": {"kind": "rotary", "theta": 10000.0}, "activation": "silu", "gated": True,
        "biases": {"attention": True}, "weights": "random:1",
    }


def llama():
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": WIDTH,
        "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB, "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None, "attention_bias": False,
        "tie_word_embeddings": False, "torch_dtype": "float32", "transformers_version": "4.40.0",
    }
    tensors = {"model.embed_tokens.weight": f32(VOCAB, WIDTH), "model.norm.weight": f32(WIDTH),
               "lm_head.weight": f32(VOCAB, WIDTH)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        tensors.update({
            layer + "input_layernorm.weight": f32(WIDTH), layer + "post_attention_layernorm.weight": f32(WIDTH),
            layer + "self_attn.q_proj.weight": f32(HEADS * HEAD_DIM, WIDTH),
            layer + "self_attn.k_proj.weight": f32(KV_HEADS * HEAD_DIM, WIDTH),
            layer + "self_attn.v_proj.weight": f32(KV_HEADS * HEAD_DIM, WIDTH),
            layer + "self_attn.o_proj.weight": f32(WIDTH, HEADS * HEAD_DIM),
            layer + "mlp.gate_proj.weight": f32(HIDDEN, WIDTH), layer + "mlp.up_proj.weight": f32(HIDDEN, WIDTH),
            layer + "mlp.down_proj.weight": f32(WIDTH, HIDDEN),
        })
    return config, tensors


def gpt2():
    config = {
        "model_type": "gpt2", "n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": CONTEXT,
        "n_ctx": CONTEXT, "n_inner": None, "vocab_size": VOCAB, "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.1, "scale_attn_weights": True,
    }
    tensors = {"wte.weight": f32(VOCAB, WIDTH), "wpe.weight": f32(CONTEXT, WIDTH), "ln_f.weight": f32(WIDTH),
               "ln_f.bias": f32(WIDTH)}
    for i in range(LAYERS):
        layer = f"h.{i}."
        for name, rows, columns in [("attn.c_attn", 3 * WIDTH, WIDTH), ("attn.c_proj", WIDTH, WIDTH),
                                    ("mlp.c_fc", 4 * WIDTH, WIDTH), ("mlp.c_proj", WIDTH, 4 * WIDTH)]:
            tensors[layer + name + ".weight"] = f32(columns, rows)
            tensors[layer + name + ".bias"] = f32(rows)
        for norm in ["ln_1", "ln_2"]:
            tensors[layer + norm + ".weight"] = tensors[layer + norm + ".bias"] = f32(WIDTH)
        tensors[layer + "attn.bias"] = f32(1, 1, CONTEXT, CONTEXT)  # a buffer: the mask
    return config, tensors


def gguf_llama():
    pairs = {
        "general.architecture": "llama", "general.name": "tiny", "general.alignment": 32,
        "llama.block_count": LAYERS, "llama.context_length": CONTEXT, "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": HIDDEN, "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS, "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0, "llama.rope.dimension_count": HEAD_DIM, "llama.vocab_size": VOCAB,
        "tokenizer.ggml.tokens": ["token"] * VOCAB, "tokenizer.ggml.add_bos_token": True,
    }
    tensors = {"token_embd.weight": f32(VOCAB, WIDTH), "output_norm.weight": f32(WIDTH)}
    for i in range(LAYERS):
        layer = f"blk.{i}."
        tensors.update({
            layer + "attn_norm.weight": f32(WIDTH), layer + "ffn_norm.weight": f32(WIDTH),
            layer + "attn_q.weight": f32(HEADS * HEAD_DIM, WIDTH),
            layer + "attn_k.weight": f32(KV_HEADS * HEAD_DIM, WIDTH),
            layer + "attn_v.weight": f32(KV_HEADS * HEAD_DIM, WIDTH),
            layer + "attn_output.weight": f32(WIDTH, HEADS * HEAD_DIM),
            layer + "ffn_gate.weight": f32(HIDDEN, WIDTH), layer + "ffn_up.weight": f32(HIDDEN, WIDTH),
            layer + "ffn_down.weight": f32(WIDTH, HIDDEN),
        })
    return GGUF(pairs, tensors)


def gguf_gpt2():
    pairs = {
        "general.architecture": "gpt2", "gpt2.block_count": LAYERS, "gpt2.context_length": CONTEXT,
        "gpt2.embedding_length": WIDTH, "gpt2.feed_forward_length": 4 * WIDTH, "gpt2.attention.head_count": HEADS,
        "gpt2.attention.layer_norm_epsilon": 1e-5,
    }
    tensors = {"token_embd.weight": f32(VOCAB, WIDTH), "position_embd.weight": f32(CONTEXT, WIDTH),
               "output_norm.weight": f32(WIDTH), "output_norm.bias": f32(WIDTH)}
    for i in range(LAYERS):
        layer = f"blk.{i}."
        for name, rows, columns in [("attn_qkv", 3 * WIDTH, WIDTH), ("attn_output", WIDTH, WIDTH),
                                    ("ffn_up", 4 * WIDTH, WIDTH), ("ffn_down", WIDTH, 4 * WIDTH)]:
            tensors[layer + name + ".weight"] = f32(rows, columns)
            tensors[layer + name + ".bias"] = f32(rows)
        for norm in ["attn_norm", "ffn_norm"]:
            tensors[layer + norm + ".weight"] = tensors[layer + norm + ".bias"] = f32(WIDTH)
    return GGUF(pairs, tensors)
