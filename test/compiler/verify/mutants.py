"""mutants.py FILE ACCEPTED SEED FOLDER [OPTION]: whatever of a program's mutants
the compiler (with OPTION) accepts, by either lowering, must give the full prefix's
bits. Goes on until so many are accepted.

A mutant has one to three changes: another value as an operand, a line moved,
written twice or left out, another number. Memory is NaN where nobody wrote.
"""

import random
import re
import shutil
import subprocess
import sys


def mutate(text, rng):
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        ops = [i for i, line in enumerate(lines) if re.match(r" *(%|scf.yield|return)", line)]
        at = rng.choice(ops)
        line = lines[at]
        start = max(i for i in range(at) if "func.func" in lines[i])
        names = re.findall(r"%\w+", "\n".join(lines[start:at]))

        def replace(pattern, text_of):
            found = list(re.finditer(pattern, line))
            if found:
                match = rng.choice(found)
                lines[at] = line[: match.start()] + text_of(match.group()) + line[match.end() :]

        change = rng.randrange(8)
        if change < 4:
            replace(r"(?<=\S )%\w+", lambda _: rng.choice(names))
        elif change == 4:
            lines.insert(max(0, at + rng.randrange(-4, 5)), lines.pop(at))
        elif change == 5:
            lines.insert(at + 1, re.sub(r"%\w+", f"%again{len(lines)}", line, count=1))
        elif change == 6:
            del lines[at]
        else:
            replace(r"\b\d+\b", lambda old: rng.choice(["0", "1", "2", str(int(old) + 1)]))
    return "\n".join(lines)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def main():
    source, wanted, seed, folder, *option = sys.argv[1:]
    rng = random.Random(int(seed))
    with open(source) as file:
        text = file.read()
    compiler = "kvc-test-opt" if option else "kvc-opt"
    accepted = rejected = 0
    while accepted < int(wanted):
        number = accepted + rejected
        mutant, out = f"{folder}/mutant.mlir", f"{folder}/out"
        with open(mutant, "w") as file:
            file.write(mutate(text, rng))
        shutil.rmtree(out, ignore_errors=True)
        lowering = rng.choice([[], ["--emit=reference"]])
        compiled = run(compiler, mutant, *lowering, *option, "--target=cpu:native", "-o", out)
        if compiled.returncode == 1 and "error: " in compiled.stderr:
            rejected += 1
            continue
        assert compiled.returncode == 0, f"mutant {number}: kvc-opt: {compiled}"
        checked = run("kvc-run", out, "--check-equivalence", "3", "--poison")
        assert ": 0 differ" in checked.stdout, f"mutant {number}: kvc-run: {checked}"
        accepted += 1
    print(f"{rejected} rejected, {accepted} accepted, each with the full prefix's bits")


main()
