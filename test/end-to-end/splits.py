"""splits.py SPEC FOLDER COUNT CHUNKS...: attention over splits of its keys, bit by bit.

A prompt of COUNT tokens in chunks of many sizes, with threads that share the splits
and without, at each level of this machine, contiguous and paged: the same logits.
Writes FOLDER/ids.npy and FOLDER/logits.npy for the oracle.
"""

import os
import subprocess
import sys

import numpy as np

spec, folder, count, *cuts = sys.argv[1:]
os.makedirs(folder)
ids = np.random.default_rng(5).integers(0, 13, int(count))
np.save(f"{folder}/ids.npy", ids)


def compile_with(name, *options):
    subprocess.run(["kvc-opt", spec, "-o", f"{folder}/{name}", *options], check=True, capture_output=True)
    return f"{folder}/{name}"


def logits(library, *options):
    path = f"{folder}/logits.npy"
    subprocess.run(["kvc-run", library, "--ids", ",".join(map(str, ids)), "-n", "1", "--poison", "--logits", path,
                    *options], check=True, capture_output=True)
    with open(path, "rb") as file:
        return file.read()


contiguous, paged = compile_with("contiguous"), compile_with("paged", "--cache=paged<48>")
with open("/proc/cpuinfo") as file:
    levels = ["x86-64-v3", "x86-64-v4"] if "avx512vl" in file.read() else ["x86-64-v3"]
first = logits(contiguous)
for chunks in cuts:
    for library in contiguous, paged:
        for options in ["--threads", "1"], ["--threads", "3"]:
            for level in levels:
                if logits(library, "--chunks", chunks, "--cpu", level, *options) != first:
                    sys.exit(f"error: {library}: expected the same bits in chunks of {chunks}, {options}, {level}")
logits(contiguous)
print("the same bits")
