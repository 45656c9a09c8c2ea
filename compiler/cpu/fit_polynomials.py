#!/usr/bin/env python3
# Makes the tables of ExpandPolynomials.inc, in 60 digits (needs Debian's
# python3-mpmath), and prints the largest relative error of each:
#   python3 fit_polynomials.py > ExpandPolynomials.inc
from struct import pack, unpack

from mpmath import mp, mpf, cos, erfc, exp, matrix, pi, qr_solve, sqrt

mp.dps = 60


def print_table(name, coefficients, error):
    print(f"// largest relative error {mp.nstr(error, 2)}")
    print(f"constexpr double {name}[] = {{")
    for c in coefficients:
        print(f"    {float(c)!r},")
    print("};")


def horner(coefficients, x):
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


# 2^r for |r| <= 1/2: 1 + c1 r + ... + c6 r^6, each coefficient rounded to f32
# before the later ones are fitted, which make up for it.
def fit_exp2(degree):
    n = 16 * degree
    nodes = [cos(pi * (k + mpf(1) / 2) / n) / 2 for k in range(n)]
    fixed = [mpf(1)]
    for first in range(1, degree + 1):
        terms = matrix(n, degree + 1 - first)
        rest = matrix(n, 1)
        for i, r in enumerate(nodes):
            rest[i] = 1 - horner(fixed, r) / mpf(2) ** r
            for j in range(first, degree + 1):
                terms[i, j - first] = r**j / mpf(2) ** r
        solved, _ = qr_solve(terms, rest)
        fixed.append(mpf(unpack("f", pack("f", float(solved[0])))[0]))
    return fixed


def worst_exp2(coefficients):
    points = [mpf(k) / 2000 for k in range(-1000, 1001)]
    return max(abs(horner(coefficients, r) / mpf(2) ** r - 1) for r in points)


# Q of erfc(z) = exp(-z^2) * t * Q(2t - 1) with t = 2 / (2 + z) for z >= 0, by
# Chebyshev interpolation; the error is that of t * Q against exp(z^2) erfc(z).
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


def fit_erfc(degree):
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


def worst_erfc(coefficients):
    error = mpf(0)
    for k in range(2001):
        u = -1 + mpf(k) / 1000
        error = max(error, abs(horner(coefficients, u) / q(u) - 1))
    return error


print("// Made by fit_polynomials.py, which tells what they are of; from the constant")
print("// up.")
exp2 = fit_exp2(6)
print_table("kExp2F32", exp2, worst_exp2(exp2))
for name, degree in (("kErfcF32", 10), ("kErfcF64", 26)):
    coefficients = [mpf(float(c)) for c in fit_erfc(degree)]
    print_table(name, coefficients, worst_erfc(coefficients))
