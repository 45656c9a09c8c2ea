"""summary.py RESULTS.json: names the skipped tests of a lit run and counts.

Fails when a test failed or none passed. Ends with `N passed, N failed`, and
`, N skipped` where tests were skipped.
"""
import json
import re
import sys

# Why a test that needs this feature can't run here.
MISSING = {
    "shared": "no ../shared/models",
    "smollm2": "no models/SmolLM2-135M-Instruct.Q4_1.gguf (is the package registry reachable?)",
    "x86-64-v4": "this CPU has no AVX-512",
}
UNWANTED = {"sanitize": "not for an instrumented build"}


def reason(output):
    needed = re.search(r"unavailable features: (.*)", output)
    unsupported = re.search(r"does not support the following features[^:]*: (.*)", output)
    reasons = []
    for found, names in (needed, MISSING), (unsupported, UNWANTED):
        if found:
            reasons += [names.get(name, name) for name in found[1].strip().split(", ")]
    return "; ".join(reasons) or output.strip()


def main(path):
    with open(path) as file:
        tests = json.load(file)["tests"]
    passed = failed = skipped = 0
    for test in sorted(tests, key=lambda test: test["name"]):
        if test["code"] in ("PASS", "XFAIL", "FLAKYPASS"):
            passed += 1
        elif test["code"] == "UNSUPPORTED":
            skipped += 1
            print(f"skipped {test['name']}: {reason(test['output'])}")
        else:
            failed += 1
            print(f"failed {test['name']}: {test['code']}")
    counts = f"{passed} passed, {failed} failed"
    print(counts + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


sys.exit(main(sys.argv[1]))
