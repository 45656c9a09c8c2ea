"""dependencies.py LIBKVC.SO LIBKVC.A STRIPPED.SO: checks size and needs."""

import os
import subprocess
import sys

SHARED, ARCHIVE, STRIPPED = sys.argv[1:4]
LIMIT = 200_000  # bytes, stripped
SYSTEM = ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")


def lines(*command):
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()


def symbols(*command):
    """Names without versions."""
    return {
        line.split()[-1].split("@")[0]
        for line in lines(*command)
        if len(line.split()) >= 2 and not line.endswith(":")
    }


def expect(holds, message):
    if not holds:
        sys.exit("error: " + message)


size = os.path.getsize(STRIPPED)
print(f"stripped size: {size}")
expect(size < LIMIT, f"expected fewer than {LIMIT} bytes, but got {size}")

needed = [
    line.split("[")[1].rstrip("]") for line in lines("readelf", "-d", SHARED)
    if "(NEEDED)" in line
]
print("needed:", *needed)
expect(needed and set(needed) <= set(SYSTEM), f"expected only {SYSTEM}")

# What the archive leaves open is in the C library.
loaded = [
    line.split("=>")[-1].split("(")[0].strip()
    for line in lines("ldd", SHARED)
    if any(name in line for name in SYSTEM)
]
provided = set().union(*(symbols("nm", "-D", "--defined-only", path) for path in loaded))
own = symbols("nm", "--defined-only", ARCHIVE)
left = symbols("nm", "--undefined-only", ARCHIVE) - own - provided
left.discard("_GLOBAL_OFFSET_TABLE_")
print("undefined symbols of others:", *sorted(left))
expect(own and not left, f"expected none outside the C library, but got {left}")

# Only kvc_ names are for others, and nothing runs before main.
exported = symbols("nm", "-D", "--defined-only", SHARED)
strange = {name for name in exported if not name.startswith("kvc_")}
expect(exported and not strange, f"expected only kvc_ to be exported, got {strange}")
sections = "\n".join(lines("readelf", "-S", "--wide", ARCHIVE))
expect(".text" in sections, "expected sections")
for section in (".init_array", ".ctors", ".gcc_except_table"):
    expect(section not in sections, f"expected no section {section}")
