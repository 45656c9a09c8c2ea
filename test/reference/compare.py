#!/usr/bin/env python3
"""Compares a program's logits with the oracle's, or with those in a file.

    compare.py MODEL LOGITS.npy --ids 1,2,3 --tolerance 2e-5
    compare.py REFERENCE.npy LOGITS.npy [--row 1] --tolerance 1e-10

Prints the largest absolute difference, divided by the reference's largest
absolute logit with --relative-to-largest; with --root-mean-square that of all
differences, divided by that of the reference. Fails where it is above the
tolerance, where shapes differ, and where anything is not finite.
"""

import argparse
import sys

import numpy as np

from files import add_model_options, parse_ids, read_model
from oracle import forward


def largest(reference, difference):
    return np.abs(difference).max()


def relative_to_largest(reference, difference):
    return largest(reference, difference) / np.abs(reference).max()


def root_mean_square(reference, difference):
    return np.sqrt(np.mean(difference ** 2) / np.mean(reference ** 2))


def difference(reference, logits, measure=largest):
    """What `measure` makes of them; an error where the two can't be compared."""
    if reference.shape != logits.shape:
        raise ValueError(f"expected logits of shape {list(reference.shape)}, "
                         f"but got {list(logits.shape)}")
    if reference.size == 0:
        raise ValueError("expected logits, but got none")
    for name, array in (("reference", reference), ("logits", logits)):
        if not np.isfinite(array).all():
            at = np.argwhere(~np.isfinite(array))[0].tolist()
            raise ValueError(f"expected finite numbers, but the {name} at {at} is {array[tuple(at)]}")
    return measure(reference, reference - logits.astype(np.float64))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", metavar="MODEL|REFERENCE.npy")
    parser.add_argument("logits", metavar="LOGITS.npy")
    parser.add_argument("--ids", help="1,2,3 or IDS.npy; needed with a model")
    parser.add_argument("--row", type=int, help="use one row of the reference's batch")
    parser.add_argument("--tolerance", type=float, required=True)
    for measure in relative_to_largest, root_mean_square:
        parser.add_argument("--" + measure.__name__.replace("_", "-"), dest="measure",
                            action="store_const", const=measure, default=largest)
    add_model_options(parser)
    options = parser.parse_args()

    if options.reference.endswith(".npy"):
        reference = np.load(options.reference)
        reference = reference if options.row is None else reference[options.row]
    elif options.ids is None:
        parser.error("expected --ids, which a model needs")
    else:
        ids = parse_ids(options.ids)
        model = read_model(options.reference, options.weights, options.cache, options.activations)
        reference = forward(model, ids if options.row is None else ids[options.row])
    try:
        found = difference(reference, np.load(options.logits), options.measure)
    except ValueError as error:
        sys.exit(f"error: {options.logits}: {error}")
    within = found <= options.tolerance
    what = options.measure.__name__.replace("_", "-")
    print(f"{what} difference {found:.3g}, tolerance {options.tolerance:g}: "
          f"{'within' if within else 'above'}")
    sys.exit(not within)


if __name__ == "__main__":
    main()
