"""Compares a model with a deeper one: depth.py SPEC FOLDER.

The second pair has pages, of another size, and another number of them, too.
"""

import json
import os
import re
import subprocess
import sys

spec, folder = sys.argv[1:]
PAIRS = {
    "contiguous": (dict(layers=2), dict(layers=30)),
    "paged": (dict(layers=2, context=32768, cache="paged<128>"),
              dict(layers=30, context=1 << 20, cache="paged<4096>")),
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def model(name, cache="contiguous", **changes):
    """Arguments of kvc-opt for the changed model."""
    path = os.path.join(folder, f"{name}.json")
    with open(spec) as file:
        description = json.load(file)
    with open(path, "w") as file:
        json.dump(dict(description, **changes), file)
    return path, f"--cache={cache}"


def check(holds, what):
    if not holds:
        sys.exit(f"error: expected {what}")


def emitted(model, stage):
    """Lines of a model's text without constants, of which two that are equal at one
    depth are one."""
    return [line for line in run("kvc-opt", *model, f"--emit={stage}").splitlines()
            if "llvm.mlir.constant" not in line]


def numberless(lines, number=r"-?\d+"):
    return [re.sub(number, "0", line) for line in lines]


def tasks(lines):
    """The instructions of each parallel task: all that computes is in them."""
    functions = re.findall(r"^(\w+\.[\w.]+):(.*?)^\.Lfunc_end", "\n".join(lines), re.S | re.M)
    # %xmm3 and .LBB4_2 are names.
    number = r"-?\b(0x[0-9a-f]+|\d+)\b"
    return {name: numberless(body.splitlines(), number) for name, body in functions}


def code_sizes(name, model):
    """Bytes of code of each CPU level."""
    out = os.path.join(folder, f"out-{name}")
    run("kvc-opt", *model, "-o", out)
    rows = [row.split() for row in run("llvm-size", os.path.join(out, "libdeep.a")).splitlines()[1:]]
    # text, data, bss, dec, hex, then the member's name
    return {row[5]: int(row[0]) for row in rows}


for layout, pair in PAIRS.items():
    names = [f"{layout}-{changes['layers']}" for changes in pair]
    models = [model(name, **changes) for name, changes in zip(names, pair)]
    for stage in "kvc", "fused", "llvm":
        first, second = (numberless(emitted(m, stage)) for m in models)
        check(first == second, f"the same text of --emit={stage} but for numbers")
        print(f"{layout}: --emit={stage}: {len(first)} lines for 2 and for 30 layers, the same but for numbers")

    # Which instruction multiplies by a page's size depends on the size.
    if layout == "contiguous":
        first, second = (tasks(emitted(m, "asm")) for m in models)
        check(len(first) > 10 and first == second, "the same instructions of every task but for numbers")
        print(f"{layout}: --emit=asm: {len(first)} tasks, the same but for numbers")

    # What is around the tasks holds the weights' places in registers or in memory,
    # as the constants' sizes have it: some instructions more or less.
    sizes = [code_sizes(name, m) for name, m in zip(names, models)]
    for level in "x86-64-v3.o", "x86-64-v4.o":
        found = [size[level] for size in sizes]
        check(abs(found[0] - found[1]) <= 0.01 * found[0], f"{level} of one size within 1 %, but got {found}")
        print(f"{layout}: {level}: {found[0]} bytes for 2 layers, {found[1]} for 30")
