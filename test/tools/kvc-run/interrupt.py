"""interrupt.py DIR: Ctrl-C while kvc-run answers, once and twice."""

import array
import fcntl
import signal
import subprocess
import sys
import termios
import time


def start(*arguments):
    return subprocess.Popen(["kvc-run", sys.argv[1], *arguments],
                            bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def catches(run):
    """Whether the program handles SIGINT by now."""
    with open(f"/proc/{run.pid}/status") as status:
        mask = next(line for line in status if line.startswith("SigCgt")).split()[1]
    return int(mask, 16) >> signal.SIGINT - 1 & 1


answer = ["--ids", "1,5", "-n", "1000000"]


run = start(*answer)
first = b""
while len(first) < 100:
    first += run.stdout.read(100)
run.send_signal(signal.SIGINT)
out, figures = run.communicate(timeout=60)
out = (first + out).decode()
count = out.count(",") + 1
assert out.endswith("\n") and out[-2].isdigit() and 1 < count < 1000000, out[-20:]
assert f"; {count - 1} more in " in figures.decode(), figures
print("once:", run.returncode)

# In the prompt, which takes seconds; logits that are asked for are not all there.
prompt = ["--ids", ",".join(["7"] * 60000), "--chunks", "1"]
for options in [], ["--logits", sys.argv[1] + "/logits.npy"]:
    run = start(*prompt, *options)
    while not catches(run):
        time.sleep(0.001)
    run.send_signal(signal.SIGINT)
    out, errors = run.communicate(timeout=60)
    print(out, errors.decode().strip() + ":", run.returncode)

# When the second comes, it waits for a reader.
run = start(*answer)
room, waiting = fcntl.fcntl(run.stdout, fcntl.F_SETPIPE_SZ, 4096), array.array("i", [0])
while waiting[0] < room - 8:
    time.sleep(0.05)
    fcntl.ioctl(run.stdout, termios.FIONREAD, waiting)
time.sleep(0.5)
run.send_signal(signal.SIGINT)
time.sleep(0.2)
assert run.poll() is None
run.send_signal(signal.SIGINT)
print("twice:", run.wait(timeout=60))
