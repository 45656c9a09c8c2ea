"""samples.py JSON SVG ROUNDS STEPS: every sample is there, and the picture is XML."""

import json
import sys
import xml.etree.ElementTree as ElementTree

path, picture, rounds, steps = sys.argv[1:]
rounds, steps = int(rounds), int(steps)
with open(path) as file:
    report = json.load(file)
seen = set()
for what in report["measurements"]:
    sizes = {k: v for k, v in what.items() if isinstance(v, (int, str))}
    key = tuple(sorted(sizes.items()))
    assert key not in seen, key
    seen.add(key)
    samples = rounds * (steps if what["what"] == "decode" else 1)
    assert len(what["seconds"]) == samples, what
    assert all(seconds > 0 for seconds in what["seconds"]), what
    if what["what"] == "decode":
        model = report["model"]
        cached = what["depth"] * what["batch"] * model["cache_bytes_per_position"]
        assert what["bytes"] >= model["weights_bytes"] + cached, what
        assert len(what["roof_seconds"]) == rounds, what
for peak in report["peaks"]:
    assert len(peak["read_bytes_per_second"]) == len(peak["fma_flop_per_second"]) == rounds
root = ElementTree.parse(picture).getroot()
dots = len(root.findall(".//{http://www.w3.org/2000/svg}circle"))
kinds = {}
for what in report["measurements"]:
    kinds[what["what"]] = kinds.get(what["what"], 0) + 1
print(kinds, len(report["left_out"]), "left out,", dots, "dots")
