"""A year of nightlies on a data branch: how large the branch becomes, and what `history` over it costs.

    PYTHONPATH=tests/support python tools/simulated_year.py SNAPSHOT SNAPSHOT… [--nights
    365] [--copies 1]

Snapshots of real releases, oldest first, are its sources. Between two of them every
cell changes from one to the other in a night of its own, so that each night some cells
move and most do not. Each night is stored as a push to main stores it; then
`code-size-bot history --store data-branch` reads them all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence_page import table
from places import ROOT
from replacing import replace

from bot.core.baseline import Entry
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.snapshot_json import from_json
from bot.store.data_branch import DataBranch
from bot.system.cancel import Cancel
from bot.system.git import Git

# A child's own peak is in /proc: what the kernel tells the parent is never below the
# parent's own.
_CHILD = """
import resource, sys
from bot.cli.main import main
code = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(used.ru_utime + used.ru_stime, peak, file=sys.stderr)
sys.exit(code)
"""


def copied(snapshot: Snapshot, copies: int) -> Snapshot:
    """Return the snapshot with so many copies of each model.

    They have other names, and figures and texts of their own. Equal copies would be
    packed to nothing. So the sizes of each are a multiple, which still adds up. The
    digits of its names and strategies are others, digests are digested again, and
    strategies stand at other dispatches.
    """

    def copy(cell: Cell, at: int) -> Cell:
        def times(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value and value * (1 + at) for name, value in values.items()}

        def other(text: str) -> str:
            return text.translate(digits)

        shuffled = random.Random(at)
        digits = str.maketrans(
            "123456789", "".join(shuffled.sample("123456789", 9)) if at else "123456789"
        )
        strategies = [row.strategy for row in cell.dispatches]
        if at:
            shuffled.shuffle(strategies)
        rows = tuple(
            replace(
                row,
                executable=other(row.executable),
                name=other(row.name),
                strategy=strategy and other(strategy),
                code=row.code and digest(row.code, at)[:16],
                **times({"code_bytes": row.code_bytes, "stack_bytes": row.stack_bytes}),
            )
            for row, strategy in zip(cell.dispatches, strategies, strict=True)
        )
        program = cell.program and replace(
            cell.program,
            sources=tuple(
                replace(
                    row,
                    executable=other(row.executable),
                    source=digest(row.source, at)[:16],
                    structure=digest(row.structure, at)[:16],
                    bound=row.bound and digest(row.bound, at)[:16],
                )
                for row in cell.program.sources
            ),
            sites=tuple(
                replace(
                    row,
                    entry_point=other(row.entry_point),
                    component=row.component and other(row.component),
                )
                for row in cell.program.sites
            ),
        )
        names = {
            "model": _name(cell.model, at),
            "artifact_digest": digest(cell.key, at),
        }
        return replace(
            cell,
            metrics=times(cell.metrics),
            parts=times(cell.parts),
            dispatches=rows,
            program=program,
            families=tuple(
                replace(row, members=tuple(map(other, row.members)))
                for row in cell.families
            ),
            **names,
        )

    def digest(*what: object) -> str:
        return hashlib.sha256(repr(what).encode()).hexdigest()

    cells = sorted(
        (copy(cell, number) for cell in snapshot.cells for number in range(copies)),
        key=lambda cell: cell.key,
    )
    models = {
        _name(name, number): model_digest
        for name, model_digest in snapshot.models.items()
        for number in range(copies)
    }
    return replace(snapshot, cells=tuple(cells), models=models)


def _name(model: str, copy: int) -> str:
    return f"{model}_{copy:03d}" if copy else model


def nightlies(sources: Sequence[Snapshot], nights: int) -> Iterator[Snapshot]:
    """Yield one snapshot a night, from the first source to the last."""
    cells = [{cell.key: cell for cell in source.cells} for source in sources]
    keys = sorted(set.intersection(*(set(cell) for cell in cells)))
    steps = len(sources) - 1
    for night in range(nights):
        chosen = [
            cells[
                sum(
                    night >= _moves_at(key, step, nights, steps)
                    for step in range(steps)
                )
            ][key]
            for key in keys
        ]
        digest = hashlib.sha256(f"night {night}".encode()).hexdigest()
        compiler = replace(
            sources[-1].compiler, version=f"nightly {night}", digest=digest
        )
        yield replace(sources[-1], compiler=compiler, cells=tuple(chosen))


def _moves_at(key: CellKey, step: int, nights: int, steps: int) -> int:
    """Return the night in which a cell goes over to source `step + 1`.

    It can be anywhere in that step's part of the year.
    """
    number = int.from_bytes(
        hashlib.sha256(f"{key} {step}".encode()).digest()[:4], "big"
    )
    return 1 + (step * nights + number % nights) // steps


def stored(snapshots: Iterator[Snapshot], folder: Path) -> tuple[Path, int]:
    """Return a clone whose origin has each night's snapshot on its data branch.

    Returns as well the bytes of that branch, packed.
    """
    origin = folder / "origin.git"
    clone = folder / "clone"
    _git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    _git(folder, "clone", "--quiet", str(origin), str(clone))
    git = Git(clone, Cancel())
    with DataBranch(git) as store:
        for night, snapshot in enumerate(snapshots):
            _git(clone, "commit", "--quiet", "--allow-empty", "-m", f"Night {night}")
            sha = _git(clone, "rev-parse", "HEAD")
            store.save(Entry("default", sha, snapshot.compiler.digest), snapshot)
    cpu = os.times()
    print(
        f"stored in {cpu.user + cpu.system:,.0f} CPU s, and git's"
        f" {cpu.children_user + cpu.children_system:,.0f}",
        file=sys.stderr,
    )
    _git(clone, "push", "--quiet", "origin", "HEAD:main")
    _git(clone, "remote", "set-head", "origin", "main")
    _git(origin, "gc", "--quiet", "--prune=now")
    sizes = dict(
        line.split(": ") for line in _git(origin, "count-objects", "-v").splitlines()
    )
    return clone, 1024 * int(sizes["size-pack"])


def _git(folder: Path, *words: str) -> str:
    identity = {
        f"GIT_{role}_{field}": "nobody"
        for role in ("AUTHOR", "COMMITTER")
        for field in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **identity},
        check=True,
        stdout=subprocess.PIPE,
    )
    return done.stdout.decode().strip()


def history_cost(clone: Path, nights: int, out: Path) -> tuple[float, float]:
    """Return CPU seconds and peak MiB of `history` over all nights.

    Its files are in `out` afterwards.
    """
    arguments = [
        "history",
        "--quiet",
        "--store",
        "data-branch",
        "--last",
        str(nights),
        "--out",
        str(out),
    ]
    (clone / "code-size.yml").write_text(
        f"schema: code-size-config/1\nbaseline: {{ancestors: {nights}}}\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-c", _CHILD, *arguments, "--config", "code-size.yml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=clone, env=environment, check=True, stderr=subprocess.PIPE
    )
    seconds, peak_kib = done.stderr.split()[-2:]
    return float(seconds), int(peak_kib) / 1024


def main(words: Sequence[str]) -> int:
    """Print the table of docs/scale.md."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("snapshots", nargs="+", type=Path, metavar="SNAPSHOT")
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument(
        "--copies", type=int, default=1, help="of each model, for a larger suite"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="where the history's files stay (default: they are removed)",
    )
    chosen = parser.parse_args(words)
    sources = [
        copied(from_json(path.read_bytes(), str(path)), chosen.copies)
        for path in chosen.snapshots
    ]
    with tempfile.TemporaryDirectory(prefix="code-size-year-") as name:
        folder = Path(name)
        clone, branch_bytes = stored(nightlies(sources, chosen.nights), folder)
        out = chosen.out.resolve() if chosen.out else folder / "out"
        seconds, peak_mib = history_cost(clone, chosen.nights, out)
        sizes = {path.name: path.stat().st_size for path in out.iterdir()}
        answer = json.loads((out / "history.json").read_bytes())
    cells = len({(point["model"], point["target"]) for point in answer["points"]})
    head = [
        "nights",
        "cells",
        "steps",
        "branch MB",
        "KB a night",
        "CPU s",
        "peak MiB",
        *(f"{name} MB" for name in sorted(sizes)),
    ]
    figures = [
        branch_bytes / 1e6,
        branch_bytes / 1e3 / chosen.nights,
        seconds,
        peak_mib,
        *(size / 1e6 for _, size in sorted(sizes.items())),
    ]
    row = [
        str(chosen.nights),
        str(cells),
        str(len(answer["steps"])),
        *(f"{figure:,.1f}" for figure in figures),
    ]
    print("\n".join(table(head, [row])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
