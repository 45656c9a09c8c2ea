"""error_paths.py RUNTIME TRACE: is every place that makes an error reached?

RUNTIME is the runtime's folder, TRACE what kvc-runtime-errors wrote.
"""

import glob
import os
import re
import sys

folder, trace = sys.argv[1:]
with open(trace) as file:
    reached = {os.path.basename(line.strip()) for line in file}

# A call ends where its parentheses do, and is traced with that line's number.
PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[()]')


def errors(path):
    """file:line of each error that the file makes, and the call's first line."""
    with open(path) as file:
        text = file.read()
    for call in re.finditer(r"\bfail(?:Null|File)?\(", text):
        depth = 0
        for part in PARTS.finditer(text, call.end() - 1):
            depth += {"(": 1, ")": -1}.get(part.group(), 0)
            if depth == 0:
                break
        line = text.count("\n", 0, part.start()) + 1
        yield f"{os.path.basename(path)}:{line}", text[call.start():].split("\n")[0]


paths = sorted(set(glob.glob(f"{folder}/*.cpp") + glob.glob(f"{folder}/*.h"))
               - {f"{folder}/error.cpp", f"{folder}/error.h"})
every = dict(error for path in paths for error in errors(path))
missed = sorted(set(every) - reached)
for place in missed:
    print(f"not reached: {place}: {every[place]}")
print(f"{len(every)} places make an error, {len(missed)} of them are not reached")
if reached - set(every):
    sys.exit(f"error: traced, but not found: {sorted(reached - set(every))}")
