"""Errors in units of the last place (ulp)."""

import numpy as np

NUMPY = {"f32": np.float32, "f64": np.float64}


def errors(y, exact, kind):
    """In ulp of `kind` at the exact value. Infinity counts as the first power of
    two that the type has not."""
    info = np.finfo(NUMPY[kind])
    beyond = np.ldexp(np.longdouble(1), int(info.maxexp))
    y = np.clip(y.astype(np.longdouble), -beyond, beyond)
    exact = np.clip(exact, -beyond, beyond)
    exponent = np.maximum(np.frexp(exact)[1], int(info.minexp) + 1)
    return np.abs(y - exact) / np.ldexp(np.longdouble(1), exponent - 1 - info.nmant)
