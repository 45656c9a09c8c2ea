"""A decoder in float64, over the full prefix, with no cache of any kind.

Every call computes every position anew, so that nothing here can share a
mistake with a program that keeps keys and values. It is slow and plain on
purpose: each function is the formula it names.
"""

import math
from dataclasses import dataclass, field
from typing import Callable, List, Optional

import numpy as np


@dataclass
class Affine:
    """y = x W^T + b, with W [outputs, inputs] and b [outputs] or None.

    x is rounded first, as a library does that keeps W in blocks or in bf16; None: it
    isn't.
    """
    weight: np.ndarray
    bias: Optional[np.ndarray] = None
    rounded: Optional[Callable] = None

    def __call__(self, x):
        y = (self.rounded(x) if self.rounded else x) @ self.weight.T
        return y if self.bias is None else y + self.bias


def round_to_bytes(x):
    """32 consecutive numbers at a time to a scale (f32) times -127 to 127."""
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, 32)
    scale = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
    whole = np.rint(np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale != 0))
    return (whole.astype(np.float64) * scale).reshape(x.shape)


@dataclass
class LayerNorm:
    """Zero mean and unit variance (of n, not n-1) along the last axis."""
    weight: np.ndarray  # [width]
    bias: np.ndarray  # [width]
    epsilon: float

    def __call__(self, x):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + self.epsilon) * self.weight + self.bias


@dataclass
class RMSNorm:
    """Unit mean square along the last axis."""
    weight: np.ndarray  # [width]
    epsilon: float

    def __call__(self, x):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.weight


@dataclass
class Rotary:
    """Turns pairs of a head's first 2 * len(frequencies) elements.

    Pair i turns by position * frequencies[i]. Where `adjacent`, pair i is
    elements (2i, 2i+1), as GGUF's Llama orders them; else (i, i + pairs), as
    Hugging Face does. Neither form is converted to the other.
    """
    frequencies: np.ndarray  # [pairs]
    adjacent: bool = False

    def __call__(self, x):
        """x: [heads, time, head_dim]; time is the position."""
        pairs = len(self.frequencies)
        angle = np.arange(x.shape[1])[:, None] * self.frequencies[None, :]
        first, second = ((slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if self.adjacent
                         else (slice(0, pairs), slice(pairs, 2 * pairs)))
        a, b = x[..., first], x[..., second]
        turned = x.copy()
        turned[..., first] = a * np.cos(angle) - b * np.sin(angle)
        turned[..., second] = b * np.cos(angle) + a * np.sin(angle)
        return turned


def rotary_frequencies(dims, theta):
    """theta^(-2i/dims) for the dims/2 pairs (RoFormer, arXiv 2104.09864)."""
    return float(theta) ** (-np.arange(0, dims, 2) / dims)


def llama3_frequencies(frequencies, factor, low_freq_factor, high_freq_factor, original_context):
    """Llama 3.1's scaling: waves that fit the original context often enough
    stay, long ones are slowed by `factor`, those between are blended."""
    scaled = []
    for frequency in frequencies:
        turns = original_context * frequency / (2 * math.pi)
        if turns > high_freq_factor:
            scaled.append(frequency)
        elif turns < low_freq_factor:
            scaled.append(frequency / factor)
        else:
            blend = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor)
            scaled.append((1 - blend) * frequency / factor + blend * frequency)
    return np.array(scaled)


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def silu(x):
    return x / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


@dataclass
class Layer:
    attention_norm: Callable
    query: Affine  # [heads * head_dim, width]
    key: Affine  # [kv_heads * head_dim, width]
    value: Affine  # [kv_heads * head_dim, width]
    output: Affine  # [width, heads * head_dim]
    feed_forward_norm: Callable
    gate: Optional[Affine]  # [hidden, width]; None: not gated
    up: Affine  # [hidden, width]
    down: Affine  # [width, hidden]
    window: Optional[int] = None  # keys that a query sees, its own and those before; None: all


@dataclass
class Model:
    heads: int
    kv_heads: int
    activation: Callable
    token_embedding: np.ndarray  # [vocab, width]
    position_embedding: Optional[np.ndarray]  # [context, width]; None: rotary
    rotary: Optional[Rotary]
    layers: List[Layer] = field(repr=False)
    final_norm: Callable
    head: Affine  # [vocab, width]
    # Rounds a key or value to what the cache stores; None: exact.
    stored: Optional[Callable] = None


def unseen(query, key, window):
    """Whether the query at one position doesn't see the key at another."""
    return (key > query) | (False if window is None else key <= query - window)


def attention(model, layer, x):
    """x: [time, width]. Query t sees keys 0 to t, the last `window` of them."""
    def split(y, heads):  # [time, heads * head_dim] -> [heads, time, head_dim]
        return y.reshape(len(y), heads, -1).transpose(1, 0, 2)

    q = split(layer.query(x), model.heads)
    k = split(layer.key(x), model.kv_heads)
    v = split(layer.value(x), model.kv_heads)
    if model.rotary is not None:
        q, k = model.rotary(q), model.rotary(k)
    if model.stored is not None:
        k, v = model.stored(k), model.stored(v)
    group = model.heads // model.kv_heads
    k, v = np.repeat(k, group, axis=0), np.repeat(v, group, axis=0)
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    time = np.arange(len(x))
    scores[:, unseen(time[:, None], time[None, :], layer.window)] = -np.inf
    scores -= scores.max(-1, keepdims=True)  # in place: long prompts are large
    weights = np.exp(scores, out=scores)
    weights /= weights.sum(-1, keepdims=True)
    return layer.output((weights @ v).transpose(1, 0, 2).reshape(len(x), -1))


def feed_forward(model, layer, x):
    if layer.gate is None:
        return layer.down(model.activation(layer.up(x)))
    return layer.down(model.activation(layer.gate(x)) * layer.up(x))


def forward(model, ids):
    """ids: [time] or [batch, time] -> logits [..., time, vocab]."""
    ids = np.asarray(ids)
    if ids.ndim == 2:
        return np.stack([forward(model, row) for row in ids])
    x = model.token_embedding[ids]
    if model.position_embedding is not None:
        x = x + model.position_embedding[np.arange(len(ids))]
    for layer in model.layers:
        x = x + attention(model, layer, layer.attention_norm(x))
        x = x + feed_forward(model, layer, layer.feed_forward_norm(x))
    return model.head(model.final_norm(x))


def greedy(model, ids, count):
    """The `count` ids that follow, each the first largest logit."""
    ids = list(ids)
    for _ in range(count):
        ids.append(int(np.argmax(forward(model, ids)[-1])))
    return ids[len(ids) - count:]
