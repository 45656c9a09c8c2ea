"""activations.py FOLDER CC: measures kvc.activate as a library computes it, against
long double, at every CPU level that this machine has, whose bits must be the same.

The model's logits are the function of its table, whose numbers are the points: as
many of each exponent, both signs, from the smallest denormal to the largest finite
number; and once more of their doubles, of which many are infinite.

Errors are in units of the last place of the result's type (ulp.py), but of no less
than x times the smallest denormal, since x multiplies numbers that are rounded there.
Bounds are the largest errors measured, rounded up. Two functions have an exponential
of something that is rounded itself, so that below 0, where the result vanishes, the
bound grows with it: x^2 / 2 of gelu, and t = sqrt(8/pi) (x + 0.044715 x^3) of
gelu_tanh. Compared with x, the errors are 1.7 roundings of its type at most.
"""

import ctypes
import os
import subprocess
import sys

import numpy as np

from safetensors_file import write_safetensors
from ulp import NUMPY, errors

SIDE = 1024  # the table's rows and columns

MODULE = """
!cache = !kvc.cache<layers 1, kv_heads 1, capacity {side}, key 1, value 1, f32, #kvc.contiguous>
!rows = tensor<?x{side}x{kind}>
!little = tensor<?x1x{kind}>
module @m attributes {{kvc.weights = "table.safetensors"}} {{
  kvc.weight @table : tensor<{side}x{side}x{kind}> from "table"
  kvc.weight @little : tensor<{side}x1x{kind}> from "little"
  func.func @forward(%tokens: tensor<?xi32>, %sequences: tensor<?xi32>, %outputs: tensor<?xi64>, %cache: !cache) -> (!rows, !cache) {{
    %layer = arith.constant 0 : index
    %positions = kvc.positions %cache of %sequences : !cache, tensor<?xi32> -> tensor<?xi64>
    %x = kvc.embed %tokens in @table : tensor<?xi32> -> !rows
    // A model has attention; nothing comes of it here.
    %e = kvc.embed %tokens in @little : tensor<?xi32> -> !little
    %next = kvc.append %e, %e to %cache layer %layer at %positions of %sequences : !little, !little, !cache, tensor<?xi64>, tensor<?xi32>
    %attended = kvc.attend %e to %next layer %layer at %positions of %sequences scale 1.0 : !little, !cache, tensor<?xi64>, tensor<?xi32>
    %chosen = kvc.select %x rows %outputs : !rows, tensor<?xi64> -> !rows
    %doubled = arith.addf %chosen, %chosen : !rows
    %y = kvc.activate %{of} {name} : !rows
    %after = kvc.advance %next by %sequences : !cache, tensor<?xi32>
    return %y, %after : !rows, !cache
  }}
}}
"""

EXACT = """
#include <math.h>
typedef long double T;
static T logistic(T x, T t) { return x / (1 + expl(-t)); }
static T silu(T x) { return logistic(x, x); }
static T gelu(T x) { return x * erfcl(-x * sqrtl(0.5L)) / 2; }
static T cubic(T x) { return sqrtl(8 / acosl(-1)) * (x + 0.044715L * x * x * x); }
static T gelu_tanh(T x) { return logistic(x, cubic(x)); }
#define EACH(name, f) void name(const T *x, T *y, long n) { for (long i = 0; i < n; ++i) y[i] = f(x[i]); }
EACH(all_silu, silu) EACH(all_gelu, gelu) EACH(all_gelu_tanh, gelu_tanh)
"""

# name, bound in ulp: constant, and what is added below 0
FUNCTIONS = (
    ("silu", 3.0, lambda x: 0 * x),
    ("gelu", 5.5, lambda x: 2 * x ** 2),
    ("gelu_tanh", 3.0, lambda x: 2.2 * np.abs(1.6 * (x + 0.044715 * x ** 3))),
)


def points(kind):
    """One number of each of SIDE^2 equal parts of the finite numbers' bit patterns."""
    bits = 32 if kind == "f32" else 64
    each = 1 << bits - 1
    finite = int(np.array(np.inf, NUMPY[kind]).view(f"u{bits // 8}"))
    steps = np.arange(SIDE * SIDE // 2, dtype=object) * finite // (SIDE * SIDE // 2)
    steps[1], steps[-1] = 1, finite - 1
    return np.array([s + sign for sign in (0, each) for s in steps], f"u{bits // 8}").view(NUMPY[kind])


def levels():
    with open("/proc/cpuinfo") as file:
        flags = next(line for line in file if line.startswith("flags")).split()
    v4 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= set(flags)
    return ["x86-64-v3"] + ["x86-64-v4"] * v4


def evaluate(folder, kind, name, of):
    with open(f"{folder}/m.mlir", "w") as file:
        file.write(MODULE.format(side=SIDE, kind=kind, name=name, of=of))
    subprocess.run(["kvc-opt", f"{folder}/m.mlir", "-o", f"{folder}/out"], check=True, stdout=subprocess.DEVNULL)
    results = []
    for level in levels():
        # In one call of many rows, and in calls of one.
        for chunks in ("512", "1"):
            subprocess.run(["kvc-run", f"{folder}/out", "--ids", ",".join(map(str, range(SIDE))), "-n", "0", "--cpu", level,
                            "--chunks", chunks, "--logits", f"{folder}/y.npy"], check=True,
                           stdout=subprocess.DEVNULL)
            results.append(np.load(f"{folder}/y.npy").ravel())
    for result in results[1:]:
        assert result.tobytes() == results[0].tobytes(), f"{name} {kind}: other bits at another level"
    return results[0]


def exact_functions(folder, compiler):
    with open(f"{folder}/exact.c", "w") as file:
        file.write(EXACT)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", f"{folder}/exact.c", "-lm", "-o", f"{folder}/exact.so"],
                   check=True)
    return ctypes.CDLL(f"{folder}/exact.so")


def main(folder, compiler):
    library = exact_functions(folder, compiler)
    failed = False
    for kind in NUMPY:
        x = points(kind)
        write_safetensors(f"{folder}/table.safetensors", {"table": x.reshape(SIDE, SIDE), "little": np.zeros((SIDE, 1), x.dtype)})
        wide = x.astype(np.longdouble)
        exact = np.empty_like(wide)
        for name, constant, more in FUNCTIONS:
            y = evaluate(folder, kind, name, "chosen")
            library[f"all_{name}"](ctypes.c_void_p(wide.ctypes.data), ctypes.c_void_p(exact.ctypes.data),
                                   ctypes.c_long(len(x)))
            assert np.isfinite(exact).all() and np.isfinite(y).all()
            info = np.finfo(NUMPY[kind])
            least = np.abs(wide) * np.longdouble(info.smallest_subnormal)
            error = np.minimum(errors(y, exact, kind), np.abs(y - exact) / np.maximum(least, info.smallest_subnormal))
            bound = np.where(x < 0, constant + more(wide), constant)
            for side, here in ("below 0", x < 0), ("above", x >= 0):
                worst = np.flatnonzero(here)[(error / bound)[here].argmax()]
                print(f"{name} {kind} {side}: {error[worst]:.3f} ulp at {x[worst]!r}, bound {bound[worst]:.3f}")
                failed |= bool(error[worst] > bound[worst])
            roundings = (np.abs(y - exact) / np.maximum(np.abs(wide), info.tiny)).max() / info.eps
            print(f"{name} {kind}: {roundings:.3f} roundings of x at most, bound 1.7")
            failed |= bool(roundings > 1.7)

            assert (y[x == 0] == 0).all()
            # Of -inf the formula says inf times 0.
            with np.errstate(over="ignore"):
                doubled = x + x
            y = evaluate(folder, kind, name, "doubled")
            assert (y[doubled == np.inf] == np.inf).all() and np.isnan(y[doubled == -np.inf]).all()
            assert np.isinf(doubled).sum() > 100 and np.isfinite(y[np.isfinite(doubled)]).all()
    sys.exit(failed)


main(*sys.argv[1:])
