"""check_golden.py GOLDEN.jsonl TOKENIZER: compares kvc-tokenizer-tool with it."""

import json
import subprocess
import sys
import tempfile


def run(tokenizer, command, data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return subprocess.run(
            ["kvc-tokenizer-tool", tokenizer, *command, file.name],
            stdout=subprocess.PIPE, check=True).stdout.decode()  # fmt: skip


golden, tokenizer = sys.argv[1:]
with open(golden) as file:
    lines = [json.loads(line) for line in file]
texts = b"".join(line["text"].encode() + b"\0" for line in lines)
ids = "".join(" ".join(map(str, line["ids"])) + "\n" for line in lines)
encoded = run(tokenizer, ["encode-file", "--special", "--parse"], texts).split("\n")
decoded = run(tokenizer, ["decode-file"], ids.encode()).split("\0")
assert len(encoded) == len(decoded) == len(lines) + 1
for line, got, text in zip(lines, encoded, decoded):
    if got != " ".join(map(str, line["ids"])):
        sys.exit(f"encode {line['text']!r}:\nexpected {line['ids']}\nbut got  [{got}]")
    if text != line["decoded"]:
        sys.exit(f"decode {line['ids']}:\nexpected {line['decoded']!r}\nbut got  {text!r}")
print(len(lines), "texts agree")
