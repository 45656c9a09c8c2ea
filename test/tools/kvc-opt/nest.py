"""Writes one file for each way in which MLIR nests, N deep; and one that has 1000
of everything and no depth: nest.py N."""

import sys

n = int(sys.argv[1])


def attribute(text):
    return "module attributes {k.a = " + text + "} {}\n"


forms = {
    "regions": '"a.b"() ({\n' * n + "}) : () -> ()\n" * n,
    "lists": attribute("[" * n + "]" * n),
    "types": attribute("tuple<" * n + "i32" + ">" * n),
    "aliases": "#a0 = [1]\n" + "".join(f"#a{i + 1} = [#a{i}]\n" for i in range(n)) + attribute(f"#a{n}"),
    "minus": attribute("affine_map<(d0) -> (" + "-" * n + "d0)>"),
    "sum": attribute("affine_map<(d0) -> (" + " + ".join(["d0"] * n) + ")>"),
    "remainders": attribute("affine_map<(d0) -> (d0" + " mod 7" * n + ")>"),
    "locations": "module {} loc(" + 'callsite("a" at ' * n + '"b"' + ")" * n + ")\n",
    "flat": "#m = affine_map<(d0) -> (d0 - 1)>\n!t = tuple<i32>\n// ((((((\nmodule {\n"
    + "".join(
        f'  "a.b"() {{x = -{i}.5e-3, y = "[[[<", m = #m, t = !t, l = [-1, -2], a = #k.a<f -> 1>, s = affine_set<(d0) : (d0 - 1 >= 0, d0 + 7 <= 3)>}} : () -> !t loc("{i}":1:1)\n'
        for i in range(1000)
    )
    + "}\n",
}
for name, text in forms.items():
    with open(name + ".mlir", "w") as file:
        file.write(text)
