"""includes.py ROOT: checks which folders include what."""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
COMPILER = re.compile(r"(^|/)(dialect|compiler|mlir|mlir-c|llvm|llvm-c)/")
RUNTIME = re.compile(r"(^|/)(runtime|kvc)/")


def includes(folder):
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix not in (".h", ".c", ".cpp", ".td", ".in"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if found:
                yield f"{path.relative_to(ROOT)}:{number}", found.group(1)


errors = [
    f"{place}: expected nothing of the compiler, but got {name}"
    for place, name in includes("runtime")
    if COMPILER.search(name)
] + [
    f"{place}: expected of the runtime kvc/abi.h alone, but got {name}"
    for folder in ("compiler", "dialect")
    for place, name in includes(folder)
    if RUNTIME.search(name) and name != "kvc/abi.h"
]
print("\n".join(errors))
sys.exit(1 if errors else 0)
