"""nfc_check.py TOKENIZER: encodes and decodes with a tokenizer that normalises to
NFC and has every byte, and compares the text with Python's."""

import random
import subprocess
import sys
import tempfile
import unicodedata


def run(*words, data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        command = ["kvc-tokenizer-tool", sys.argv[1], *words, file.name]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


choose = random.Random(3)
characters = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
special = [c for c in characters
           if unicodedata.decomposition(c) or unicodedata.combining(c)]  # fmt: skip
marks = [c for c in special if unicodedata.combining(c)]
hangul = [chr(c) for c in [*range(0x1100, 0x1200), *range(0xAC00, 0xAC80)]]
texts = ["".join(special[i : i + 50]) for i in range(0, len(special), 50)]
for pool in ["aeoAEO" * 9, marks, marks[:60], special, hangul, characters]:
    pool = [*pool, *"aeo", *choose.sample(marks, 8)]
    texts += ["".join(choose.choices(pool, k=choose.randint(1, 9)))
              for _ in range(2000)]  # fmt: skip
texts += [unicodedata.normalize("NFD", text) for text in texts]
ids = run("encode-file", data=b"".join(t.encode() + b"\0" for t in texts))
decoded = run("decode-file", data=ids).decode().split("\0")
assert len(decoded) == len(texts) + 1
for text, got in zip(texts, decoded):
    expected = unicodedata.normalize("NFC", text)
    if got != expected:
        sys.exit(f"{ascii(text)}: expected {ascii(expected)}, but got {ascii(got)}")
print(len(texts), "texts agree")
