#!/usr/bin/env python3
"""The root-mean-square error of a library's logits, and of another engine's.

    accuracy.py MODEL.gguf FOLDER IDS [--other "COMMAND"]

FOLDER is what kvc-opt made of the model; IDS is a text file of ids with commas
between them. 256 ids at a time are a prompt, whose logits are compared with the
oracle's on the same dequantised weights and inputs that nothing rounds. COMMAND is
called with MODEL, the ids and the file to write the logits [positions, vocab] (npy)
to. A prompt's error is that of few products, which are rounded this way or that: it
takes many prompts to tell two engines apart.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "reference"))
from files import read_model
from oracle import forward

PROMPT = 256

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("folder")
parser.add_argument("ids")
parser.add_argument("--other")
options = parser.parse_args()

with open(options.ids) as file:
    ids = [int(word) for word in file.read().split(",")]
model = read_model(options.model, activations="f32")
squares, reference = {}, []
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "logits.npy")
    for begin in range(0, len(ids) - PROMPT + 1, PROMPT):
        prompt = ids[begin:begin + PROMPT]
        text = ",".join(map(str, prompt))
        commands = {"kvc": ["kvc-run", options.folder, "--ids", text, "-n", "0", "--logits", path]}
        if options.other:
            commands["other"] = [*shlex.split(options.other), options.model, text, path]
        expected = forward(model, prompt)
        reference.append(np.mean(expected ** 2))
        for name, command in commands.items():
            subprocess.run(command, check=True, capture_output=True)
            squares.setdefault(name, []).append(np.mean((np.load(path) - expected) ** 2))

size = np.sqrt(np.mean(reference))
errors = {name: np.sqrt(np.mean(own)) for name, own in squares.items()}
print(f"{PROMPT * len(reference)} positions, logits of {size:.4g};", ", ".join(
    f"error of {name} {error:.4g} ({error / size:.2%}), by prompt "
    + " ".join(f"{np.sqrt(own):.3f}" for own in squares[name]) for name, error in errors.items()))
if options.other:
    print(f"kvc / other {errors['kvc'] / errors['other']:.3f}")
