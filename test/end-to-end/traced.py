"""traced.py TRACE: between the two calls of getppid in what strace -f wrote, there is
no system call but futex."""

import re
import sys

lines = open(sys.argv[1]).read().splitlines()
marks = [i for i, line in enumerate(lines) if " getppid(" in line]
assert len(marks) == 2, f"expected two calls of getppid, but got {len(marks)}"
calls = {}
for line in lines[marks[0] + 1 : marks[1]]:
    call = re.search(r"^\d+ +(?:<\.\.\. )?(\w+)", line)
    assert call, line
    calls[call[1]] = calls.get(call[1], 0) + 1
others = sorted(calls.keys() - {"futex"})
if others:
    sys.exit(f"error: expected no system call but futex, but got {', '.join(others)}")
print(f"{calls.get('futex', 0)} calls of futex and no other")
