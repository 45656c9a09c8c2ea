"""Runs a command whose files can't grow beyond some bytes: with_file_limit.py
BYTES COMMAND ..., so that writing fails as on a full disk."""

import os
import resource
import signal
import sys

limit = int(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # write fails with EFBIG instead
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execvp(sys.argv[2], sys.argv[2:])
