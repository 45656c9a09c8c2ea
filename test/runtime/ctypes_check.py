"""ctypes_check.py LIBKVC.SO DIR NAME: prints 12 tokens after 1, 5, 2, 7."""

import ctypes
import pathlib
import re
import sys
from ctypes import Structure, byref, c_char_p, c_int32, c_int64, c_void_p

runtime, folder, name = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
kvc = ctypes.CDLL(runtime)
kvc.kvc_last_error.restype = c_char_p
model_library = ctypes.CDLL(str(folder / f"lib{name}.so"))


class ModelParams(Structure):
    _fields_ = [("size", ctypes.c_uint32), ("allocator", c_void_p)]


class SessionParams(Structure):
    _fields_ = [("size", ctypes.c_uint32), ("threads", c_int32),
                ("sequences", c_int64), ("capacity", c_int64),
                ("cpu_level", c_char_p), ("poison", c_int32),
                ("pool_pages", c_int64), ("allocator", c_void_p),
                ("executor", c_void_p)]


class SamplerParams(Structure):
    _fields_ = [("size", ctypes.c_uint32), ("temperature", ctypes.c_double),
                ("top_k", c_int64), ("top_p", ctypes.c_double),
                ("seed", ctypes.c_uint64), ("allocator", c_void_p)]


class SequenceInfo(Structure):
    _fields_ = [("size", ctypes.c_uint32), ("length", c_int64), ("room", c_int64),
                ("cache_bytes", c_int64), ("pages", c_int64),
                ("shared_pages", c_int64)]


def check(status):
    if status:
        sys.exit(f"error: {kvc.kvc_last_error().decode()}")


def made(init, struct):
    """A struct whose bytes are all set before it is initialised."""
    value = struct.from_buffer(bytearray(b"\xff" * ctypes.sizeof(struct)))
    check(init(byref(value), ctypes.c_size_t(ctypes.sizeof(struct))))
    zeros = b"\0" * (ctypes.sizeof(struct) - 4)
    assert value.size == ctypes.sizeof(struct) and bytes(value)[4:] == zeros
    return value


accessor = model_library[f"{name}_library"]
accessor.restype = c_void_p
model, session, sampler = c_void_p(), c_void_p(), c_void_p()
check(kvc.kvc_model_open(
    c_void_p(accessor()), str(folder / f"{name}.safetensors").encode(),
    byref(made(kvc.kvc_model_params_init_sized, ModelParams)), byref(model)))
check(kvc.kvc_session_create(
    model, byref(made(kvc.kvc_session_params_init_sized, SessionParams)),
    byref(session)))
VOCAB = int(re.search(r"_VOCAB (\d+)", (folder / f"{name}.h").read_text())[1])
F64 = 0  # kvc_type
check(kvc.kvc_sampler_create(
    byref(made(kvc.kvc_sampler_params_init_sized, SamplerParams)),
    c_int64(VOCAB), F64, byref(sampler)))

prompt, tokens = (c_int32 * 4)(1, 5, 2, 7), (c_int32 * 12)()
count = c_int64()
check(kvc.kvc_generate(session, c_int64(0), prompt, c_int64(4), c_int64(12),
                       sampler, None, c_int64(0), None, None, tokens,
                       byref(count)))
info = made(kvc.kvc_sequence_info_init_sized, SequenceInfo)
check(kvc.kvc_sequence_query(session, c_int64(0), byref(info)))
assert count.value == 12 and info.length == 4 + 11
print(*tokens, sep=",")
kvc.kvc_sampler_destroy(sampler)
kvc.kvc_session_destroy(session)
kvc.kvc_model_close(model)
