"""Measure what `report` costs on 5,000 builds, as a part of `make bench`.

It is compared with reading the same two files with Python's `json`.

Every dispatch of every cell has code of its own, on each side another: nothing that
cells have in common makes the files easier than they look, and every cell has a story
to be told. `PYTHONPATH=tests/support python tools/report_bench.py SNAPSHOT` measures it
alone.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from replacing import replace

from bot.core.digest import written
from bot.core.metrics import TABLES
from bot.core.snapshot import Cell, CellKey, Dispatch, Snapshot
from bot.core.snapshot_json import from_lines, snapshot_lines

CELLS = 5000
# The bounds: CPU time as a multiple of that of `json`, and peak memory
TIMES = 4
MIB = 250
# A child's own peak is in /proc: what the kernel tells the parent is never below the
# parent's own.
_CHILD = """
import resource, sys
del sys.argv[0]
code = {work}
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(used.ru_utime + used.ru_stime, peak)
sys.exit(code)
"""
_REPORT = "__import__('bot.cli.main').cli.main.main(sys.argv)"
_JSON = "[__import__('json').load(open(path, 'rb')) for path in sys.argv] and 0"


@dataclass(frozen=True)
class Cost:
    """The cost of a process: its CPU time, user and system, and its largest memory."""

    cpu_seconds: float
    peak_mib: float


def many(snapshot: Snapshot, side: str, count: int = CELLS) -> Snapshot:
    """Return so many cells, made of copies of the measured ones.

    Those of `head` have more code in every dispatch.
    """
    measured = [cell for cell in snapshot.cells if cell.measured]
    cells = [
        _other(measured[number % len(measured)], number // len(measured), side)
        for number in range(count)
    ]
    models = {cell.key.model: "0" * 64 for cell in cells}
    compiler = replace(
        snapshot.compiler, digest=hashlib.sha256(side.encode()).hexdigest()
    )
    cells.sort(key=lambda cell: cell.key)
    return replace(snapshot, compiler=compiler, cells=tuple(cells), models=models)


def _other(cell: Cell, number: int, side: str) -> Cell:
    key = CellKey(f"{cell.key.model}_{number:04d}", cell.key.target)
    dispatches = tuple(
        _dispatch(row, f"{side} {key} {index}", index + 1, side)
        for index, row in enumerate(cell.dispatches)
    )
    grown = sum(
        (new.code_bytes or 0) - (old.code_bytes or 0)
        for new, old in zip(dispatches, cell.dispatches, strict=True)
    )
    # a module without code of its own differs as well
    grown = grown or (side == "head")
    metrics = {
        **cell.metrics,
        "artifact_bytes": (cell.metrics["artifact_bytes"] or 0) + grown,
    }
    parts = (
        {**cell.parts, TABLES: cell.parts.get(TABLES, 0) + grown} if cell.parts else {}
    )
    digest = hashlib.sha256(f"{side} {key}".encode()).hexdigest()
    return replace(
        cell,
        model=key.model,
        target=key.target,
        metrics=metrics,
        artifact_digest=digest,
        parts=parts,
        dispatches=dispatches,
    )


def _dispatch(row: Dispatch, name: str, more: int, side: str) -> Dispatch:
    code = written(hashlib.sha256(name.encode()).digest())
    size = (
        None if row.code_bytes is None else row.code_bytes + more + 7 * (side == "head")
    )
    return replace(row, code=code, code_bytes=size)


def write(snapshot: Snapshot, folder: Path, count: int = CELLS) -> list[Path]:
    """Write both files, one after the other.

    Two snapshots of this size at once need more memory than a small machine has.
    """
    paths = [folder / "base.json", folder / "head.json"]
    for path in paths:
        with path.open("wb") as file:
            file.writelines(snapshot_lines(many(snapshot, path.stem, count)))
    return paths


def _cost(work: str, argv: list[str]) -> Cost:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD.format(work=work), *argv],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(
            f"{' '.join(argv)} ended with exit code {done.returncode}:"
            f" {done.stderr[-500:]}"
        )
    seconds, peak_kib = done.stdout.split()[-2:]
    return Cost(float(seconds), int(peak_kib) / 1024)


def costs(snapshot: Snapshot, count: int = CELLS) -> tuple[Cost, Cost]:
    """Return the cost of `report`, and that of `json` reading the two files.

    Each runs as a process of its own.
    """
    with tempfile.TemporaryDirectory(prefix="code-size-bench-") as name:
        base, head = map(str, write(snapshot, Path(name), count))
        argv = [
            "report",
            "--quiet",
            "--base",
            base,
            "--head",
            head,
            "--out",
            f"{name}/out",
        ]
        return _cost(_REPORT, argv), _cost(_JSON, [base, head])


def rows(snapshot: Snapshot) -> list[tuple[str, str, str]]:
    """Return the rows for the table of `make bench`: (what, measured, bound)."""
    report, json = costs(snapshot)
    return [
        (f"report on {CELLS:,} builds, CPU", f"{report.cpu_seconds:.1f} s", ""),
        (
            "  the same / json reading its two files",
            f"{report.cpu_seconds / json.cpu_seconds:.1f}",
            f"≤ {TIMES}",
        ),
        ("  its peak memory", f"{report.peak_mib:.0f} MiB", f"≤ {MIB} MiB"),
    ]


if __name__ == "__main__":
    with Path(sys.argv[1]).open("rb") as file:
        for row in rows(from_lines(file, sys.argv[1])):
            print(*row)
