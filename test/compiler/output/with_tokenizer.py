"""with_tokenizer.py MODEL.gguf TOKENIZER.gguf OUT: the model's tensors with the
metadata of both."""

import struct
import sys

HEADER = struct.Struct("<4sIQQ")  # magic, version, tensors, metadata entries


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return HEADER.unpack_from(data), data[HEADER.size:]


def entry(key, text):
    return struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(text)) + text


(magic, version, tensors, count), model = read(sys.argv[1])
(_, _, _, others), tokenizer = read(sys.argv[2])
# Of what stands in both, the model's.
both = entry(b"general.architecture", b"llama")
assert tokenizer.startswith(both)
tokenizer = tokenizer[len(both):]
# The tensors' data keeps its alignment.
size = len(tokenizer) + len(entry(b"padding", b""))
tokenizer += entry(b"padding", b"." * (-size % 32))
with open(sys.argv[3], "wb") as out:
    out.write(HEADER.pack(magic, version, tensors, count + others) + tokenizer + model)
