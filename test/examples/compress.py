"""compress.py pairs FILE PROGRAM NATIVE [--chunks 512,7,1] [--threads 1,2]
compress.py damage FILE PROGRAM

PROGRAM is examples/compress with a library of several CPU levels, NATIVE with one
of this machine. `pairs`: every writer (level x threads x chunk) makes the same
file, and every reader (level x threads) makes FILE of it again; so every pair of
them does. Levels that the machine lacks are named. Prints the size and the time
beside those of xz. `damage`: a file with a byte changed, at each of many places, or
cut off anywhere, is an error, and OUT isn't written.
"""

import argparse
import itertools
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zlib


def run(program, *arguments, level=None):
    environment = os.environ | ({"KVC_CPU": level} if level else {})
    return subprocess.run([program, *arguments], capture_output=True, text=True,
                          env=environment)  # fmt: skip


def pairs(text, program, native, chunks, threads, work):
    levels = [(program, "x86-64-v3"), (program, "x86-64-v4"), (native, None)]
    packed, unpacked = work / "packed", work / "unpacked"
    files, writers, readers = set(), 0, 0
    for (binary, level), count in itertools.product(levels[:], threads):
        if (binary, level) not in levels:
            continue
        for chunk in chunks:
            options = [f"--threads={count}", f"--chunk={chunk}"]
            start = time.monotonic()
            done = run(binary, *options, str(text), str(packed), level=level)
            seconds = time.monotonic() - start
            if "lacks it" in done.stderr:
                print(f"skipped: {level}, which this machine lacks")
                levels.remove((binary, level))
                break
            if done.returncode:
                sys.exit(f"{level}, {options}: {done.stderr}")
            files.add(packed.read_bytes())
            writers += 1
            print(f"write {level or 'native'}, {count} threads, chunk {chunk}: {seconds:.1f} s")
        if len(files) != 1:
            sys.exit(f"expected one file, but writers made {len(files)}")
    packed.write_bytes(files.pop())
    original = text.read_bytes()
    for (binary, level), count in itertools.product(levels, threads):
        unpacked.write_bytes(b"")
        options = ["-d", f"--threads={count}"]
        start = time.monotonic()
        done = run(binary, *options, str(packed), str(unpacked), level=level)
        seconds = time.monotonic() - start
        if done.returncode or unpacked.read_bytes() != original:
            sys.exit(f"read {level}, {options}: another text; {done.stderr}")
        readers += 1
        print(f"read {level or 'native'}, {count} threads: {seconds:.1f} s")
    size, each = packed.stat().st_size, max(len(original), 1)
    start = time.monotonic()
    other = len(lzma.compress(original, preset=9))
    seconds = time.monotonic() - start
    print(f"{writers} writers made one file, and {readers} readers the text")
    print(f"{len(original)} bytes: compress {size} ({size / each:.3f}), "
          f"xz -9 {other} ({other / each:.3f}, {seconds:.3f} s)")  # fmt: skip


def damage(text, program, work):
    packed, broken, out = work / "packed", work / "broken", work / "out"
    done = run(program, str(text), str(packed))
    assert done.returncode == 0, done.stderr
    whole = packed.read_bytes()
    cases = [whole[:size] for size in range(0, len(whole), 1 + len(whole) // 40)]
    cases += [whole[:-1], whole + b"\0"]
    for at in [*range(60), *range(60, len(whole), 1 + len(whole) // 40)]:
        cases.append(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
    for case in cases:
        broken.write_bytes(case)
        done = run(program, "-d", str(broken), str(out))
        message = done.stderr.startswith("error: ") and str(broken) in done.stderr
        if done.returncode != 1 or not message or out.exists():
            sys.exit(f"{case[:64]}: {done.returncode}: {done.stderr}")
    print(f"{len(cases)} damaged files are {len(cases)} errors")
    # With the checksum put right it is still no crash and no other text. The last 8
    # bytes place the last token more exactly than it needs.
    for at in [*range(8, 52), *range(52, len(whole) - 8, 1 + len(whole) // 60)]:
        case = whole[8:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
        broken.write_bytes(whole[:4] + zlib.crc32(case).to_bytes(4, "little") + case)
        done = run(program, "-d", str(broken), str(out))
        if done.returncode != 1 or not done.stderr.startswith("error: "):
            sys.exit(f"byte {at}: {done.returncode}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["pairs", "damage"])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--chunks", default="512,7,1")
    parser.add_argument("--threads", default="1,2")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if given.what == "damage":
            damage(given.file, given.programs[0], work)
        else:
            pairs(given.file, *given.programs, given.chunks.split(","),
                  given.threads.split(","), work)  # fmt: skip


main()
