"""Runs `kvc-run DIR` on a prompt too long for a test's line.

    long_prompt.py DIR COUNT VOCAB OUT

Writes OUT/ids.npy (i64 [COUNT], random) and OUT/logits.npy [COUNT, vocab].
"""

import subprocess
import sys

import numpy as np

directory, count, vocab, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
ids = np.random.default_rng(0).integers(0, vocab, count)
np.save(f"{out}/ids.npy", ids)
subprocess.run(["kvc-run", directory, "--ids", ",".join(map(str, ids)), "-n", "1",
                "--logits", f"{out}/logits.npy"], check=True)
