"""tiny.py DIR: writes the tiny tokenizers of the tests into DIR.

byte     byte-level, GPT-2's words       byte/tokenizer.json, byte.gguf
llama3   byte-level, Llama 3's words     llama3/tokenizer.json, llama3.gguf
spm      SentencePiece, byte fallback    spm/tokenizer.json, spm.gguf,
                                         spm-merges.gguf (equal scores)

All forms of one kind have the same ids.
"""

import json
import pathlib
import struct
import sys

CHATML_SYSTEM = (
    "{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are tiny<|im_end|>\n' }}{% endif %}"
)
CHATML = (
    "{% for message in messages %}" + CHATML_SYSTEM +
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
PLAIN_CHATML = CHATML.replace(CHATML_SYSTEM, "")
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def alphabet():
    """The character of each byte in byte-level vocabularies."""
    prints = [b for b in range(256) if 33 <= b <= 126 or b >= 161 and b != 173]
    others = [b for b in range(256) if b not in prints]
    spelled = {b: chr(b) for b in prints}
    spelled.update({b: chr(256 + i) for i, b in enumerate(others)})
    return [spelled[b] for b in range(256)]


BYTE_MERGES = [
    "h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld",
    "Ġ Ġ", "ĠĠ ĠĠ", "1 2", "12 3", "' s", "a a", "aa aa", "a aaaa", "Ã ¤",
    "ð Ł", "ðŁ Ļ", "ðŁĻ Ĥ", "ä ½", "ä½ ł", "Ċ Ċ",
]  # fmt: skip


def byte_vocabulary():
    wholes = [merge.replace(" ", "") for merge in BYTE_MERGES]
    tokens = SPECIALS + alphabet() + wholes
    assert len(set(tokens)) == len(tokens)
    return tokens


def added(tokens, special=True):
    return [
        {"id": i, "content": token, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False, "special": special}
        for i, token in tokens
    ]  # fmt: skip


def model(tokens, merges, **settings):
    return {"type": "BPE", "dropout": None, "unk_token": None,
            "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": merges} | settings  # fmt: skip


def template(token, token_id):
    return {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": token, "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {token: {"id": token, "ids": [token_id],
                                       "tokens": [token]}}}  # fmt: skip


def byte_json():
    tokens = byte_vocabulary()
    byte_level = {"type": "ByteLevel", "add_prefix_space": False,
                  "trim_offsets": True, "use_regex": True}  # fmt: skip
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": added(list(enumerate(SPECIALS))),
            "normalizer": None, "pre_tokenizer": byte_level,
            "post_processor": byte_level, "decoder": byte_level,
            "model": model(tokens, BYTE_MERGES)}  # fmt: skip


def byte_config():
    return {"bos_token": "<|im_start|>",
            "eos_token": {"content": "<|im_end|>", "special": True},
            "chat_template": CHATML}  # fmt: skip


def llama3_json():
    whole = byte_json()
    byte_level = dict(whole["pre_tokenizer"], use_regex=False)
    split = {"type": "Split", "pattern": {"Regex": LLAMA3_WORDS},
             "behavior": "Isolated", "invert": False}  # fmt: skip
    whole["pre_tokenizer"] = {"type": "Sequence",
                              "pretokenizers": [split, byte_level]}  # fmt: skip
    whole["post_processor"] = {
        "type": "Sequence",
        "processors": [byte_level, template("<|im_start|>", 1)],
    }
    whole["model"]["ignore_merges"] = True
    # A word that no merge makes: only taking it whole finds it.
    whole["model"]["vocab"]["Ġzebra"] = len(whole["model"]["vocab"])
    whole["model"]["merges"] = [merge.split(" ") for merge in BYTE_MERGES]
    return whole


SPM_PIECES = ["▁", "h", "e", "l", "o", "w", "r", "d", "a", "é", "he", "ll",
              "hell", "hello", "▁hello", "▁w", "or", "▁wor", "ld", "▁world",
              "aa", "aaaa", "▁a"]  # fmt: skip
SPM_MERGES = ["h e", "l l", "he ll", "hell o", "▁ hello", "▁ w", "o r",
              "▁w or", "l d", "▁wor ld", "a a", "aa aa", "▁ a"]  # fmt: skip


def spm_tokens():
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    return ["<unk>", "<s>", "</s>"] + fallback + SPM_PIECES + ["<|user|>"]


def spm_json():
    tokens = spm_tokens()
    specials = list(enumerate(["<unk>", "<s>", "</s>"]))
    user = (len(tokens) - 1, "<|user|>")
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": added(specials) + added([user], special=False),
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "},
                 "content": "▁"}]},
            "pre_tokenizer": None, "post_processor": template("<s>", 1),
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": model(tokens, SPM_MERGES, byte_fallback=True,
                           fuse_unk=True, unk_token="<unk>")}  # fmt: skip


def byte_gguf(pre="gpt-2", tokens=None):
    tokens = tokens or byte_vocabulary()
    return {
        "general.architecture": ("string", "llama"),
        "tokenizer.ggml.model": ("string", "gpt2"),
        "tokenizer.ggml.pre": ("string", pre),
        "tokenizer.ggml.tokens": ("strings", tokens),
        "tokenizer.ggml.token_type": (
            "int32s", [3] * len(SPECIALS) + [1] * (len(tokens) - len(SPECIALS))),
        "tokenizer.ggml.merges": ("strings", BYTE_MERGES),
        "tokenizer.ggml.bos_token_id": ("uint32", 1),
        "tokenizer.ggml.eos_token_id": ("uint32", 2),
        "tokenizer.chat_template": ("string", CHATML),
    }  # fmt: skip


def llama3_gguf():
    return byte_gguf("llama-bpe", byte_vocabulary() + ["Ġzebra"])


def spm_gguf():
    tokens = spm_tokens()
    rank = {m.replace(" ", ""): -float(i) for i, m in enumerate(SPM_MERGES)}
    return {
        "general.architecture": ("string", "llama"),
        "tokenizer.ggml.model": ("string", "llama"),
        "tokenizer.ggml.tokens": ("strings", tokens),
        "tokenizer.ggml.scores": ("float32s", [rank.get(t, -1e9) for t in tokens]),
        "tokenizer.ggml.token_type": (
            "int32s", [2, 3, 3] + [6] * 256 + [1] * len(SPM_PIECES) + [4]),
        "tokenizer.ggml.bos_token_id": ("uint32", 1),
        "tokenizer.ggml.eos_token_id": ("uint32", 2),
    }  # fmt: skip


def spm_merges_gguf():
    """As some converters wrote it: the order stands in the merges alone."""
    return spm_gguf() | {
        "tokenizer.ggml.scores": ("float32s", [0.0] * len(spm_tokens())),
        "tokenizer.ggml.merges": ("strings", SPM_MERGES),
    }  # fmt: skip


def gguf_bytes(metadata):
    """A GGUF file of version 3 with this metadata and no tensors."""

    def string(text):
        data = text if isinstance(text, bytes) else text.encode()
        return struct.pack("<Q", len(data)) + data

    def array(kind, items, encode):
        header = struct.pack("<IIQ", 9, kind, len(items))
        return header + b"".join(encode(item) for item in items)

    encoders = {
        "string": lambda v: struct.pack("<I", 8) + string(v),
        "uint32": lambda v: struct.pack("<II", 4, v),
        "bool": lambda v: struct.pack("<I?", 7, v),
        "strings": lambda v: array(8, v, string),
        "int32s": lambda v: array(5, v, lambda i: struct.pack("<i", i)),
        "float32s": lambda v: array(6, v, lambda f: struct.pack("<f", f)),
        "raw": lambda v: v,
    }
    entries = [string(k) + encoders[kind](v) for k, (kind, v) in metadata.items()]
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata))
    return head + b"".join(entries)


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False))


def main():
    folder = pathlib.Path(sys.argv[1])
    write_json(folder / "byte/tokenizer.json", byte_json())
    write_json(folder / "byte/tokenizer_config.json", byte_config())
    write_json(folder / "llama3/tokenizer.json", llama3_json())
    write_json(folder / "spm/tokenizer.json", spm_json())
    (folder / "byte.gguf").write_bytes(gguf_bytes(byte_gguf()))
    (folder / "llama3.gguf").write_bytes(gguf_bytes(llama3_gguf()))
    (folder / "spm.gguf").write_bytes(gguf_bytes(spm_gguf()))
    (folder / "spm-merges.gguf").write_bytes(gguf_bytes(spm_merges_gguf()))


if __name__ == "__main__":
    main()
