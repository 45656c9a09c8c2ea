"""Compiles SPEC with several register tiles and compares logits bit by bit:
tiles.py SPEC FOLDER [OPTION of kvc-opt]..."""

import os
import subprocess
import sys

spec, folder, *given = sys.argv[1:]
os.makedirs(folder)
TILES = "6x1", "14x2", "1x1", "3x4", "2x3"
CHUNKS = None, "1", "2,3", "16,1"


def compile_with(tile):
    out = os.path.join(folder, tile or "own")
    options = given + ([f"--tile={tile}"] if tile else [])
    subprocess.run(["kvc-test-opt", spec, "--target=cpu:native", "--name=tiles", "-o", out, *options], check=True)
    return out


def logits(library, count, chunks):
    path = os.path.join(folder, "logits.npy")
    ids = ",".join(str(i * i * 7 % 77) for i in range(count))
    options = ["--chunks", chunks] if chunks else []
    subprocess.run(["kvc-run", library, "--ids", ids, "-n", "0", "--logits", path, *options],
                   check=True, capture_output=True)
    with open(path, "rb") as file:
        return file.read()


libraries = [compile_with(tile) for tile in (None, *TILES)]
codes = []
for library in libraries:
    with open(os.path.join(library, "libtiles.a"), "rb") as file:
        codes.append(file.read())
if len(set(codes)) < len(TILES):
    sys.exit("error: expected other code for other tiles")
for count in 1, 2, 5, 7, 33:
    first = logits(libraries[0], count, None)
    for library in libraries:
        for chunks in CHUNKS:
            if logits(library, count, chunks) != first:
                sys.exit(f"error: {library}: expected the same bits for {count} tokens in chunks of {chunks}")
    print(f"{count} token{'s' if count > 1 else ''}")
print(f"tiles {', '.join(TILES)} and the target's own: the same bits")
