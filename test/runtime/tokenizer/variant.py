"""variant.py KIND OUT FIELD=VALUE...: a tiny tokenizer with fields changed.

KIND names one of the files that tiny.py writes. FIELD is a path such as
model.vocab.hello or added_tokens.0.id in a tokenizer.json; a key, or key#index for
one element of its array, in a GGUF file.
VALUE is JSON, and `delete` removes the field. GGUF values take the type of what
they replace, or of their JSON; {"TYPE": VALUE} names one of tiny.gguf_bytes.
"""

import json
import pathlib
import sys

import tiny

KINDS = {
    "byte/tokenizer.json": tiny.byte_json,
    "llama3/tokenizer.json": tiny.llama3_json,
    "spm/tokenizer.json": tiny.spm_json,
    "byte.gguf": tiny.byte_gguf,
    "llama3.gguf": tiny.llama3_gguf,
    "spm.gguf": tiny.spm_gguf,
    "spm-merges.gguf": tiny.spm_merges_gguf,
}


def set_field(whole, path, value):
    *outer, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    for step in outer:
        whole = whole[step]
    if value == "delete":
        del whole[last]
    else:
        whole[last] = json.loads(value)


def set_key(metadata, path, value):
    key, _, index = path.partition("#")
    if value == "delete":
        del metadata[key]
        return
    value = json.loads(value)
    if index:
        kind, items = metadata[key]
        items = list(items)
        items[int(index)] = value
        metadata[key] = (kind, items)
    elif isinstance(value, dict):
        [(kind, value)] = value.items()
        metadata[key] = (kind, value)
    else:
        kinds = {bool: "bool", str: "string", int: "uint32"}
        kind = metadata[key][0] if key in metadata else kinds[type(value)]
        metadata[key] = (kind, value)


kind, out, *changes = sys.argv[1:]
whole = KINDS[kind]()
change = set_key if kind.endswith(".gguf") else set_field
for text in changes:
    path, _, value = text.partition("=")
    change(whole, path, value)
if kind.endswith(".gguf"):
    pathlib.Path(out).write_bytes(tiny.gguf_bytes(whole))
else:
    tiny.write_json(pathlib.Path(out), whole)
