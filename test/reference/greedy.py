#!/usr/bin/env python3
"""Prints the ids that greedily follow a prompt, by the oracle, as 1,2,3.

    greedy.py MODEL --ids 1,2,3 -n 20
"""

import argparse

from files import add_model_options, parse_ids, read_model
from oracle import greedy


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--ids", required=True)
    parser.add_argument("-n", type=int, required=True, dest="count")
    add_model_options(parser)
    options = parser.parse_args()
    model = read_model(options.model, options.weights, options.cache, options.activations)
    print(",".join(map(str, greedy(model, parse_ids(options.ids), options.count))))


if __name__ == "__main__":
    main()
