"""Compares a model of 2 layers with one of 30: depth.py SPEC FOLDER."""

import json
import os
import re
import subprocess
import sys

spec, folder = sys.argv[1:]
DEPTHS = 2, 30


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def model(layers):
    path = os.path.join(folder, f"{layers}.json")
    with open(spec) as file:
        description = json.load(file)
    with open(path, "w") as file:
        json.dump(dict(description, layers=layers), file)
    return path


def check(holds, what):
    if not holds:
        sys.exit(f"error: expected {what}")


models = [model(layers) for layers in DEPTHS]


def emitted(stage):
    """Lines of each model's text without constants, of which two that are equal at
    one depth are one."""
    return [[line for line in run("kvc-opt", m, f"--emit={stage}").splitlines()
             if "llvm.mlir.constant" not in line] for m in models]


def numberless(lines, number=r"-?\d+"):
    return [re.sub(number, "0", line) for line in lines]


for stage in "kvc", "fused", "llvm":
    first, second = map(numberless, emitted(stage))
    check(first == second, f"the same text of --emit={stage} but for numbers")
    print(f"--emit={stage}: {len(first)} lines for 2 and for 30 layers, the same but for numbers")


def tasks(lines):
    """The instructions of each parallel task: all that computes is in them."""
    functions = re.findall(r"^(task_\d+):(.*?)^\.Lfunc_end", "\n".join(lines), re.S | re.M)
    # %xmm3 and .LBB4_2 are names.
    number = r"-?\b(0x[0-9a-f]+|\d+)\b"
    return {name: numberless(body.splitlines(), number) for name, body in functions}


first, second = map(tasks, emitted("asm"))
check(len(first) > 10 and first == second, "the same instructions of every task but for numbers")
print(f"--emit=asm: {len(first)} tasks, the same but for numbers")

# What is around the tasks holds the weights' places in registers or in memory,
# as the constants' sizes have it: some instructions more or less.
sizes = []
for layers, m in zip(DEPTHS, models):
    out = os.path.join(folder, f"out{layers}")
    run("kvc-opt", m, "-o", out)
    rows = [row.split() for row in run("llvm-size", os.path.join(out, "libdeep.a")).splitlines()[1:]]
    # text, data, bss, dec, hex, then the member's name
    sizes.append({row[5]: int(row[0]) for row in rows})
for level in "x86-64-v3.o", "x86-64-v4.o":
    found = [size[level] for size in sizes]
    check(abs(found[0] - found[1]) <= 0.01 * found[0], f"{level} of one size within 1 %, but got {found}")
    print(f"{level}: {found[0]} bytes for 2 layers, {found[1]} for 30")
