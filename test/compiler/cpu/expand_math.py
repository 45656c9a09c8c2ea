"""Measures the functions that kvc-expand-math writes, against long double.

    expand_math.py FOLDER CC

Each function is compiled as it is in a library, for a scalar and for 16 lanes,
which must give the same bits; where the machine has AVX-512, once more with its
vscalefps in the lanes. Errors are in units of the last place (ulp) of the
result's type at the exact value, denormals included. The bounds are the largest
errors measured, rounded up, in f32 over every 37th number (0.834 for exp2, 0.985 for
exp, 3.156 for tanh), else over these points: 1.46 for sin, 1.48 for cos. erfc(x) is
exp(-x^2) times something, so that the rounding of x^2 alone moves it by up to x^2
ulp: 5.1 near 0, 64 at 8.6 and 512 at 25.4, where it is 1e-33 and 1e-283.
"""

import ctypes
import os
import subprocess
import sys

import numpy as np

from ulp import NUMPY, errors

folder, compiler = sys.argv[1:]
os.makedirs(folder, exist_ok=True)

# name, type, bound in ulp: constant, and times x^2
FUNCTIONS = (
    ("exp2", "f32", 0.85, 0), ("exp2", "f64", 0.85, 0), ("exp", "f32", 1.0, 0), ("exp", "f64", 1.0, 0),
    ("tanh", "f32", 3.2, 0), ("tanh", "f64", 3.2, 0), ("erfc", "f32", 5.5, 1), ("erfc", "f64", 5.5, 1),
    ("sin", "f64", 1.5, 0), ("cos", "f64", 1.5, 0),
)
C = {"f32": "float", "f64": "double"}


def build(level, expand):
    module, harness = "", "#include <math.h>\n"
    for name, kind, *_ in FUNCTIONS:
        function, c = f"{name}_{kind}", C[kind]
        module += f"""
func.func @{function}(%x: {kind}) -> {kind} {{
  %y = math.{name} %x : {kind}
  return %y : {kind}
}}
func.func @{function}_lanes(%from: !llvm.ptr, %to: !llvm.ptr) {{
  %x = llvm.load %from {{alignment = 4}} : !llvm.ptr -> vector<16x{kind}>
  %y = math.{name} %x : vector<16x{kind}>
  llvm.store %y, %to {{alignment = 4}} : vector<16x{kind}>, !llvm.ptr
  return
}}
"""
        harness += f"""
{c} {function}({c});
void {function}_lanes(const {c} *, {c} *);
void {function}_all(const {c} *x, {c} *y, {c} *lanes, long double *exact, long n) {{
  for (long i = 0; i < n; ++i) {{
    y[i] = {function}(x[i]);
    exact[i] = {name}l(x[i]);
  }}
  for (long i = 0; i + 16 <= n; i += 16)
    {function}_lanes(x + i, lanes + i);
}}
"""
    base = os.path.join(folder, "functions-" + level)
    with open(base + ".mlir", "w") as file:
        file.write(module)
    with open(base + ".c", "w") as file:
        file.write(harness)
    passes = (expand, "convert-vector-to-llvm", "convert-math-to-llvm",
              "convert-arith-to-llvm", "convert-func-to-llvm", "reconcile-unrealized-casts")
    for command in (
        ["kvc-opt", base + ".mlir", *("--" + p for p in passes), "-o", base + ".llvm.mlir"],
        ["mlir-translate", "--mlir-to-llvmir", base + ".llvm.mlir", "-o", base + ".ll"],
        ["llc", "-O3", f"-mcpu={level}", "-filetype=obj", "-relocation-model=pic", base + ".ll",
         "-o", base + ".o"],
        [compiler, "-O1", "-shared", "-fPIC", base + ".c", base + ".o", "-lm", "-o", base + ".so"],
    ):
        subprocess.run(command, check=True)
    return ctypes.CDLL(base + ".so")


def evaluate(library, name, kind, x):
    """The function's values and the exact ones; scalars and lanes must agree."""
    x = np.resize(x, -(-len(x) // 16) * 16)  # whole vectors, by repeating
    y, lanes = np.empty_like(x), np.empty_like(x)
    exact = np.empty(len(x), np.longdouble)
    library[f"{name}_{kind}_all"](*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, lanes, exact)),
                                  ctypes.c_long(len(x)))
    bits = np.uint32 if kind == "f32" else np.uint64
    different = (y.view(bits) != lanes.view(bits)) & ~(np.isnan(y) & np.isnan(lanes))
    assert not different.any(), f"{name} {kind}: lanes differ at {x[different][0]!r}"
    return x, y, exact


def points(name, kind, random):
    if kind == "f32":  # every 2039th number there is
        return np.arange(0, 1 << 32, 2039, dtype=np.uint64).astype(np.uint32).view(np.float32)
    signs = random.choice([-1.0, 1.0], 1 << 18)
    small = signs * np.exp2(random.uniform(-1074, 10, 1 << 18))
    if name in ("exp", "exp2"):
        log2 = np.log(2) if name == "exp" else 1.0
        middles = (np.arange(-1080, 1030) + 0.5) * log2
        return np.concatenate([random.uniform(-1076 * log2, 1024 * log2, 1 << 19), small, middles])
    if name == "tanh":
        return np.concatenate([random.uniform(-21, 21, 1 << 19), small])
    if name == "erfc":
        return np.concatenate([random.uniform(-7, 28, 1 << 19), small])
    # Up to 2^30, where the reduction's digits end, and next to each quarter turn.
    turns = np.arange(-(1 << 18), 1 << 18) * 2411 * (np.pi / 2)
    return np.concatenate([random.uniform(-100, 100, 1 << 18), turns[np.abs(turns) < 2 ** 30],
                           np.clip(small * 2.0 ** 20, -2.0 ** 30, 2.0 ** 30),
                           random.integers(-(1 << 23), 1 << 23, 1 << 18).astype(np.float64)])


def special(library, name, kind):
    """Values at the ends, bit by bit but for NaN's payload."""
    info = np.finfo(NUMPY[kind])
    inf, nan, tiny = np.inf, np.nan, info.smallest_subnormal
    cases = {
        "exp2": [(n, np.ldexp(1.0, n)) for n in range(info.minexp - info.nmant, info.maxexp)]
                + [(-0.0, 1), (tiny, 1), (-tiny, 1), (inf, inf), (-inf, 0), (nan, nan),
                   (info.maxexp, inf), (1e30, inf), (-1e30, 0)],
        "exp": [(0, 1), (-0.0, 1), (tiny, 1), (-tiny, 1), (inf, inf), (-inf, 0), (nan, nan),
                (1e30, inf), (-1e30, 0)],
        "tanh": [(0, 0), (-0.0, -0.0), (tiny, tiny), (-tiny, -tiny), (inf, 1), (-inf, -1), (nan, nan),
                 (1e30, 1), (-1e30, -1)],
        "erfc": [(0, 1), (-0.0, 1), (tiny, 1), (-tiny, 1), (inf, 0), (-inf, 2), (nan, nan),
                 (1e30, 0), (-1e30, 2), (30, 0), (-30, 2)],
        "sin": [(0, 0), (-0.0, 0), (tiny, tiny), (-tiny, -tiny), (inf, nan), (-inf, nan), (nan, nan)],
        "cos": [(0, 1), (-0.0, 1), (tiny, 1), (inf, nan), (-inf, nan), (nan, nan)],
    }[name]
    x, y, _ = evaluate(library, name, kind, np.array([c[0] for c in cases], NUMPY[kind]))
    for (argument, expected), got in zip(cases, y):
        assert got == expected or np.isnan(got) and np.isnan(expected), \
            f"{name} {kind}: expected {expected} at {argument}, but got {got}"


def measure(library):
    failed = False
    for name, kind, constant, square in FUNCTIONS:
        special(library, name, kind)
        x = points(name, kind, np.random.default_rng(7))
        x, y, exact = evaluate(library, name, kind, x[np.isfinite(x)])
        error = errors(y, exact, kind)
        with np.errstate(over="ignore"):
            bound = constant + square * x.astype(np.longdouble) ** 2
        assert len(x) > 500000 and np.isfinite(error).all()
        worst = (error / bound).argmax()
        print(f"{name} {kind}: {error[worst]:.3f} ulp at {x[worst]!r}, bound {bound[worst]:.3f}")
        failed |= bool(error[worst] > bound[worst])
    return failed


failed = measure(build("x86-64-v3", "kvc-expand-math"))
with open("/proc/cpuinfo") as file:
    if " avx512dq " in file.read():
        failed |= measure(build("x86-64-v4", "kvc-expand-math=scalef"))
sys.exit(failed)
