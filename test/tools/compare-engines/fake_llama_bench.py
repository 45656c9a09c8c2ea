"""Prints what llama-bench -o json prints, of rates that follow from the sizes."""

import json
import sys

given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if given.get("--mode") == "broken":
    sys.exit("cannot load the model")
sizes = {key: [int(size) for size in given.get(key, "0").split(",")]
         for key in ("-t", "-p", "-n", "-d")}  # fmt: skip
assert given["-o"] == "json" and given["-r"] == "1" and open(given["-m"], "rb")
print(json.dumps([
    {"build_commit": "abc", "build_number": 7, "type_k": "f16", "type_v": "f16",
     "n_threads": threads, "n_prompt": prompt, "n_gen": made, "n_depth": depth,
     "avg_ts": float(given["--rate"]) + threads}
    for depth in sizes["-d"] for prompt in sizes["-p"] for made in sizes["-n"]
    for threads in sizes["-t"]
]))  # fmt: skip
