"""Instructions that one run of an artifact retires, where this machine's kernel counts them and `perf` is there.

A count hardly depends on what else the machine does, as a time does. What starting the program and loading the artifact
take is in every run alike: it is measured once with few repetitions and once with more, and the difference is told.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from bot.core.rules.lasting import here
from bot.measurement.running.executing import calling
from bot.measurement.running.feeding import Feed
from bot.measurement.running.runtime import Runtime
from bot.system.files import temporary_directory
from bot.system.processes import Cancel, run

PERF = "perf"
_FEW, _MORE = 1, 5


def retired(runtime: Runtime, artifact: Path, fed: Feed, cancel: Cancel, timeout_seconds: float) -> int | str:
    """User-mode instructions of one run, or why they are not known."""
    if why := _refusal(cancel):
        return why
    counts = []
    for repetitions in (_FEW, _MORE):
        how = ["--benchmark_format=json", f"--benchmark_min_time={repetitions}x"]
        argv = [runtime.benchmark_module, *calling(artifact, fed, 0), *how]
        count = _counted(argv, fed.directory, cancel, timeout_seconds)
        if isinstance(count, str):
            return count
        counts.append(count)
    count = (counts[1] - counts[0]) // (_MORE - _FEW)
    return count if count > 0 else here(f"instructions are not counted: {_MORE} runs took no more than {_FEW}")


@lru_cache(maxsize=1)
def _refusal(cancel: Cancel) -> str:
    """Why nothing is counted here; empty where it is. Asked once, of a program that does nothing."""
    with temporary_directory("perf-") as directory:
        count = _counted(["true"], directory, cancel, 60)
    return count if isinstance(count, str) else ""


def _counted(argv: list[str], cwd: Path, cancel: Cancel, timeout_seconds: float) -> int | str:
    with temporary_directory("perf-") as directory:
        counts, heard = directory / "counts.csv", directory / "output.txt"
        command = [PERF, "stat", "-x,", "-e", "instructions:u", "-o", str(counts), "--", *argv]
        try:
            outcome = run(command, cancel=cancel, cwd=cwd, stdout=heard, timeout_seconds=timeout_seconds)
        except OSError:
            return here("perf, which counts instructions, is not installed")
        if not outcome.ok or not counts.is_file():
            said = " ".join(outcome.output.split())[:120]
            return here(f"instructions are not counted: {said or 'perf failed'}")
        return count_of(counts.read_text(encoding="utf-8", errors="replace"))


def count_of(report: str) -> int | str:
    """The count in what `perf stat -x,` writes: value, unit, event, and more; or why there is none."""
    rows = [line.split(",") for line in report.splitlines() if line and not line.startswith("#")]
    counts = [row[0].strip() for row in rows if len(row) > 2 and row[2].startswith("instructions")]
    if len(counts) == 1 and counts[0].isdecimal():
        return int(counts[0])
    return here(f"instructions are not counted: the kernel says {counts[0][:40] if counts else 'nothing'}")
