"""container.py GGUF DIR: breaks a GGUF file's container in DIR, and prints what
kvc-tokenizer-tool says."""

import pathlib
import struct
import subprocess
import sys

import tiny

whole = pathlib.Path(sys.argv[1]).read_bytes()
path = pathlib.Path(sys.argv[2]) / "container.gguf"


def error(data):
    path.write_bytes(data)
    run = subprocess.run(["kvc-tokenizer-tool", path, "info"], capture_output=True, text=True)
    # 1 is an error that was reported; a crash has another status.
    if run.returncode != 1 or not run.stderr.startswith("error: "):
        sys.exit(f"expected an error for {len(data)} bytes, but got {run}")
    return run.stderr[len("error: "):].strip()


def entry(value):
    """A file with the one key `a`."""
    return b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + value


ends = sorted({*range(0, 200), *range(200, len(whole), 311), len(whole) - 1})
for end in ends:
    error(whole[:end])
print("every cut is an error")

tokens = tiny.spm_tokens()
tokens[260] = b"\xff"
bad_bytes = dict(tiny.spm_gguf(), **{"tokenizer.ggml.tokens": ("strings", tokens)})
cases = {
    "magic": b"????" + whole[4:],
    "version": whole[:4] + struct.pack("<I", 9) + whole[8:],
    "count": whole[:16] + struct.pack("<Q", 2**64 - 1) + whole[24:],
    "key length": whole[:24] + struct.pack("<Q", 2**63) + whole[32:],
    "type": entry(struct.pack("<II", 99, 0)),
    "array count": entry(struct.pack("<IIQ", 9, 10, 2**61)),
    "nested array": entry(struct.pack("<IIQ", 9, 9, 1)),
    "repeated key": b"GGUF" + struct.pack("<IQQ", 3, 0, 2)
    + 2 * (struct.pack("<Q", 1) + b"a" + struct.pack("<II", 4, 0)),
    "token bytes": tiny.gguf_bytes(bad_bytes),
}
for name, data in cases.items():
    print(f"{name}: {error(data)}")
