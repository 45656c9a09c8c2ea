#!/usr/bin/env python3
# Makes the table of ExpandErfc.inc: coefficients of a polynomial Q with
#   erfc(z) = exp(-z^2) * t * Q(2t - 1),  t = 2 / (2 + z),  z >= 0,
# by Chebyshev interpolation in 60 digits (needs Debian's python3-mpmath).
# Prints the largest relative error of t * Q against exp(z^2) erfc(z).
#   python3 fit_erfc.py > ExpandErfc.inc
import sys

from mpmath import mp, mpf, cos, erfc, exp, inf, pi, sqrt

mp.dps = 60


def q(u):
    t = (u + 1) / 2
    if t == 0:
        return 1 / (2 * sqrt(pi))
    z = 2 / t - 2
    if z > 1000:  # exp(z^2) erfc(z), by its asymptotic series
        s, term = mpf(1), mpf(1)
        for k in range(1, 12):
            term *= -(2 * k - 1) / (2 * z * z)
            s += term
        return s / (z * sqrt(pi)) / t
    return exp(z * z) * erfc(z) / t


def fit(degree):
    n = 4 * degree
    nodes = [cos(pi * (k + mpf(1) / 2) / n) for k in range(n)]
    values = [q(x) for x in nodes]
    cheb = [
        2 * sum(v * cos(pi * j * (k + mpf(1) / 2) / n) for k, v in enumerate(values)) / n
        for j in range(degree + 1)
    ]
    cheb[0] /= 2
    # To powers of u, by T_{j+1} = 2 u T_j - T_{j-1}.
    previous, current = [mpf(1)], [mpf(0), mpf(1)]
    total = [mpf(0)] * (degree + 1)
    total[0] += cheb[0]
    for j in range(1, degree + 1):
        for i, c in enumerate(current):
            total[i] += cheb[j] * c
        following = [mpf(0)] + [2 * c for c in current]
        for i, c in enumerate(previous):
            following[i] -= c
        previous, current = current, following
    return total


def worst(coefficients):
    error = mpf(0)
    for k in range(2001):
        u = -1 + mpf(k) / 1000
        s = mpf(0)
        for c in reversed(coefficients):
            s = s * u + c
        error = max(error, abs(s / q(u) - 1))
    return error


print("// Made by fit_erfc.py: Q of erfc(z) = exp(-z^2) t Q(2t - 1), from the")
print("// constant up.")
for name, degree in (("kErfcF32", 10), ("kErfcF64", 26)):
    coefficients = [mpf(float(c)) for c in fit(degree)]
    print(f"// largest relative error {mp.nstr(worst(coefficients), 2)}")
    print(f"constexpr double {name}[] = {{")
    for c in coefficients:
        print(f"    {float(c)!r},")
    print("};")
