"""A child with a child of its own: both ignore SIGTERM, and the inner one leaves a folder if it comes to its own end."""

from __future__ import annotations

import sys
from pathlib import Path

from fake_compiler import is_alive, wait_until

PYTHON = (sys.executable, "-IS", "-c")

DEAF_FAMILY = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
grandchild = deaf + "; time.sleep(60); os.mkdir(sys.argv[1])"
child = subprocess.Popen([sys.executable, "-IS", "-c", grandchild, sys.argv[1] + ".ended"])
with open(sys.argv[1] + ".part", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(float(sys.argv[2]))
"""


def was_killed(file: Path) -> bool:
    """True where the whole family whose numbers are in the file is gone, and did not come to its own end."""
    pids = [int(pid) for pid in file.read_text().split()]
    return (
        wait_until(lambda: not any(map(is_alive, pids)), 5)
        and not file.with_suffix(".ended").exists()
    )
