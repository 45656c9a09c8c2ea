"""truncate.py MODEL FILE STEP: cuts FILE, a part of MODEL, at every STEP-th byte
and checks that kvc-opt refuses each piece with an error that names the file."""

import subprocess
import sys

model, path, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(path, "rb") as file:
    whole = file.read()
for size in range(0, len(whole), step):
    with open(path, "wb") as file:
        file.write(whole[:size])
    run = subprocess.run(["kvc-opt", model, "--emit=spec"], capture_output=True, text=True)
    if run.returncode != 1 or not run.stderr.startswith(f"error: {path}: "):
        sys.exit(f"cut at {size}: exit {run.returncode}, {run.stderr}")
print(f"{len(range(0, len(whole), step))} pieces refused")
