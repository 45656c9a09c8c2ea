"""Measures a compiled model and other engines on the same GGUF file, in turns.

A round is one run of kvc-bench and of each engine; a rate of a round is tokens over
the seconds that they took. The table has the medians of the rounds, with the least
and the most.
"""

import argparse
import datetime
import json
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile


def fail(message):
    sys.exit(f"error: {message}")


def numbers(text):
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 1,2, but got {text}")


def engine(text):
    name, equals, command = text.partition("=")
    if not (name and equals and command):
        raise argparse.ArgumentTypeError(f"expected NAME=COMMAND, but got {text}")
    return name, shlex.split(command)


def options():
    parser = argparse.ArgumentParser(prog="compare_engines.py", description=__doc__)
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("compiled", help="what kvc-opt made of it")
    parser.add_argument("--llama-bench", metavar="NAME=COMMAND", type=engine,
                        action="append", default=[], dest="engines",
                        help="another engine; once for each")  # fmt: skip
    parser.add_argument("--kvc-bench", default="build/bin/kvc-bench")
    parser.add_argument("--threads", type=numbers, default="1,2")
    parser.add_argument("--prompt", type=numbers, default="512")
    parser.add_argument("--depth", type=numbers, default="0,1024,4096")
    parser.add_argument("--batch", type=numbers, default="1,2,4,8,16",
                        help="sequences that kvc decodes together, at the first depth")  # fmt: skip
    parser.add_argument("-n", type=int, default=32, help="tokens of a sample")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="every round, as the programs printed it")
    given = parser.parse_args()
    if not given.engines:
        parser.error("expected --llama-bench once or more")
    if given.rounds < 1:
        parser.error(f"--rounds: expected a number above 0, but got {given.rounds}")
    return given


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2] or f"exit {done.returncode}"
        fail(f"{shlex.join(command)}: {reason}")
    return done.stdout


def commas(sizes):
    return ",".join(map(str, sorted(sizes)))


# A rate's place in the table: threads; "prompt", "decode" or "batch"; size.
def run_kvc(given):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        run([given.kvc_bench, given.compiled, "--rounds", "1", "--check", "1",
             "-n", str(given.n), "--threads", commas(given.threads),
             "--prompt", commas(given.prompt), "--depth", commas(given.depth),
             "--batch", commas({1, *given.batch}), "--generate", "", "--json", file.name])  # fmt: skip
        report = json.load(open(file.name))
    rates, roof = {}, {}
    for what in report["measurements"]:
        seconds = sum(what["seconds"])
        if what["what"] == "first token":
            key = what["threads"], "prompt", what["prompt"]
            rates[key] = what["prompt"] / seconds
        else:
            key = what["threads"], "decode", what["depth"]
            if what["batch"] > 1:
                key = what["threads"], "batch", what["batch"]
            rates[key] = what["batch"] * len(what["seconds"]) / seconds
            roof[key] = statistics.mean(what["roof_seconds"]) * rates[key] / what["batch"]
    return rates, roof, report


def run_llama(given, command):
    common = ["-m", given.model, "-t", commas(given.threads), "-r", "1", "-o", "json"]
    report = []
    for sizes in (["-p", commas(given.prompt), "-n", "0"],
                  ["-p", "0", "-n", str(given.n), "-d", commas(given.depth)]):  # fmt: skip
        report += json.loads(run([*command, *common, *sizes]))
    rates = {}
    for what in report:
        what.pop("model_filename", None)  # where it stood says nothing elsewhere
        if what["n_prompt"]:
            key = what["n_threads"], "prompt", what["n_prompt"]
        else:
            key = what["n_threads"], "decode", what["n_depth"]
        rates[key] = what["avg_ts"]
    return rates, report


def machine():
    with open("/proc/cpuinfo") as file:
        names = [line.partition(":")[2].strip() for line in file
                 if line.startswith("model name")]  # fmt: skip
    return f"{names[0] if names else platform.machine()}, {len(names)} CPUs"


def spread(samples, digits):
    middle, low, high = statistics.median(samples), min(samples), max(samples)
    return f"{middle:.{digits}f} ({low:.{digits}f} - {high:.{digits}f})"


def main():
    given = options()
    names = [name for name, _ in given.engines]
    rounds, reports = [], []
    for number in range(given.rounds):
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
        rates, roof, report = run_kvc(given)
        one = {"kvc": rates, "roof": roof}
        reports.append({"kvc": report})
        for name, command in given.engines:
            one[name], reports[-1][name] = run_llama(given, command)
        rounds.append(one)
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(reports) + "\n")

    kvc = reports[0]["kvc"]
    file = pathlib.Path(given.model)
    print(f"{file.name}, {file.stat().st_size / 1e6:.0f} MB; kvc's weights "
          f"{kvc['model']['weights_bytes'] / 1e6:.0f} MB, identity "
          f"{kvc['model']['identity'][:8]}, level {kvc['cpu_level']}")  # fmt: skip
    for name, command in given.engines:
        about = reports[0][name][0]
        print(f"{name}: build {about['build_number']} ({about['build_commit']}), cache "
              f"{about['type_k']} and {about['type_v']}, {' '.join(command[1:]) or 'no options'}")  # fmt: skip
    print(f"{machine()}; {datetime.date.today()}; medians of {given.rounds} rounds with "
          "the least and the most, tokens/s\n")  # fmt: skip
    for peak in range(len(kvc["peaks"])):
        samples = {key: [report["kvc"]["peaks"][peak][key][0] / 1e9 for report in reports]
                   for key in ("read_bytes_per_second", "fma_flop_per_second")}  # fmt: skip
        threads = kvc["peaks"][peak]["threads"]
        print(f"Peak with {threads} thread{'s'[: threads > 1]}: reading the weight file "
              f"{spread(samples['read_bytes_per_second'], 1)} GB/s, f32 multiply-adds "
              f"{spread(samples['fma_flop_per_second'], 0)} GFLOP/s")  # fmt: skip
    labels = {"prompt": "prompt of {}", "decode": "decode at depth {}",
              "batch": "decode of {} sequences"}  # fmt: skip
    columns = ["threads", "", "kvc", *names, "kvc / best", "kvc / roof", "kvc / one sequence"]
    print("\n| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))

    def rates(name, key):
        return [one[name][key] for one in rounds if key in one[name]]

    # An engine that doesn't measure something has no figure there.
    kinds = list(labels)
    for key in sorted(rounds[0]["kvc"], key=lambda key: (key[0], kinds.index(key[1]), key[2])):
        threads, what, size = key
        middle = statistics.median(rates("kvc", key))
        others = [statistics.median(rates(name, key)) for name in names if rates(name, key)]
        roof, single = rates("roof", key), (threads, "decode", given.depth[0])
        cells = [str(threads), labels[what].format(size)]
        cells += [spread(rates(name, key), 1) if rates(name, key) else "" for name in ["kvc", *names]]
        cells.append(f"{middle / max(others):.2f}" if others else "")
        cells.append(f"{statistics.median(roof):.2f}" if roof else "")
        cells.append(f"{middle / statistics.median(rates('kvc', single)):.2f}" if what == "batch" else "")
        print("| " + " | ".join(cells) + " |")


main()
