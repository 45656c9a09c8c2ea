#!/usr/bin/env python3
"""Compares libraries whose inputs of products are rounded with the oracle.

    blocks.py MODEL --weights TYPE --activations f32|q8|bf16 FOLDER ...

Runs each token by itself through each library. A number next to the middle
between two bytes, or two bf16, may be rounded the other way from f32 than from float64, and what
follows then rounds otherwise too: a row is within 2e-5, or, where activations are
rounded, it is one of few that are within 5e-2: of a quarter at most in the first
folder, whose sums are of exact integers, and of the fewer half in another.
"""

import argparse
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "reference"))
from files import add_model_options, read_model
from oracle import forward

TOKENS, TOLERANCE, OTHER_WAY = 16, 2e-5, 5e-2

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("folders", nargs="+")
add_model_options(parser)
options = parser.parse_args()
model = read_model(options.model, options.weights, options.cache, options.activations)

for index, folder in enumerate(options.folders):
    differences = []
    for token in range(TOKENS):
        path = os.path.join(folder, "logits.npy")
        subprocess.run(["kvc-run", folder, "--ids", str(token), "-n", "1", "--logits", path],
                       check=True, capture_output=True)
        expected = forward(model, [token])
        differences.append(np.abs(np.load(path) - expected).max() / np.abs(expected).max())
    within = sum(d <= TOLERANCE for d in differences)
    print(f"{folder}: {within} of {TOKENS} rows within {TOLERANCE:g}, "
          f"median {np.median(differences):.2g}, largest {max(differences):.2g}")
    if max(differences) > (OTHER_WAY if options.activations != "f32" else TOLERANCE) or within < (3 * TOKENS // 4 if index == 0 else TOKENS // 2 + 1):
        sys.exit("error: expected less")
