"""golden.py GOLDEN VERSION_H FOLDER NAME...: the bits of FOLDER/NAME.npy are those
that GOLDEN lists for the numerics version of VERSION_H.

Where bits change, kNumericsVersion must change, and then every line of GOLDEN: a
file or a text that was written with the old bits must not meet the new ones.
"""

import hashlib
import re
import sys

import numpy


def main():
    golden, header, folder, *names = sys.argv[1:]
    with open(header) as file:
        version = re.search(r"kNumericsVersion = (\d+);", file.read()).group(1)
    with open(golden) as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    expected = {name: (known, digest) for name, known, digest in lines}
    wrong = 0
    for name in names:
        logits = numpy.load(f"{folder}/{name}.npy")
        digest = hashlib.sha256(logits.tobytes()).hexdigest()
        if expected.get(name) != (version, digest):
            wrong += 1
            print(
                f"{golden}: {name}: expected the bits of numerics version "
                f"{' '.join(expected.get(name, ('none',)))}, but got {version} {digest}"
            )
    print(f"{len(names) - wrong} of {len(names)} have the bits of numerics version {version}")
    sys.exit(wrong != 0)


main()
