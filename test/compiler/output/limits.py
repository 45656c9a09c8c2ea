"""Runs a command and fails where it needs too much.

    limits.py --seconds S --megabytes M COMMAND ...

Of the seconds by the clock and of processor time the fewer count: that a machine
is busy is not the command's doing. Megabytes (10^6) are the largest resident
size, of the command or of one that it starts.
"""

import argparse
import resource
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, required=True)
parser.add_argument("--megabytes", type=float, required=True)
parser.add_argument("command", nargs=argparse.REMAINDER)
options = parser.parse_args()

begin = time.monotonic()
subprocess.run(options.command, check=True)
clock = time.monotonic() - begin
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = min(clock, usage.ru_utime + usage.ru_stime)
megabytes = usage.ru_maxrss * 1024 / 1e6
print(f"{seconds:.1f} s ({clock:.1f} s by the clock), {megabytes:.0f} MB")
sys.exit(seconds > options.seconds or megabytes > options.megabytes)
