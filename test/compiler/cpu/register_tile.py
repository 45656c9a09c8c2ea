"""register_tile.py ASM COUNT [INSTRUCTION]: a block of a matrix product that has COUNT
multiply-adds, or others that INSTRUCTION names, reads no vector of the stack: no sum is
spilled. What ends a block of inputs isn't counted: it adds to totals on the stack."""

import re
import sys


def blocks(lines):
    """The instructions of each basic block."""
    block = []
    for line in lines:
        line = line.split("#")[0].strip()
        if re.match(r"([.\w]+):", line):
            yield block
            block = []
        elif line and not line.startswith("."):
            block.append(line)
            if line.startswith("j"):
                yield block
                block = []


def main():
    path, count, *name = sys.argv[1:]
    name = name[0] if name else "vfmadd"
    with open(path) as file:
        found = [block for block in blocks(file)
                 if sum(name in i for i in block) == int(count) and not any("vaddps" in i for i in block)]
    assert found, f"{path}: no block of {count} {name}"
    for block in found:
        assert not any(re.match(r"v\S+\s+(\S+, )*-?\d*\(%rsp\), ", i) for i in block), "\n".join(block)
    print(f"{count} {name} in {max(map(len, found))} instructions, no sum spilled")


main()
