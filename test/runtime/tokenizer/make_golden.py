"""make_golden.py OUT STORIES_DIR SMOLLM2.gguf: writes the golden ids.

Needs the package `tokenizers` (made with 0.23.3), an implementation that shares
nothing with ours; the tests only read what this wrote. Each line of a file is
{"text", "ids", "decoded"}: special tokens in the text are recognised, the
model's own are added, and decoding leaves special tokens out.
"""

import json
import pathlib
import random
import sys
import tempfile

import tiny
from tokenizers import Tokenizer

WORDS = """the and of hello world Hello WORLD once upon a time It's don't I'LL we've
12 123 1234567 3.14 0x1F http://a.b/c?d=e {} [] == -> // <s> </s> <|im_start|>
<|im_end|> <|user|> <|endoftext|> <| ▁ Ġ naïve ä é e\u0301 ſ 'ſ Å ½ Ⅷ ٣ 你好世界 日本語 한국어
مرحبا Привет नमस्ते 🙂 👩‍👩‍👧 🇫🇷 aaaa aaaaaaa hellohello worldworld zebra \u00a0 \u3000
\u180e \u200b \u0085 \u2028 \ufeff def f(x): return x**2""".split(" ")
SPACES = [" "] * 6 + ["  ", "    ", "       ", "\n", "\n\n", "\t", "\r\n", " \n "]
EDGES = ["", " ", "  ", "a", " a", "a ", "\n", "hello world", " hello world",
         "hello  world", "<s>hello", "hello</s> world", "<|im_start|>user\nhello",
         "zebra zebra", "a" * 100, " " * 100, "hello" * 40, "🙂" * 9, "'s 's"]  # fmt: skip


def texts():
    choose = random.Random(20)
    mixed = [
        "".join(choose.choice(WORDS) + choose.choice(SPACES)
                for _ in range(choose.randint(1, 12)))
        for _ in range(60)
    ]  # fmt: skip
    return EDGES + mixed


def write(path, tokenizer):
    with open(path, "w") as out:
        for text in texts():
            ids = tokenizer.encode(text).ids
            line = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids)}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


def smollm2(path):
    """The GGUF's tokens and merges as a tokenizer.json like the model's own."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "reference"))
    from gguf_file import GGUF

    metadata = GGUF(path).keys
    tokens = metadata["tokenizer.ggml.tokens"]
    types = metadata["tokenizer.ggml.token_type"]
    whole = tiny.byte_json()
    specials = [(i, t) for i, t in enumerate(tokens) if types[i] == 3]
    whole["added_tokens"] = tiny.added(specials)
    digits = {"type": "Digits", "individual_digits": True}
    whole["pre_tokenizer"] = {"type": "Sequence",
                              "pretokenizers": [digits, whole["pre_tokenizer"]]}  # fmt: skip
    whole["model"] = tiny.model(tokens, metadata["tokenizer.ggml.merges"])
    return whole


def main():
    out, stories, gguf = map(pathlib.Path, sys.argv[1:4])
    for name, value in (("byte", tiny.byte_json()), ("llama3", tiny.llama3_json()),
                        ("spm", tiny.spm_json()), ("smollm2", smollm2(gguf))):  # fmt: skip
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(value, file, ensure_ascii=False)
            file.flush()
            write(out / f"{name}.jsonl", Tokenizer.from_file(file.name))
    write(out / "stories260k.jsonl", Tokenizer.from_file(str(stories / "tokenizer.json")))


if __name__ == "__main__":
    main()
