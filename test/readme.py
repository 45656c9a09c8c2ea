"""readme.py README.md KIND: prints the README's one block of this kind.
readme.py README.md mlir IR: checks that its lines are, in this order, in IR.
"""
import re
import sys

text = open(sys.argv[1]).read()
blocks = re.findall(rf"^```{sys.argv[2]}\n(.*?)^```$", text, re.S | re.M)
assert len(blocks) == 1, f"expected one block, but got {len(blocks)}"
if len(sys.argv) == 3:
    print(blocks[0], end="")
    sys.exit()

lines = iter(open(sys.argv[3]).read().splitlines())
for line in blocks[0].splitlines():
    if not any(line.strip() in other for other in lines):
        sys.exit(f"expected in this order: {line.strip()}")
