"""Measure the CPU time of a start, against `python -c 'import argparse'`.

This is a part of `make bench`, and a program of its own.

A quotient of small times moves with whatever else the machine does; `test_start.py`
keeps what it stands for.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence

RUNS = 15
STARTS = (
    ("--version",),
    ("--help",),
    ("compare", "--help"),
    ("comapre",),
    ("measure", "--out", "x.json"),
    ("compare", "--cache-limit", "5"),
)


def cpu_seconds(argv: Sequence[str]) -> float:
    """Return the least CPU time, of user and system, that one run took."""
    times = []
    for _ in range(RUNS):
        before = _children_seconds()
        subprocess.run(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        times.append(_children_seconds() - before)
    return min(times)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ratios() -> dict[str, float]:
    """Return arguments → CPU time of that start, as a multiple of a plain import's."""
    plain = cpu_seconds([sys.executable, "-c", "import argparse"])
    return {
        " ".join(start): cpu_seconds([sys.executable, "-m", "bot", *start]) / plain
        for start in STARTS
    }


if __name__ == "__main__":
    for start, ratio in ratios().items():
        print(f"code-size-bot {start:24} {ratio:.2f} (≤ 2)")
