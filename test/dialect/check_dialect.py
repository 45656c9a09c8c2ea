"""Holds the dialect's TableGen files and its tests against each other.

usage: check_dialect.py coverage SOURCE_ROOT
           every op stands in roundtrip.mlir, every numbered constraint Cn in
           an invalid*.mlir as <op>_c<n>
       check_dialect.py examples SOURCE_ROOT
           prints every example of the descriptions as a program
"""

import glob
import re
import sys

# What the examples use but don't show: weights, and the cache where it has a
# fixed width.
WEIGHTS = {
    "embed": ["@token_embd : tensor<9x576xf32>"],
    "rms_norm": ["@blk.attn_norm : tensor<30x576xf32>"],
    "layer_norm": ["@norm : tensor<2x24xf64>", "@norm.bias : tensor<2x24xf64>"],
    "linear": [
        "@attn_q : tensor<30x576x576xf32>",
        "@attn_q.bias : tensor<30x576xf32>",
        "@attn_o : tensor<30x576x576xf32>",
    ],
    **{name: ["@attn_q : tensor<30x576x576xf32>", "@attn_q.bias : tensor<30x576xf32>",
              "@attn_o : tensor<30x576x576xf32>"] for name in ("together", "yield")},
    "gated_linear": ["@gate : tensor<30x1536x576xf32>", "@up : tensor<30x1536x576xf32>"],
}
CACHE = "!kvc.cache<layers 2, kv_heads 3, capacity 160, key {0}, value {0}, f32, #kvc.contiguous>"
KEY_WIDTH = {"append": 8, "attend": 64}
# Types of values by their names; another is of the first type that the example
# names.
TYPES = {
    "tokens": "tensor<?xi32>",
    "sequences": "tensor<?xi32>",
    "order": "tensor<4xi32>",
    "positions": "tensor<?xi64>",
    "outputs": "tensor<?xi64>",
    "cache": "!cache",
    **{name: "index" for name in ("layer", "s", "length")},
}
INDICES = {"fork": {"a": "index", "b": "index"}}


def definitions(root):
    """Mnemonic -> text of the definition, of each op and of the cache type."""
    text = open(f"{root}/dialect/KVCOps.td").read() + open(f"{root}/dialect/KVCTypes.td").read()
    start = r'^def \w+ : (?:KVC_(?:Op|WeightUserOp|Norm|CacheUpdateOp)<"(\w+)"|TypeDef<KVC_Dialect, "(\w+)">)'
    found = list(re.finditer(start, text, re.M))
    assert len(found) > 15, "the definitions have another form than this test knows"
    return {
        (match[1] or match[2].lower()): text[match.start() : text.index("\n}", match.start())]
        for match in found
    }


def attributes(root):
    """The same for each attribute, layouts among them."""
    text = open(f"{root}/dialect/KVCTypes.td").read()
    found = re.finditer(r'^def \w+ : AttrDef<KVC_Dialect, "(\w+)"', text, re.M)
    return {
        match[1].lower(): text[match.start() : text.index("\n}", match.start())]
        for match in found
    }


def coverage(root):
    roundtrip = open(f"{root}/test/dialect/roundtrip.mlir").read()
    invalid = "".join(open(path).read() for path in glob.glob(f"{root}/test/dialect/invalid*.mlir"))
    missing, constraints = [], 0
    for name, text in {**definitions(root), **attributes(root)}.items():
        if f"kvc.{name}" not in roundtrip:
            missing.append(f"kvc.{name} in roundtrip.mlir")
        for number in re.findall(r"^ *- C(\d+):", text, re.M):
            constraints += 1
            if not re.search(rf"@{name}_c{number}[_ (]", invalid):
                missing.append(f"{name}_c{number} in invalid*.mlir")
    assert not missing, "expected " + ", ".join(missing)
    print(f"{len(definitions(root))} definitions, {constraints} constraints")


def program(name, example):
    if example.startswith("!"):
        return f"func.func private @{name}({example})\n"
    cache = CACHE.format(KEY_WIDTH.get(name, 8))
    lines = [
        f'  kvc.weight {weight} from "{"{}" if " layer %" in example else ""}w"'
        for weight in WEIGHTS.get(name, [])
    ]
    if not re.search(r"%\w+ = ", example):
        lines.append("  " + example)
        return "module {\n" + "\n".join(lines) + "\n}\n"
    defined = re.findall(r"%(\w+)(?=[%\w, ]* = )", example)
    used = [v for v in dict.fromkeys(re.findall(r"%(\w+)", example)) if v not in defined]
    first_type = re.search(r": ((?:tensor|!)[^\s,)]*)", example)[1]
    types = {**TYPES, **INDICES.get(name, {})}
    arguments = ", ".join(f"%{v}: {types.get(v, first_type)}" for v in used)
    body = example.replace("\n", "\n    ").replace("!cache", cache)
    lines += [f"  func.func @{name}({arguments}) {{".replace("!cache", cache), f"    {body}", "    return", "  }"]
    return "module {\n" + "\n".join(lines) + "\n}\n"


def examples(root):
    programs = []
    for name, text in definitions(root).items():
        found = re.findall(r"```mlir\n(.*?)```", text, re.S)
        assert found, f"expected an example of {name}"
        for example in found:
            programs.append(program(name, "\n".join(line.strip() for line in example.strip().split("\n"))))
    print("// -----\n".join(programs))


{"coverage": coverage, "examples": examples}[sys.argv[1]](sys.argv[2])
