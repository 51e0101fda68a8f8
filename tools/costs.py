"""What a pull request costs: `tools/costs.py` measures a head side of both suites, from an empty cache and again.

The base side is taken as stored, as it is after the first push. Prints the table of
docs/speed.md, in 15 minutes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from places import ROOT

from bot.system.defaults import cores

RELEASE = "3.13.0"
MEGABYTE = 1_000_000


def run(config: Path, folder: Path, cores_used: int) -> tuple[float, float]:
    """Return wall and CPU minutes of measuring one side."""
    argv = [
        sys.executable,
        "-m",
        "bot",
        "measure",
        "--compiler",
        RELEASE,
        "--config",
        str(config),
        "--jobs",
    ]
    argv += [
        str(cores_used),
        "--cache",
        str(folder / "cache"),
        "--out",
        str(folder / "head.json"),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    subprocess.run(
        argv, cwd=ROOT, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = time.monotonic()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (ended - began) / 60, used / 60


def megabytes(folder: Path, skip: str = "") -> float:
    """Return the size of all files below a folder, but for those of one subfolder."""
    files = (
        Path(place) / name for place, _, names in os.walk(folder) for name in names
    )
    counted = (
        path for path in files if not skip or skip not in path.relative_to(folder).parts
    )
    return sum(path.lstat().st_size for path in counted) / MEGABYTE


def rows(suite: str, cores_used: int) -> Iterator[str]:
    """Yield a row for the run with an empty cache, and one for the same run again.

    The first run fetches the compiler.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        config = ROOT / "configs" / ("quick.yml" if suite == "quick" else "default.yml")
        for cache_state in ("cold", "warm"):
            wall, cpu = run(config, folder, cores_used)
            cells = megabytes(folder / "cache", skip="toolchains")
            compiler = megabytes(folder / "cache" / "toolchains")
            yield (
                f"| {suite}, {cache_state} | {wall:.2f} | {cpu:.2f} | {cells:,.0f} |"
                f" {compiler:,.0f} |"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m costs", description=__doc__)
    parser.add_argument("--suite", choices=("quick", "full"), action="append")
    parser.add_argument("--jobs", type=int, default=cores())
    options = parser.parse_args()
    print(
        f"| head side, {options.jobs} cores | minutes | CPU minutes | MB of cache | MB of"
        " compiler |"
    )
    print("|:--|--:|--:|--:|--:|")
    for suite in options.suite or ("quick", "full"):
        for row in rows(suite, options.jobs):
            print(row, flush=True)


if __name__ == "__main__":
    main()
