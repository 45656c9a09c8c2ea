"""interrupt.py DIR: Ctrl-C while kvc-run answers, once and twice."""

import array
import fcntl
import signal
import subprocess
import sys
import termios
import time


def start():
    return subprocess.Popen(["kvc-run", sys.argv[1], "--ids", "1,5", "-n", "1000000"],
                            bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


run = start()
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

# When the second comes, it waits for a reader.
run = start()
waiting, before = array.array("i", [0]), -1
while waiting[0] != before or before < 32768:
    before = waiting[0]
    time.sleep(0.2)
    fcntl.ioctl(run.stdout, termios.FIONREAD, waiting)
run.send_signal(signal.SIGINT)
time.sleep(0.2)
assert run.poll() is None
run.send_signal(signal.SIGINT)
print("twice:", run.wait(timeout=60))
