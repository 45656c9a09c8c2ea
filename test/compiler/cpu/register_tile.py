"""register_tile.py ASM COUNT: the innermost loop of a matrix product's register tile,
which has COUNT multiply-adds, spills no sum: it stores nothing, and reads no vector
of the stack."""

import re
import sys


def innermost_loops(lines):
    """The instructions of each loop that is one block."""
    label, block = None, []
    for line in lines:
        line = line.split("#")[0].strip()
        if match := re.match(r"([.\w]+):", line):
            label, block = match.group(1), []
        elif line and not line.startswith("."):
            block.append(line)
            if line.startswith("j"):
                if line.split()[1] == label:
                    yield block
                label, block = None, []


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        loops = [loop for loop in innermost_loops(file) if sum("vfmadd" in i for i in loop) == count]
    assert loops, f"{path}: no loop of {count} multiply-adds"
    for loop in loops:
        assert not any(re.search(r"^v.*%rsp|, [^,]*\)$", i) for i in loop), "\n".join(loop)
    print(f"{count} multiply-adds in {max(map(len, loops))} instructions, no sum spilled")


main()
