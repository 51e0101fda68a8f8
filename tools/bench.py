"""How fast is the bot against the loop it replaces? One run on this machine: `make bench`.

The plain loop is `xargs -P$(nproc)` over the printed command lines with the native
binary, each as often as the cold run compiled it: what is known not to repeat itself is
compiled six times. Both are whole runs with wall-clock times on the same machine, one
after the other; what counts are the ratios. The loop makes artifacts alone, the cold
run measures everything besides. Wall times also vary with whatever else the machine
does, CPU times less: both ratios are printed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import page_bench
import report_bench
import start_bench
from replacing import replace
from rich.console import Console
from rich.table import Table

from bot.compiler.toolchain import resolve
from bot.config.configuration import load_config
from bot.core.report import Report
from bot.core.snapshot import CellKey, Snapshot
from bot.show.progress import MeasureProgress
from bot.show.report_files import write_snapshot
from bot.study.prepare import Work
from bot.study.request import Request
from bot.system.cancel import Cancel
from bot.system.defaults import default_cache

COMPILER = "3.13.0"
QUICK = Path("configs/quick.yml")


@dataclass
class _Show:
    """Keeps what the pipeline tells about cost."""

    cpu_ms: dict[str, int] = field(default_factory=dict)

    def say(self, line: str) -> None:
        print(f"  {line}", file=sys.stderr)

    def report(self, _report: Report, _files: Sequence[Path]) -> None:
        raise AssertionError("nothing is reported here")

    @contextmanager
    def progress(self) -> Iterator[MeasureProgress]:
        cpu_ms_of_cells = self.cpu_ms

        class Keeping(MeasureProgress):
            def spent(self, cpu_ms: Mapping[str, int], jobs: int) -> None:
                cpu_ms_of_cells.update(cpu_ms)
                super().spent(cpu_ms, jobs)

        with Keeping(Console(stderr=True)) as progress:
            yield progress


@dataclass(frozen=True)
class Spent:
    """Wall time, and the CPU time of this process and of its children that ended."""

    seconds: float
    cpu_seconds: float


class Stopwatch:
    """Measures what is spent from now on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._before = _cpu_seconds()

    def spent(self) -> Spent:
        """Return what was spent since the stopwatch was made."""
        return Spent(
            seconds=time.monotonic() - self._began,
            cpu_seconds=_cpu_seconds() - self._before,
        )


@dataclass(frozen=True)
class Run:
    """One run of `measure`.

    `cpu_ms`: the CPU time of first compiles, by model.
    """

    spent: Spent
    cpu_ms: Mapping[str, int]
    snapshot: Snapshot


def run_measure(request: Request) -> Run:
    """Measure in this process; the time includes everything but Python's own start."""
    show = _Show()
    cancel = Cancel()
    watch = Stopwatch()
    work = Work(request, load_config(request.config), show, cancel)
    snapshot = work.measured([work.prepare("head", request.specs["head"])])["head"]
    write_snapshot(request.out, snapshot)
    return Run(watch.spent(), show.cpu_ms, snapshot)


def plain_loop(
    snapshot: Snapshot, binary: Path, models: Path, scratch: Path, jobs: int
) -> Spent:
    """Run the printed lines with `xargs`, and return what that costs.

    Each line runs in a shell of its own, as anyone would run it.
    """
    lines = [cell.command for cell in snapshot.cells if cell.command]
    script = scratch / "lines.txt"
    texts = [
        line.replace("iree-compile -", f"{binary} -", 1)
        .replace(
            f"-o {cell.key.model}.vmfb",
            f"-o {scratch}/{cell.key.model}.{cell.key.target}.{number}.vmfb",
        )
        .rpartition("< ")[0]
        + f"< {models / cell.key.model}.mlir > /dev/null 2>&1; true"
        for line, cell in zip(
            lines, (cell for cell in snapshot.cells if cell.command), strict=True
        )
        for number in range(cell.compiles)
    ]
    script.write_bytes(b"\0".join(text.encode() for text in texts))
    watch = Stopwatch()
    with open(script, "rb") as source:
        subprocess.run(
            ["xargs", "-0", f"-P{jobs}", "-I{}", "sh", "-c", "{}"],
            stdin=source,
            check=True,
        )
    return watch.spent()


def other_artifacts(snapshot: Snapshot, scratch: Path) -> tuple[list[CellKey], int]:
    """Return the cells for which the loop's first artifact is not one that was seen.

    Returns as well how many cells were compared.
    """
    different = list[CellKey]()
    compared = [cell for cell in snapshot.cells if cell.artifact_digest]
    for cell in compared:
        path = scratch / f"{cell.key.model}.{cell.key.target}.0.vmfb"
        digests = {
            cell.artifact_digest,
            *(outcome.artifact_digest for outcome in cell.others),
        }
        if (
            not path.is_file()
            or hashlib.sha256(path.read_bytes()).hexdigest() not in digests
        ):
            different.append(cell.key)
    return different, len(compared)


def pull_request(request: Request) -> Spent:
    """Measure the quick suite's head, and compare it with a base measured before.

    These are two commands on one machine, with an empty cache. A pull request with
    a stored baseline computes just that. Fetching the compiler, git and GitHub are
    not included.
    """
    with tempfile.TemporaryDirectory(prefix="code-size-bench-") as name:
        scratch = Path(name)
        base = str(scratch / "base.json")
        head = str(scratch / "head.json")
        argv = [
            "measure",
            "--config",
            str(QUICK),
            "--compiler",
            request.specs["head"],
            "--jobs",
            str(request.jobs),
        ]
        _run(*argv, "--cache", str(scratch / "first"), "--out", base)
        resolve(request.specs["head"], scratch / "second", Cancel(), print)
        watch = Stopwatch()
        _run(*argv, "--cache", str(scratch / "second"), "--out", head)
        _run(
            "report",
            "--config",
            str(QUICK),
            "--base",
            base,
            "--head",
            head,
            "--out",
            str(scratch / "out"),
        )
        return watch.spent()


def _run(*argv: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot", *argv], stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{argv[0]} ended with exit code {done.returncode}")


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    used = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _changed_suite(config: Path, into: Path, changed: str) -> None:
    """Copy the models, and add one comment line to `changed`."""
    source = config.parent / "models"
    shutil.copytree(source, into / "models", dirs_exist_ok=True)
    shutil.copy(config, into / "config.yml")
    path = into / "models" / f"{changed}.mlir"
    path.write_text(path.read_text(encoding="utf-8") + "// changed\n", encoding="utf-8")


Row = tuple[str, str, str]


def bench(config: Path, jobs: int) -> Iterator[Row]:
    """Yield all figures, as they are measured: (what, measured, bound)."""
    with tempfile.TemporaryDirectory(prefix="code-size-bench-") as name:
        scratch = Path(name)
        toolchain = resolve(
            COMPILER,
            default_cache(),
            Cancel(),
            lambda line: print(f"  {line}", file=sys.stderr),
        )
        cache = scratch / "cache"
        request = Request(
            specs={"head": str(toolchain.binary)},
            config=config,
            jobs=jobs,
            cache=cache,
            out=scratch / "head.json",
        )
        # hashes the library once, as any second run finds it
        resolve(str(toolchain.binary), cache, Cancel(), print)
        cold = run_measure(request)
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        loop = plain_loop(
            cold.snapshot,
            binary=toolchain.binary,
            models=config.parent / "models",
            scratch=scratch,
            jobs=jobs,
        )
        yield from _cold_rows(cold, loop, jobs)
        yield from _equal_rows(*other_artifacts(cold.snapshot, scratch))
        warm = run_measure(request)
        yield (
            "warm run / cold run",
            f"{warm.spent.seconds / cold.spent.seconds:.4f}",
            "≤ 0.002",
        )
        yield _changed_row(cold, request, scratch)
        pull = pull_request(request)
    yield (
        "pull request: measure the quick suite's head, report",
        f"{pull.cpu_seconds:.0f} CPU s",
        "",
    )
    yield "  of it on this machine", f"{pull.seconds / 60:.1f} min", ""
    yield from report_bench.rows(cold.snapshot)
    yield (
        "dearest start / python -c 'import argparse', CPU",
        f"{max(start_bench.ratios().values()):.2f}",
        "≤ 2",
    )
    yield from page_bench.rows()
    yield "peak memory of the cold run's own process", f"{peak_mib:.0f} MiB", ""


def _cold_rows(cold: Run, loop: Spent, jobs: int) -> Iterator[Row]:
    spent = cold.spent
    cells = [cell for cell in cold.snapshot.cells if cell.status != "unsupported"]
    compiles = sum(cell.compiles for cell in cells)
    yield (
        f"cold run, {len(cells)} builds, {compiles} compiles",
        f"{spent.seconds:.1f} s",
        "",
    )
    yield "plain loop over the same lines", f"{loop.seconds:.1f} s", ""
    yield "cold run / plain loop", f"{spent.seconds / loop.seconds:.2f}", "≤ 1.00"
    yield (
        "  the same in CPU time",
        f"{spent.cpu_seconds / loop.cpu_seconds:.2f}",
        "",
    )
    yield (
        "CPU time / (threads × wall)",
        f"{spent.cpu_seconds / (jobs * spent.seconds):.3f}",
        "≥ 0.97",
    )


def _equal_rows(other: Sequence[CellKey], compared: int) -> Iterator[Row]:
    yield (
        "artifacts equal to the loop's",
        f"{compared - len(other)} of {compared}",
        "all",
    )
    yield from ((f"  not that of {key}", "", "") for key in other)


def _changed_row(cold: Run, request: Request, scratch: Path) -> Row:
    """Change the comments of one model, and measure again.

    The model's share of the cost is about average.
    """
    compiled = sum(cold.cpu_ms.values())
    changed = min(
        cold.cpu_ms,
        key=lambda model: (
            abs(cold.cpu_ms[model] / compiled - 1 / len(cold.cpu_ms)),
            model,
        ),
    )
    assert request.config is not None
    _changed_suite(request.config, scratch, changed)
    again = run_measure(replace(request, config=scratch / "config.yml"))
    bound = f"≤ {cold.cpu_ms[changed] / compiled:.3f} + 0.01"
    return (
        f"{changed} changed / cold run",
        f"{again.spent.seconds / cold.spent.seconds:.3f}",
        bound,
    )


def main() -> int:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path("configs/quick.yml"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    table = Table(
        "what",
        "measured",
        "bound",
        title=f"{arguments.config}, IREE {COMPILER}, {arguments.jobs} threads",
    )
    for row in bench(arguments.config, arguments.jobs):
        print(*row, sep="\t", file=sys.stderr, flush=True)  # a later row may fail
        table.add_row(*row)
    Console(width=100).print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
