"""The safetensors container: u64 header length, JSON header, data."""

import json
import struct

import numpy as np

from number_types import from_bf16

TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


class Safetensors:
    """Tensors by name, as float64."""

    def __init__(self, path):
        self.bytes = np.memmap(path, np.uint8, "r")
        length, = struct.unpack("<Q", self.bytes[:8].tobytes())
        self.start = 8 + length
        self.header = json.loads(self.bytes[8:self.start].tobytes())
        self.header.pop("__metadata__", None)

    def __contains__(self, name):
        return name in self.header

    def storage(self, name):
        return self.header[name]["dtype"].lower()

    def __getitem__(self, name):
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        raw = self.bytes[self.start + begin:self.start + end].tobytes()
        values = np.frombuffer(raw, TYPES[entry["dtype"]])
        values = from_bf16(values) if entry["dtype"] == "BF16" else values.astype(np.float64)
        return values.reshape(entry["shape"])


def write_safetensors(path, tensors):
    """tensors: name -> array of float64, float32 or float16."""
    names = {np.dtype(t): name for name, t in TYPES.items() if name != "BF16"}
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
