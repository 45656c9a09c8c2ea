#!/usr/bin/env python3
"""Compares a program's logits with the oracle's, or with those in a file.

    compare.py MODEL LOGITS.npy --ids 1,2,3 --tolerance 2e-5
    compare.py REFERENCE.npy LOGITS.npy [--row 1] --tolerance 1e-10

Prints the largest absolute difference, divided by the reference's largest
absolute logit with --relative-to-largest. Fails where it is above the
tolerance, where shapes differ, and where anything is not finite.
"""

import argparse
import sys

import numpy as np

from files import add_model_options, parse_ids, read_model
from oracle import forward


def difference(reference, logits, relative=False):
    """The largest difference; an error where the two can't be compared."""
    if reference.shape != logits.shape:
        raise ValueError(f"expected logits of shape {list(reference.shape)}, "
                         f"but got {list(logits.shape)}")
    if reference.size == 0:
        raise ValueError("expected logits, but got none")
    for name, array in (("reference", reference), ("logits", logits)):
        if not np.isfinite(array).all():
            at = np.argwhere(~np.isfinite(array))[0].tolist()
            raise ValueError(f"expected finite numbers, but the {name} at {at} is {array[tuple(at)]}")
    largest = np.abs(reference - logits.astype(np.float64)).max()
    return largest / np.abs(reference).max() if relative else largest


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", metavar="MODEL|REFERENCE.npy")
    parser.add_argument("logits", metavar="LOGITS.npy")
    parser.add_argument("--ids", help="1,2,3 or IDS.npy; needed with a model")
    parser.add_argument("--row", type=int, help="use one row of the reference's batch")
    parser.add_argument("--tolerance", type=float, required=True)
    parser.add_argument("--relative-to-largest", action="store_true")
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
        found = difference(reference, np.load(options.logits), options.relative_to_largest)
    except ValueError as error:
        sys.exit(f"error: {options.logits}: {error}")
    within = found <= options.tolerance
    print(f"max difference {found:.3g}, tolerance {options.tolerance:g}: "
          f"{'within' if within else 'above'}")
    sys.exit(not within)


if __name__ == "__main__":
    main()
