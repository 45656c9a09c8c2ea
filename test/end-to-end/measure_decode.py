"""How much of the machine's read bandwidth decoding uses.

    measure_decode.py LIBRARY CC FOLDER

A decoded token reads every weight once, so bytes of weights over the time of a
token is a bandwidth; it is set against what bandwidth.c reads with as many
threads, in turns with decoding so that both see the same machine. Fails below
half. Other programs may be running: the best of three tries counts.
"""

import os
import re
import statistics
import subprocess
import sys

library, compiler, folder = sys.argv[1:]
LEAST, TRIES, TURNS = 0.5, 3, 3
IDS = "504,3575,282,4649,314,7042,30"


def build():
    program = os.path.join(folder, "bandwidth")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bandwidth.c")
    subprocess.run([compiler, "-std=c11", "-O3", "-march=native", "-pthread", source, "-o", program],
                   check=True)
    return program


def read_bandwidth(program):
    """Bytes a second, of each pass."""
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return [float(line) for line in output.split()]


def decode():
    """Bytes of weights, and the median seconds of a token."""
    log = subprocess.run(["kvc-run", library, "--ids", IDS, "-n", "40", "--ignore-end", "--print-ids",
                          "--time"], check=True, capture_output=True, text=True).stderr
    weights, padding = map(int, re.search(r"weights (\d+) \(padding (\d+)\)", log).groups())
    return weights - padding, float(re.search(r"a token: median ([\d.]+) ms", log)[1]) / 1e3


program = build()
for attempt in range(1, TRIES + 1):
    passes, tokens = [], []
    for _ in range(TURNS):
        passes += read_bandwidth(program)
        weights, seconds = decode()
        tokens.append(seconds)
    bandwidth, seconds = statistics.median(passes), statistics.median(tokens)
    ratio = weights / seconds / bandwidth
    print(f"try {attempt}: {weights / 1e6:.1f} MB of weights, {seconds * 1e3:.2f} ms a token, "
          f"{bandwidth / 1e9:.2f} GB/s read: {ratio:.2f} of the bandwidth")
    if ratio >= LEAST:
        sys.exit()
sys.exit(f"error: expected at least {LEAST} of the bandwidth")
