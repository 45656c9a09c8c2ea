"""Reads a model for the oracle: our spec JSON, Hugging Face, GGUF."""

import json
import os

import numpy as np

import oracle
from gguf_file import GGUF
from number_types import BLOCKS, ROUND, blocks_of_32
from oracle import Affine, Layer, LayerNorm, Model, RMSNorm, Rotary
from random_weights import random_tensor
from safetensors_file import Safetensors

ACTIVATIONS = {
    "gelu": oracle.gelu, "gelu_tanh": oracle.gelu_tanh, "gelu_new": oracle.gelu_tanh,
    "gelu_pytorch_tanh": oracle.gelu_tanh, "silu": oracle.silu, "relu": oracle.relu,
}


class Weights:
    """A file's tensors, rounded as a compiled library stores them.

    Everything is rounded to the type of the arithmetic; matrices (embeddings
    too) then to `weights`, where one is asked for.
    """

    def __init__(self, file, arithmetic, weights):
        self.file, self.arithmetic, self.weights = file, arithmetic, weights
        types = {**ROUND, **BLOCKS}
        self.rounding = [ROUND[arithmetic]], [ROUND[arithmetic], types[weights or arithmetic]]
        self.stored = []  # matrices, and how a library keeps them

    def round(self, array):
        for rounded in self.rounding[array.ndim == 2]:
            array = rounded(array)
        return array

    def array(self, name):
        array = self.round(self.file[name])
        storage = self.weights or self.file.storage(name)
        if array.ndim == 2 and (storage in ROUND or blocks_of_32(array) is not None):
            self.stored.append((array, storage))
        return array

    def round_inputs(self, model, activations):
        """Of the linear layers whose matrix is in blocks or, with bf16, in that; f64 is
        never rounded."""
        if self.arithmetic == "f64":
            return
        roundings = {"bf16": ROUND["bf16"]} if activations == "bf16" else {}
        affines = [model.head] + [value for layer in model.layers for value in vars(layer).values()
                                  if isinstance(value, Affine)]
        for affine in affines:
            for array, storage in self.stored:
                if affine.weight is array:
                    affine.rounded = roundings.get(storage, None if storage in ROUND else oracle.round_to_bytes)

    def optional(self, name):
        return self.array(name) if name in self.file else None

    def affine(self, name):
        """With a bias where the file has one."""
        return Affine(self.array(name + ".weight"), self.optional(name + ".bias"))

    def layer_norm(self, name, epsilon):
        return LayerNorm(self.array(name + ".weight"), self.array(name + ".bias"), epsilon)

    def rms_norm(self, name, epsilon):
        return RMSNorm(self.array(name + ".weight"), epsilon)


def load_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# --- Our spec -----------------------------------------------------------------

class RandomFile:
    """`random:<seed>`: the spec gives the shapes."""

    def __init__(self, seed, shapes):
        self.seed, self.shapes = seed, shapes

    def storage(self, name):
        return "f64"

    def __contains__(self, name):
        return name in self.shapes

    def __getitem__(self, name):
        return random_tensor(self.seed, name, self.shapes[name])


def spec_shapes(spec):
    """The shape of every tensor that a spec's model has, by name."""
    width, hidden, vocab = spec["width"], spec["hidden"], spec["vocab"]
    head_dim = spec.get("head_dim", width // spec["heads"])
    queries, keys = spec["heads"] * head_dim, spec.get("kv_heads", spec["heads"]) * head_dim
    biases, shapes = spec.get("biases", {}), {}

    def affine(name, rows, columns, bias):
        shapes[name + ".weight"] = (rows, columns)
        if biases.get(bias):
            shapes[name + ".bias"] = (rows,)

    def norm(name):
        shapes[name + ".weight"] = (width,)
        if spec["norm"]["kind"] == "layer_norm":
            shapes[name + ".bias"] = (width,)

    affine("token_embedding", vocab, width, None)
    if spec["positions"]["kind"] == "learned":
        affine("position_embedding", spec["context"], width, None)
    for i in range(spec["layers"]):
        layer = f"layers.{i}."
        norm(layer + "attention_norm")
        affine(layer + "query", queries, width, "attention")
        affine(layer + "key", keys, width, "attention")
        affine(layer + "value", keys, width, "attention")
        affine(layer + "output", width, queries, "output")
        norm(layer + "feed_forward_norm")
        if spec.get("gated"):
            affine(layer + "gate", hidden, width, "feed_forward")
        affine(layer + "up", hidden, width, "feed_forward")
        affine(layer + "down", width, hidden, "feed_forward")
    norm("final_norm")
    if not spec.get("tied_head"):
        affine("head", vocab, width, "head")
    elif biases.get("head"):
        shapes["head.bias"] = (vocab,)
    return shapes


def spec_rotary(positions, head_dim):
    if positions["kind"] == "learned":
        return None
    frequencies = oracle.rotary_frequencies(positions.get("dims", head_dim), positions["theta"])
    scaling = dict(positions.get("scaling") or {"type": "none"})
    kind = scaling.pop("type")
    if kind == "linear":
        frequencies = frequencies / scaling["factor"]
    elif kind == "llama3":
        frequencies = oracle.llama3_frequencies(frequencies, **scaling)
    elif kind != "none":
        raise ValueError(f"positions.scaling.type: expected linear or llama3, but got {kind}")
    return Rotary(frequencies)


def window_of(described, i):
    """Of layer i, where `layer_types` or else the whole model says `sliding_window`."""
    slides = described["layer_types"][i] == "sliding_attention" if "layer_types" in described else True
    return described.get("sliding_window") if slides else None


def read_spec(path, weights):
    spec = load_json(path)
    shapes, source = spec_shapes(spec), spec["weights"]
    if source.startswith("random:"):
        file = RandomFile(int(source[len("random:"):]), shapes)
    else:
        file = Safetensors(os.path.join(os.path.dirname(path), source))
        for name, shape in shapes.items():
            if file[name].shape != shape:
                raise ValueError(f"{source}: {name}: expected {shape}, but got {file[name].shape}")
    tensors = Weights(file, spec.get("arithmetic", "f32"), weights)
    epsilon = spec["norm"]["epsilon"]

    def norm(name):
        rms = {"rms_norm": True, "layer_norm": False}[spec["norm"]["kind"]]
        return (tensors.rms_norm if rms else tensors.layer_norm)(name, epsilon)

    def affine(name):
        bias = tensors.array(name + ".bias") if name + ".bias" in shapes else None
        return Affine(tensors.array(name + ".weight"), bias)

    layers = []
    for i in range(spec["layers"]):
        layer = f"layers.{i}."
        layers.append(Layer(
            norm(layer + "attention_norm"), affine(layer + "query"), affine(layer + "key"),
            affine(layer + "value"), affine(layer + "output"), norm(layer + "feed_forward_norm"),
            affine(layer + "gate") if spec.get("gated") else None,
            affine(layer + "up"), affine(layer + "down"), window_of(spec, i)))
    embedding = tensors.array("token_embedding.weight")
    if spec.get("tied_head"):
        bias = tensors.array("head.bias") if "head.bias" in shapes else None
        head = Affine(embedding, bias)
    else:
        head = affine("head")
    learned = spec["positions"]["kind"] == "learned"
    return tensors, Model(
        heads=spec["heads"], kv_heads=spec.get("kv_heads", spec["heads"]),
        activation=ACTIVATIONS[spec["activation"]], token_embedding=embedding,
        position_embedding=tensors.array("position_embedding.weight") if learned else None,
        rotary=spec_rotary(spec["positions"], spec.get("head_dim", spec["width"] // spec["heads"])),
        layers=layers, final_norm=norm("final_norm"), head=head)


# --- Hugging Face -------------------------------------------------------------

def config_rotary(config, head_dim):
    """Both spellings: `rope_parameters`, or `rope_theta` with `rope_scaling`."""
    rope = config.get("rope_parameters")
    if rope is None:
        rope = dict(config.get("rope_scaling") or {}, rope_theta=config["rope_theta"])
    frequencies = oracle.rotary_frequencies(head_dim, rope["rope_theta"])
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "linear":
        frequencies = frequencies / rope["factor"]
    elif kind == "llama3":
        frequencies = oracle.llama3_frequencies(
            frequencies, rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"],
            rope["original_max_position_embeddings"])
    elif kind != "default":
        raise ValueError(f"rope_type: expected default, linear or llama3, but got {kind}")
    return Rotary(frequencies)


def config_window(config, i):
    kind = config["model_type"]
    if kind == "mistral":
        return config["sliding_window"]
    if kind == "llama" or not config.get("use_sliding_window"):
        return None
    if "layer_types" not in config and i < config["max_window_layers"]:
        return None
    return window_of(config, i)


def huggingface_llama(config, tensors):
    heads = config["num_attention_heads"]
    epsilon = config["rms_norm_eps"]
    layers = []
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        layers.append(Layer(
            tensors.rms_norm(layer + "input_layernorm", epsilon),
            *(tensors.affine(f"{layer}self_attn.{x}_proj") for x in "qkvo"),
            tensors.rms_norm(layer + "post_attention_layernorm", epsilon),
            *(tensors.affine(f"{layer}mlp.{x}_proj") for x in ("gate", "up", "down")), config_window(config, i)))
    embedding = tensors.array("model.embed_tokens.weight")
    return Model(
        heads=heads, kv_heads=config.get("num_key_value_heads") or heads,
        activation=ACTIVATIONS[config["hidden_act"]],
        token_embedding=embedding, position_embedding=None,
        rotary=config_rotary(config, config.get("head_dim") or config["hidden_size"] // heads),
        layers=layers, final_norm=tensors.rms_norm("model.norm", epsilon),
        head=Affine(embedding) if config.get("tie_word_embeddings") else tensors.affine("lm_head"))


def huggingface_gpt2(config, tensors):
    prefix = "transformer." if "transformer.wte.weight" in tensors.file else ""
    epsilon = config["layer_norm_epsilon"]

    def conv1d(name):  # stored [inputs, outputs]
        stored = tensors.affine(prefix + name)
        return Affine(stored.weight.T, stored.bias)

    layers = []
    for i in range(config["n_layer"]):
        layer = f"h.{i}."
        fused = conv1d(layer + "attn.c_attn")
        layers.append(Layer(
            tensors.layer_norm(prefix + layer + "ln_1", epsilon),
            *(Affine(w, b) for w, b in zip(np.split(fused.weight, 3), np.split(fused.bias, 3))),
            conv1d(layer + "attn.c_proj"), tensors.layer_norm(prefix + layer + "ln_2", epsilon),
            None, conv1d(layer + "mlp.c_fc"), conv1d(layer + "mlp.c_proj")))
    embedding = tensors.array(prefix + "wte.weight")
    return Model(
        heads=config["n_head"], kv_heads=config["n_head"],
        activation=ACTIVATIONS[config["activation_function"]], token_embedding=embedding,
        position_embedding=tensors.array(prefix + "wpe.weight"), rotary=None, layers=layers,
        final_norm=tensors.layer_norm(prefix + "ln_f", epsilon), head=Affine(embedding))


HUGGINGFACE = {"llama": huggingface_llama, "qwen2": huggingface_llama, "mistral": huggingface_llama,
               "gpt2": huggingface_gpt2}


def read_huggingface(path, weights):
    config = load_json(os.path.join(path, "config.json"))
    file = Safetensors(os.path.join(path, "model.safetensors"))
    tensors = Weights(file, "f32", weights)
    return tensors, HUGGINGFACE[config["model_type"]](config, tensors)


# --- GGUF ---------------------------------------------------------------------

def read_gguf(path, weights):
    file = GGUF(path)
    tensors = Weights(file, "f32", weights)
    kind = file.keys["general.architecture"]
    # Which elements turn together is the architecture's, not a key's.
    adjacent = {"llama": True, "qwen2": False}[kind]

    def key(name, *default):
        return file.keys.get(f"{kind}.{name}", *default)

    epsilon, heads = key("attention.layer_norm_rms_epsilon"), key("attention.head_count")
    head_dim = key("attention.key_length", key("embedding_length") // heads)
    frequencies = oracle.rotary_frequencies(key("rope.dimension_count", head_dim), key("rope.freq_base"))
    scaling = key("rope.scaling.type", "none")
    if scaling == "linear":
        frequencies = frequencies / key("rope.scaling.factor")
    elif scaling != "none":
        raise ValueError(f"{path}: rope.scaling.type: expected none or linear, but got {scaling}")
    if "rope_freqs.weight" in file:
        frequencies = frequencies / file["rope_freqs.weight"]
    layers = []
    for i in range(key("block_count")):
        layer = f"blk.{i}."
        layers.append(Layer(
            tensors.rms_norm(layer + "attn_norm", epsilon),
            *(tensors.affine(f"{layer}attn_{x}") for x in ("q", "k", "v", "output")),
            tensors.rms_norm(layer + "ffn_norm", epsilon),
            *(tensors.affine(f"{layer}ffn_{x}") for x in ("gate", "up", "down"))))
    embedding = tensors.array("token_embd.weight")
    return tensors, Model(
        heads=heads, kv_heads=key("attention.head_count_kv", heads), activation=oracle.silu,
        token_embedding=embedding, position_embedding=None, rotary=Rotary(frequencies, adjacent),
        layers=layers, final_norm=tensors.rms_norm("output_norm", epsilon),
        head=tensors.affine("output") if "output.weight" in file else Affine(embedding))


def read_model(path, weights=None, cache=None, activations="q8"):
    """weights: type of stored matrices, by default the file's. cache: type of keys
    and values, else exact. activations: q8 where what is multiplied with blocks is
    rounded to bytes, bf16 where what is multiplied with bf16 is rounded to it, too, f32
    where nothing is."""
    if os.path.isdir(path):
        read = read_huggingface
    elif path.endswith(".gguf"):
        read = read_gguf
    else:
        read = read_spec
    tensors, model = read(path, weights)
    if activations != "f32":
        tensors.round_inputs(model, activations)
    if cache is not None:
        model.stored = ROUND[cache]
    return model


def add_model_options(parser):
    parser.add_argument("--weights", choices=[*ROUND, *BLOCKS], help="type of stored matrices")
    parser.add_argument("--activations", choices=["f32", "q8", "bf16"], default="q8",
                        help="of what is multiplied with matrices in blocks and in bf16")
    parser.add_argument("--cache", choices=list(ROUND), help="type of stored keys and values")


def parse_ids(text):
    """`1,2,3`, or the path of a .npy file of any shape."""
    return np.load(text) if text.endswith(".npy") else np.array([int(x) for x in text.split(",")])
