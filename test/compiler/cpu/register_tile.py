"""register_tile.py ASM COUNT [vpdpbusd]: the innermost loop of a matrix product's
register tile, which has COUNT multiply-adds, spills no sum: it stores nothing, and
reads no vector of the stack. Of dot products of bytes, the block of COUNT of them
stores nothing to the stack."""

import re
import sys


def blocks(lines):
    """The instructions of each basic block, and whether it is a loop."""
    label, block = None, []
    for line in lines:
        line = line.split("#")[0].strip()
        if match := re.match(r"([.\w]+):", line):
            yield block, False
            label, block = match.group(1), []
        elif line and not line.startswith("."):
            block.append(line)
            if line.startswith("j"):
                yield block, line.split()[1] == label
                label, block = None, []


def main():
    path, count, *dot = sys.argv[1:]
    with open(path) as file:
        if dot:
            found = [block for block, _ in blocks(file) if sum(dot[0] in i for i in block) == int(count)]
            spill, what = r"^v.*, [^,]*\(%rsp\)$", "dot products"
        else:
            found = [block for block, is_loop in blocks(file)
                     if is_loop and sum("vfmadd" in i for i in block) == int(count)]
            spill, what = r"^v.*%rsp|, [^,]*\)$", "multiply-adds"
    assert found, f"{path}: no {count} {what}"
    for block in found:
        assert not any(re.search(spill, i) for i in block), "\n".join(block)
    print(f"{count} {what} in {max(map(len, found))} instructions, no sum spilled")


main()
