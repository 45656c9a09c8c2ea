"""make_broken.py NAME OUTDIR: writes one input into OUTDIR/NAME.

NAME is "<base>-<case>". The case "valid" is a tiny model as it should be;
each other case is that model with one thing changed. Bases:

    spec         OUTDIR/NAME/spec.json
    llama, gpt2  OUTDIR/NAME/config.json and model.safetensors
    st           the same llama, its model.safetensors changed as bytes
    files        the same llama in two files with an index, files changed
    gguf         OUTDIR/NAME/model.gguf
    gguf2        the same of a GPT-2
"""

import json
import os
import shutil
import struct
import sys

import formats
from formats import f32


def change(**fields):
    """Sets fields of a dict; nested ones as a__b; None removes."""
    def apply(target):
        for path, value in fields.items():
            *parents, key = path.split("__")
            inner = target
            for parent in parents:
                inner = inner[parent]
            if value is None:
                del inner[key]
            else:
                inner[key] = value
    return apply


LLAMA3 = {"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_context": 16}

# --- spec: a change of the dict, or the text itself -----------------------------

SPEC = {
    "valid": change(),
    "plain": change(kv_heads=None, biases=None),
    "syntax": lambda spec: json.dumps(spec)[:-1],
    "nested": lambda spec: "{\"name\": " + "[" * 100000,
    "twice": lambda spec: json.dumps(spec)[:-1] + ", \"wi\\u0064th\": 8}",
    "version": change(kvc_spec=2),
    "name": change(name="tiny-model"),
    "no-width": change(width=None),
    "text-width": change(width="8"),
    "zero-vocab": change(vocab=0),
    "fraction": change(hidden=1.5),
    "big-hidden": change(hidden=2**40),
    "many-layers": change(layers=100000),
    "heads": change(heads=3, kv_heads=3),
    "kv-heads": change(heads=4, kv_heads=3),
    "wide-heads": change(heads=2**20, kv_heads=2**20, head_dim=2**20),
    "too-big": change(width=2**30, hidden=2**30, head_dim=4),
    "norm": change(norm__kind="batch_norm"),
    "epsilon": change(norm__epsilon=-1),
    "tiny-epsilon": change(norm__epsilon=1e-60),
    "positions": change(positions={"kind": "alibi"}),
    "no-theta": change(positions__theta=None),
    "odd-dims": change(positions__dims=3),
    "wide-dims": change(positions__dims=6),
    "scaling": change(positions__scaling={"type": "yarn", "factor": 2}),
    "bands": change(positions__scaling=dict(LLAMA3, high_freq_factor=0.5)),
    "unknown-scaling": change(positions__scaling=dict(LLAMA3, beta=1)),
    "activation": change(activation="tanh"),
    "gated": change(gated="yes"),
    "zero-window": change(sliding_window=0),
    "layer-types": change(sliding_window=4, layer_types=["sliding_attention"]),
    "types-alone": change(layer_types=["sliding_attention"] * 2),
    "arithmetic": change(arithmetic="f16"),
    "biases": change(biases=True),
    "unknown": change(window=4),
    "seed": change(weights="random:-1"),
    "no-file": change(weights="absent.safetensors"),
}

# --- config.json and the tensors of model.safetensors ----------------------------


def config(tensors=None, **fields):
    """Changes of both; a tensor of None is taken away."""
    def apply(target, target_tensors):
        change(**fields)(target)
        for name, tensor in (tensors or {}).items():
            if tensor is None:
                del target_tensors[name]
            else:
                target_tensors[name] = tensor
    return apply


def without_head(fields, **tensors):
    return config({"lm_head.weight": None, **tensors}, tie_word_embeddings=True, **fields)


QKV_BIASES = {f"model.layers.{i}.self_attn.{p}_proj.bias": f32(rows)
              for i in range(2) for p, rows in [("q", 8), ("k", 4), ("v", 4)]}
WIDER = {f"model.layers.{i}.self_attn.{p}_proj.weight": f32(*shape) for i in range(2)
         for p, shape in [("q", (12, 8)), ("k", (6, 8)), ("v", (6, 8)), ("o", (8, 12))]}
SCALING = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 64}

LLAMA = {
    "valid": config(),
    "head-dim-null": lambda c, t: c.update(head_dim=None),
    "head-dim": config(WIDER, head_dim=6),
    "tied": without_head({}),
    "tied-same": config(tie_word_embeddings=True),
    "old-scaling": config(rope_scaling=SCALING),
    "new-scaling": config(rope_theta=None, rope_scaling=None, rope_parameters=dict(SCALING, rope_theta=10000.0)),
    "linear": config(rope_scaling={"type": "linear", "factor": 2.0}),
    "qwen2": config(QKV_BIASES, model_type="qwen2", attention_bias=None, use_sliding_window=False, sliding_window=4,
                    max_window_layers=1, layer_types=["full_attention"] * 2),
    "mistral": lambda c, t: c.update(model_type="mistral", sliding_window=None),
    "mistral-window": config(model_type="mistral", sliding_window=16),
    "mistral-slides": config(model_type="mistral", sliding_window=15, layer_types=["sliding_attention"] * 2),
    "qwen2-slides": config(QKV_BIASES, model_type="qwen2", attention_bias=None, use_sliding_window=True,
                           sliding_window=4, max_window_layers=1),
    "qwen2-types": config(QKV_BIASES, model_type="qwen2", attention_bias=None, use_sliding_window=True,
                          sliding_window=4, max_window_layers=9, layer_types=["sliding_attention", "full_attention"]),

    "no-model-type": config(model_type=None),
    "other-model": config(model_type="mamba"),
    "kv-heads": config(num_attention_heads=4, num_key_value_heads=3),
    "heads": config(num_attention_heads=3, num_key_value_heads=3),
    "odd-head-dim": config(head_dim=3),
    "no-epsilon": config(rms_norm_eps=None),
    "activation": config(hidden_act="quick_gelu"),
    "no-theta": config(rope_theta=None),
    "no-theta-either": config(rope_theta=None, rope_parameters={"rope_type": "default"}),
    "yarn": config(rope_scaling={"rope_type": "yarn", "factor": 2.0}),
    "no-type": config(rope_scaling={"factor": 2.0}),
    "two-types": config(rope_scaling={"rope_type": "linear", "type": "dynamic", "factor": 2.0}),
    "two-thetas": config(rope_scaling=None, rope_parameters={"rope_theta": 500.0}),
    "two-scalings": config(rope_scaling={"type": "linear", "factor": 2.0},
                           rope_parameters={"rope_theta": 10000.0}),
    "no-original": config(rope_scaling={k: v for k, v in SCALING.items() if k[0] != "o"}),
    "scaling-unknown": config(rope_scaling=dict(SCALING, mscale=2.0)),
    "interleaved": config(rope_interleaved=True),
    "partial": config(rope_scaling=None, rope_parameters={"rope_theta": 10000.0, "partial_rotary_factor": 0.5}),
    "mistral-absent": config(model_type="mistral"),
    "qwen2-kv-heads": config(QKV_BIASES, model_type="qwen2", attention_bias=None, num_key_value_heads=None),
    "window": config(sliding_window=15),
    "qwen2-no-window": config(QKV_BIASES, model_type="qwen2", attention_bias=None, use_sliding_window=False,
                              layer_types=["full_attention", "sliding_attention"]),
    "qwen2-types-wrong": config(QKV_BIASES, model_type="qwen2", attention_bias=None, use_sliding_window=True,
                                sliding_window=4, max_window_layers=9, layer_types=["sliding_attention", "chunked"]),
    "layer-types": config(layer_types=["full_attention", "sliding_attention"]),
    "quantized": config(quantization_config={"bits": 4}),
    "unknown": config(logit_scale=2.0),
    "no-head": config({"lm_head.weight": None}),
    "tied-differs": config({"lm_head.weight": f32(10, 8, value=0.25)}, tie_word_embeddings=True),
    "no-bias": config(attention_bias=True),
    "more-tensors": config({"model.layers.1.self_attn.q_norm.weight": f32(4)}),
    "more-layers": config(num_hidden_layers=3),
    "fewer-layers": config(num_hidden_layers=1),
    "shape": config({"model.layers.1.mlp.down_proj.weight": f32(12, 8)}),
    "integers": config({"model.norm.weight": ("I32", [8], b"\0" * 32)}),
}

GPT2 = {
    "valid": config(),
    "prefix": lambda c, t: [t.update({"transformer." + name: t.pop(name)}) for name in list(t)],
    "unscaled": config(scale_attn_weights=False),
    "heads": config(n_head=3),
    "inverse-layer": config(scale_attn_by_inverse_layer_idx=True),
    "cross-attention": config(add_cross_attention=True),
    "context": config(n_ctx=32),
    "activation": config(activation_function="gelu_10"),
    "no-layer-norm": config({"ln_f.bias": None}),
    "linear-order": config({"h.1.attn.c_attn.weight": f32(24, 8)}),
    "positions": config({"wpe.weight": f32(15, 8)}),
}

# --- safetensors: (header, data) or its bytes ----------------------------------

NORM = "model.norm.weight"


def entry(**fields):
    def apply(header, data):
        header[NORM].update(fields)
        return formats.safetensors_bytes(header, data)
    return apply


def moved(distance):
    def apply(header, data):
        header[NORM]["data_offsets"] = [offset + distance for offset in header[NORM]["data_offsets"]]
        return formats.safetensors_bytes(header, data)
    return apply


def cut(count):
    return lambda header, data: formats.safetensors_bytes(header, data)[:count]


SAFETENSORS = {
    "valid": formats.safetensors_bytes,
    "metadata": lambda header, data: formats.safetensors_bytes({"__metadata__": {"format": "pt"}, **header}, data),
    "empty": cut(0),
    "short": cut(7),
    "cut-header": cut(1000),
    "cut-data": cut(-1),
    "length": lambda header, data: struct.pack("<Q", 2**63) + formats.safetensors_bytes(header, data)[8:],
    "json": lambda header, data: formats.safetensors_bytes(b"{\"a\": ", data),
    "list": lambda header, data: formats.safetensors_bytes(b"[]", data),
    "nested": lambda header, data: formats.safetensors_bytes(b"{\"a\": " + b"{\"a\": " * 1000, data),
    "twice": lambda header, data: formats.safetensors_bytes(
        json.dumps(header).encode()[:-1] + b", \"" + NORM.encode() + b"\": {}}", data),
    "entry": lambda header, data: formats.safetensors_bytes({**header, NORM: 3}, data),
    "no-dtype": lambda header, data: formats.safetensors_bytes(
        {**header, NORM: {"shape": [8], "data_offsets": header[NORM]["data_offsets"]}}, data),
    "shape-text": entry(shape="8"),
    "negative": entry(shape=[-8]),
    "overflow": entry(shape=[2**62, 2**62]),
    "size": entry(shape=[9]),
    "one-offset": entry(data_offsets=[0]),
    "backwards": entry(data_offsets=[8, 4]),
    "outside": entry(data_offsets=[0, 2**40]),
    "overlap": moved(-4),
    "hole": moved(4),
    "extra-data": lambda header, data: formats.safetensors_bytes(header, data + b"\0"),
}

# --- files: what the directory holds -------------------------------------------


def sharded():
    """The llama's directory, its weights in two files."""
    config, tensors = formats.llama()
    names, files = sorted(tensors), {"config.json": json.dumps(config).encode()}
    weight_map = {}
    for shard, part in [("first.safetensors", names[:9]), ("second.safetensors", names[9:])]:
        files[shard] = formats.safetensors_bytes(*formats.safetensors({name: tensors[name] for name in part}))
        weight_map.update({name: shard for name in part})
    return files, {"metadata": {"total_size": 4640}, "weight_map": weight_map}


FILES = {
    "valid": lambda files, index: None,
    "no-config": lambda files, index: files.pop("config.json"),
    "no-weights": lambda files, index: index.clear(),
    "no-map": lambda files, index: index.pop("weight_map"),
    "no-shard": lambda files, index: files.pop("second.safetensors"),
    "outside": lambda files, index: index["weight_map"].update({NORM: "../first.safetensors"}),
    "lost": lambda files, index: index["weight_map"].update({"other.weight": "first.safetensors"}),
    "twice": lambda files, index: files.update({"second.safetensors": files["first.safetensors"]}),
}

# --- gguf: a change of the file, or its bytes -------------------------------------


def gguf(tensors=None, **keys):
    """Sets metadata (general_alignment is general.alignment, and llama. stands
    before other names, whose "__" is a dot) and tensors; None takes away."""
    def apply(file):
        for key, value in keys.items():
            name = key.replace("__", ".")
            file.set(name if key.startswith(("general__", "split__")) else "llama." + name, value)
        for name, tensor in (tensors or {}).items():
            file.tensor(name, tensor)
    return apply


def replaced(old, new):
    def apply(file):
        raw = file.to_bytes()
        assert raw.count(old) == 1
        return raw.replace(old, new)
    return apply


def versioned(version):
    return lambda file: setattr(file, "version", version)


Q8_ROWS = {"token_embd.weight": ("Q8_0", [10, 8], b"\0" * 85)}
LAST = "blk.1.ffn_down.weight"

GGUF = {
    "valid": gguf(),
    "version-2": versioned(2),
    "no-optional": gguf(general__alignment=None, rope__dimension_count=None, vocab_size=None),
    "biases": gguf({f"blk.{i}.attn_{p}.bias": f32(rows) for i in range(2)
                    for p, rows in [("q", 8), ("k", 4), ("v", 4), ("output", 8)]}),
    "head": gguf({"output.weight": f32(10, 8)}),
    "linear": gguf(rope__scaling__type="linear", rope__scaling__factor=4.0),
    "factor-alone": gguf(rope__scaling__factor=4.0),
    "scale-linear": gguf(rope__scale_linear=4.0),
    "frequencies": gguf({"rope_freqs.weight": f32(2, value=8.0)}),
    "qwen2": lambda file: (
        setattr(file, "pairs", [(key.replace("llama.", "qwen2."), value) for key, value in file.pairs]),
        file.set("general.architecture", "qwen2"), file.set("qwen2.rope.dimension_count", 2), None)[-1],
    "key-length": gguf({f"blk.{i}.attn_{p}.weight": f32(*shape) for i in range(2)
                        for p, shape in [("q", (12, 8)), ("k", (6, 8)), ("v", (6, 8)), ("output", (8, 12))]},
                       attention__key_length=6, attention__value_length=6, rope__dimension_count=6),

    "magic": lambda file: b"GGML" + file.to_bytes()[4:],
    "version": versioned(1),
    "big-endian": versioned(0x03000000),
    "cut-pairs": lambda file: file.to_bytes()[:400],
    "cut-tensors": lambda file: file.to_bytes()[:1500],
    "cut-data": lambda file: file.to_bytes()[:-1],
    "long-string": replaced(formats.gguf_string("tiny"), struct.pack("<Q", 2**63) + b"tiny"),
    "many-tensors": lambda file: file.to_bytes()[:8] + struct.pack("<Q", 2**60) + file.to_bytes()[16:],
    "value-type": gguf(rope__freq_base=struct.pack("<II", 13, 0)),
    "nested": gguf(rope__freq_base=struct.pack("<IIQ", 9, 9, 1)),
    "key-twice": lambda file: file.pairs.append(("llama.vocab_size", 10)),
    "tensor-twice": lambda file: file.tensors.append((LAST, f32(8, 12))),
    "alignment": gguf(general__alignment=12),
    "misaligned": gguf({LAST: (*f32(8, 12), 4)}),
    "overlap": gguf({LAST: (*f32(8, 12), 32)}),
    "hole": lambda file: [file.tensor("blk.1.attn_norm.weight", ("F16", [8], b"\0" * 512)),
                          file.tensor("blk.1.ffn_norm.weight", f32(8))] and None,
    "outside": gguf({LAST: (*f32(8, 12), 2**40)}),
    "rank": gguf({LAST: f32(1, 1, 1, 8, 12)}),
    "overflow": gguf({LAST: ("F32", [2**62, 2**62], b"")}),
    "rows": gguf(Q8_ROWS),
    "type": gguf({LAST: ("Q3_K", [8, 12], b"\0" * 384)}),
    "shape": gguf({LAST: f32(12, 8)}),
    "no-tensor": gguf({LAST: None}),
    "more-tensors": gguf({"blk.0.attn_q_norm.weight": f32(4)}),
    "no-architecture": gguf(general__architecture=None),
    "architecture": gguf(general__architecture="mamba"),
    "adapter": gguf(general__type="adapter"),
    "split": gguf(split__count=2),
    "no-width": gguf(embedding_length=None),
    "kv-heads": gguf(attention__head_count_kv=3),
    "kv-heads-array": gguf(attention__head_count_kv=[1, 1]),
    "vocab": gguf(vocab_size=11),
    "no-theta": gguf(rope__freq_base=None),
    "yarn": gguf(rope__scaling__type="yarn", rope__scaling__factor=4.0),
    "no-scaling": gguf(rope__scaling__type="none", rope__scaling__factor=4.0),
    "two-factors": gguf(rope__scale_linear=2.0, rope__scaling__factor=4.0),
    "partial": gguf(rope__dimension_count=2),
    "value-length": gguf(attention__key_length=4, attention__value_length=2),
    "experts": gguf(expert_count=8),
    "unknown": gguf(logit_scale=2.0),
    "frequencies-shape": gguf({"rope_freqs.weight": f32(4)}),
    "frequencies-zero": gguf({"rope_freqs.weight": f32(2, value=0.0)}),
}
GGUF2 = {
    "valid": lambda file: None,
    "no-positions": lambda file: file.tensor("position_embd.weight", None),
    "rotary": lambda file: file.set("gpt2.rope.freq_base", 10000.0),
}


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def write_directory(out, config, weights):
    write(os.path.join(out, "config.json"), json.dumps(config).encode())
    write(os.path.join(out, "model.safetensors"), weights)


def make(name, out):
    base, case = name.split("-", 1)
    if base == "spec":
        spec = formats.spec()
        text = SPEC[case](spec)
        write(os.path.join(out, "spec.json"), (text or json.dumps(spec)).encode())
    elif base in ("llama", "gpt2"):
        config, tensors = getattr(formats, base)()
        {"llama": LLAMA, "gpt2": GPT2}[base][case](config, tensors)
        write_directory(out, config, formats.safetensors_bytes(*formats.safetensors(tensors)))
    elif base == "st":
        config, tensors = formats.llama()
        write_directory(out, config, SAFETENSORS[case](*formats.safetensors(tensors)))
    elif base == "files":
        files, index = sharded()
        FILES[case](files, index)
        if index:
            files["model.safetensors.index.json"] = json.dumps(index).encode()
        for file, content in files.items():
            write(os.path.join(out, file), content)
    else:
        file = {"gguf": formats.gguf_llama, "gguf2": formats.gguf_gpt2}[base]()
        raw = {"gguf": GGUF, "gguf2": GGUF2}[base][case](file)
        write(os.path.join(out, "model.gguf"), raw or file.to_bytes())


if __name__ == "__main__":
    out = os.path.join(sys.argv[2], sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    make(sys.argv[1], out)
