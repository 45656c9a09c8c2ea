"""make_nfc_tables.py > NfcTables.inc: Unicode's canonical mappings and combining
classes, from Python's copy of the Unicode Character Database."""

import textwrap
import unicodedata

HANGUL = range(0xAC00, 0xD7A4)  # by arithmetic


def rows(name, kind, entries):
    print(f"static constexpr {kind} {name}[] = {{")
    print(textwrap.fill(" ".join(entries), 100))
    print("};")


mappings, ranges = [], []
for code in range(0x110000):
    char = chr(code)
    mapping = unicodedata.decomposition(char)
    if mapping and not mapping.startswith("<") and code not in HANGUL:
        parts = [int(part, 16) for part in mapping.split()]
        mappings.append((code, *parts, *[0] * (2 - len(parts))))
    combining = unicodedata.combining(char)
    if combining and ranges and ranges[-1][1:] == (code - 1, combining):
        ranges[-1] = (ranges[-1][0], code, combining)
    elif combining:
        ranges.append((code, code, combining))
# What a composition gives is itself composed; the others are excluded.
composing = [i for i, (code, _, second) in enumerate(mappings)
             if second and unicodedata.is_normalized("NFC", chr(code))]  # fmt: skip
composing.sort(key=lambda i: mappings[i][1:])

print(f"// Unicode {unicodedata.unidata_version}, by make_nfc_tables.py.")
print("// A character, and the one or two that it stands for; by character.")
rows("mappings", "Mapping", ["{0x%X,0x%X,0x%X}," % m for m in mappings])
print("// The mappings that compose, by the two characters.")
rows("compositions", "uint16_t", [f"{i}," for i in composing])
print("// The first and last character of a range, and their combining class.")
rows("classes", "ClassRange", ["{0x%X,0x%X,%d}," % r for r in ranges])
