"""Plants faults in a library's PTX and runs it as device.py does: each is found.

    device_mutants.py DIR DRIVER

Each mutant is a process of its own, since a device that has failed stays so. A kernel's
text is changed once, where its instruction stands for the nth time.
"""

import re
import subprocess
import sys

import device

# What is wrong, in which kernel, and what is replaced by what there.
MUTANTS = [
    ("no barrier", "attend_", r"\tbar\.warp\.sync[^\n]*\n", "", "all"),
    ("no barrier", "rotary_k", r"\tbar\.warp\.sync[^\n]*\n", "", "all"),
    ("the next task's row", "rms_norm", r"(ld\.global\.b32 \t%r\d+, \[%rd\d+)\]", r"\1+4096]", 0),
    ("one element further", "down_proj_tile", r"(ld\.global\.b32 \t%r\d+, \[%rd\d+)\]", r"\1+4]", 0),
    ("a misaligned element", "embed_", r"(st\.global\.b32 \t\[%rd\d+)\]", r"\1+2]", 0),
    ("another lane of a sum", "rms_norm", r"(add\.s32 \t%r\d+, %r\d+, )8;", r"\g<1>9;", 0),
    ("a lane of the other half", "rms_norm", r"(shfl\.sync\.idx\.b32 \t%r\d+, %r\d+, 0, )4127", r"\g<1>31", 0),
    ("a subtraction", "down_proj_tile", r"add\.rn\.f32", "sub.rn.f32", 0),
    ("a sum left out", "rms_norm", r"fma\.rn\.f32( \t%r\d+, %r\d+, %r\d+), %r\d+;", r"mul.rn.f32\1;", 0),
    ("a mask that ends late", "attend_", r"setp\.lt\.s64", "setp.le.s64", "all"),
    ("the smallest score for the largest", "attend_", r"setp\.gt\.f32( \t%p\d+, %r\d+, %r\d+;)", r"setp.lt.f32\1", "all"),
    ("another sequence's page", "attend_", r"(ld\.global\.b32 \t%rd\d+, \[%rd\d+)\]", r"\1+8]", "all"),
    ("the position behind", "positions_", r"add\.s64( \t%rd\d+, %rd\d+), 1;", r"add.s64\1, 2;", "all"),
    ("a task too many", "embed_", r"setp\.ge\.u64", "setp.gt.u64", "all"),
    ("a key that isn't stored", "append", r"\tst\.global\.b32[^\n]*\n", "", 0),
    ("an approximation", "rms_norm", r"sqrt\.rn\.f32", "sqrt.approx.f32", 0),
]


def mutated(text, kernel, pattern, replacement, which):
    """The text with the change in the first kernel whose name holds `kernel` and whose
    code has the pattern."""
    for found in re.finditer(r"\.visible \.entry (\w+)\((.*?)\n}\n", text, re.S):
        places = list(re.finditer(pattern, found.group(0)))
        if kernel not in found.group(1) or not places:
            continue
        chosen = places if which == "all" else [places[which]]
        body = found.group(0)
        for place in reversed(chosen):
            body = body[:place.start()] + place.expand(replacement) + body[place.end():]
        return text[:found.start()] + body + text[found.end():]
    raise AssertionError(f"{kernel}: no {pattern}")


def reason(errors):
    """Of the emulator's checks, or of a difference; else none."""
    for line in errors.split("\n"):
        if re.match("cuda-emulator: |AssertionError: (lengths .* differ|cuModuleLoadDataEx: 218)", line):
            return line
    return None


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _, *what = MUTANTS[int(sys.argv[3])]
        device.main(*sys.argv[1:3], device.STEPS, lambda ptx: mutated(ptx, *what))
        sys.exit()
    found = 0
    for number, mutant in enumerate(MUTANTS):
        done = subprocess.run([sys.executable, *sys.argv, str(number)], capture_output=True, text=True)
        why = reason(done.stderr)
        found += why is not None
        print(f"{mutant[0]} in {mutant[1]}: {why or 'not found: ' + done.stderr[-300:]}")
    print(f"{found} of {len(MUTANTS)} mutants found")
