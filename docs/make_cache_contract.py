"""Prints docs/cache-contract.md: each mistake with what the tool says to it.

usage: make_cache_contract.py FOLDER     (the folder test/compiler/verify/contract)

kvc-test-opt is taken from PATH. A program of the folder opens with a RUN line and a
comment "Mistake N: ..."; the diagnostics are those of the program as shown.
"""

import os
import re
import subprocess
import sys
import tempfile

HEAD = """# The cache contract

`kvc-verify-cache-contract` runs in every compilation, after calls are inlined and
before anything else. It follows each function as it runs: each cache value, the
origin of each position and the layers of each step, iteration by iteration through
`scf.for`, and through the branch of an `scf.if` that runs. Bounds, conditions and
layers are constants or made of them. What it can't follow is an error that says
what: no program passes unseen.

A step is a `kvc.positions` of a cache, one `kvc.append` to each layer at these
positions, before the `kvc.attend`s that read the layer, and one `kvc.advance`.
Keys, values and queries that were rotated or embedded at positions were so at
those of the step, too. What a function without a body gives is taken as new.
A function starts and ends between two steps.

This page is made by `docs/make_cache_contract.py` from the programs in
`test/compiler/verify/contract`, and a test compares it with what the tool
prints. Each program is the smallest with its mistake. Values are named as the
printer of MLIR numbers them; a note stands at the value that it names."""

TAIL = """
## What a wrong program does

`kvc-test-opt`, a tool of the tests, compiles what the verifiers reject, and makes the
first mistake in any model: positions that restart in every step. The library runs,
and gives other logits than the full prefix as soon as a prompt comes in chunks:

    build/bin/kvc-opt examples/cached-decoder/story.json --emit=kvc -o right.mlir
    build/bin/kvc-test-opt right.mlir --kvc-test-restart-positions -o wrong.mlir
    build/bin/kvc-opt wrong.mlir -o out                  # refused, with the reason
    build/bin/kvc-test-opt wrong.mlir --skip-cache-contract --skip-forward --emit=reference -o out
    build/bin/kvc-run out --check-equivalence 3          # says where it differs"""


def program(path):
    """(number, title, description, text without its comments)"""
    with open(path) as f:
        lines = f.read().split("\n")
    comment, text = [], []
    for line in lines:
        if re.match(r"\s*// (RUN|expected-)", line):
            continue
        if re.match(r"// ", line):
            comment.append(line[3:])
        else:
            text.append(line)
    pattern = r"Mistake (\d+): ([^.]*)\.(.*)"
    number, title, more = re.match(pattern, "\n".join(comment), re.DOTALL).groups()
    return int(number), title[0].upper() + title[1:], more.strip(), "\n".join(text).strip() + "\n"


def diagnostics(name, text):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
        result = subprocess.run(
            ["kvc-test-opt", name, "--kvc-verify-cache-contract", "--mlir-print-op-on-diagnostic=false"],
            cwd=folder, capture_output=True, text=True,
        )
    assert result.returncode != 0, f"{name}: expected an error, but got none"
    # Without the lines of the program that stand above already.
    return "\n".join(
        line for line in result.stderr.rstrip().split("\n") if line.startswith(name)
    )


def main(folder):
    programs = [
        (*program(os.path.join(folder, name)), name)
        for name in os.listdir(folder) if name.endswith(".mlir")
    ]
    print(HEAD)
    for number, title, more, text, name in sorted(programs):
        print(f"\n## {number}. {title}\n")
        if more:
            print(f"{more}\n")
        print(f"```mlir\n{text}```\n\n```\n{diagnostics(name, text)}\n```")
    print(TAIL)


if __name__ == "__main__":
    main(sys.argv[1])
