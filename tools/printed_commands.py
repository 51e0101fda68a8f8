"""The printed command of every cell, run by a shell as anyone would, against what was reported."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from evidence_work import PAIR, Section, Work, alone, home_of
from places import ROOT

from bot.compiler.diagnostics import failure, without_places
from bot.core.planned import SIDES
from bot.core.snapshot import Cell, Snapshot
from bot.core.snapshot_json import from_json
from bot.system.processes import Outcome

SMALL = (
    "tests/fixtures/binaries/dense.mlir",
    "tests/fixtures/e2e/models/embedding_norm.mlir",
)
FLAGS = (
    "--iree-opt-level=O0",
    "--iree-opt-level=O1",
    "--iree-opt-level=O2",
    "--iree-opt-level=O3",
    "--iree-opt-data-tiling",
    "--iree-dispatch-creation-data-tiling",
    "--iree-opt-aggressively-propagate-transposes",
    "--iree-opt-outer-dim-concat=false",
    "--iree-opt-const-eval=false",
    "--iree-opt-const-expr-hoisting=false",
    "--iree-opt-numeric-precision-reduction",
    "--iree-opt-strip-assertions",
    "--iree-opt-generalize-matmul",
    "--iree-dispatch-creation-enable-aggressive-fusion=false",
    "--iree-dispatch-creation-enable-fuse-horizontal-contractions",
    "--iree-dispatch-creation-fuse-multi-use=false",
    "--iree-dispatch-creation-enable-split-reduction",
    "--iree-dispatch-creation-element-wise-fuse-multi-reduction=false",
    "--iree-dispatch-creation-enable-early-trunc-fusion",
    "--iree-dispatch-creation-enable-aggressive-reshape-movement",
    "--iree-flow-inline-constants-max-byte-length=0",
    "--iree-flow-inline-constants-max-byte-length=64",
    "--iree-stream-partitioning-favor=debug",
    "--iree-stream-partitioning-favor=max-concurrency",
    "--iree-stream-partitioning-favor=min-peak-memory",
    "--iree-stream-emulate-memset",
    "--iree-stream-affinity-solver-max-iterations=1",
    "--iree-scheduling-optimize-bindings=false",
    "--iree-global-opt-enable-early-materialization=false",
    "--iree-util-zero-fill-elided-attrs",
    "--iree-hal-indirect-command-buffers=false",
    "--iree-hal-memoization=false",
    "--iree-hal-link-executables=false",
    "--iree-hal-substitute-executable-configuration=",
    "--iree-execution-model=async-internal",
    "--iree-execution-model=async-external",
    "--iree-vm-target-index-bits=64",
    "--iree-vm-target-extension-f64",
    "--iree-global-opt-propagate-transposes=false",
    "--iree-llvmcpu-use-fast-min-max-ops",
    "--iree-llvmcpu-enable-ukernels=all",
    "--iree-llvmcpu-loop-unrolling",
    "--iree-codegen-llvmgpu-use-vector-distribution=false",
    "--iree-global-opt-data-tiling",
)


@dataclass(frozen=True)
class Checked:
    """One printed command, run once more."""

    where: str
    # `equal`; `noise` (what the cell names as another outcome, or comes now and then);
    # `other`
    outcome: str
    said: str = ""


@dataclass(frozen=True)
class Side:
    """Reported cells, and how to run their commands."""

    name: str
    snapshot: Snapshot
    binary: Path
    home: Path  # the directory that the printed paths are relative to


def ran(cell: Cell, side: Side, target: Path) -> tuple[str, str]:
    """Return what a shell makes of the printed command.

    It is the artifact's digest, or the first diagnostics.
    """
    line = cell.command.replace("iree-compile -", f"{side.binary} -", 1)
    line = line.replace(f"-o {cell.key.model}.vmfb", f"-o {target}")
    done = subprocess.run(
        ["sh", "-c", line], cwd=side.home, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        target.unlink()
        return digest, ""
    outcome = Outcome(
        exit_code=done.returncode,
        signal=None,
        timed_out=False,
        output=without_places(done.stderr),
        cpu_ms=0,
        peak_rss_kib=None,
    )
    return "", failure(outcome, 0).message


def check(number: int, cell: Cell, side: Side, scratch: Path) -> Checked:
    """Compare the printed command with the cell.

    A command that gives something else is run a few times more.
    """
    where = f"{side.name} {cell.key}"
    expected = (
        cell.artifact_digest or "",
        "" if cell.measured or not cell.failure else cell.failure.message,
    )
    listed_digests = {outcome.artifact_digest or "" for outcome in cell.others}
    results = []
    for _ in range(6):
        results.append(ran(cell, side, scratch / f"{number}.vmfb"))
        if results[-1] == expected:
            return Checked(
                where,
                "equal" if len(results) == 1 else "noise",
                f"after {len(results)} runs",
            )
        if results[-1][0] in listed_digests:
            return Checked(where, "noise", "the build lists this result")
    return Checked(where, "other", f"reported {expected}, gave {results[-1]}")


def checked(work: Work, sides: Iterable[Side]) -> list[Checked]:
    """Check all cells of these sides, a compile per core."""
    cells = [
        (cell, side) for side in sides for cell in side.snapshot.cells if cell.command
    ]
    work.say(f"{len(cells)} printed commands")
    with (
        tempfile.TemporaryDirectory(prefix="evidence-") as name,
        ThreadPoolExecutor(work.jobs) as pool,
    ):
        return list(
            pool.map(
                lambda number: check(number, *cells[number], Path(name)),
                range(len(cells)),
            )
        )


def sides_of(work: Work) -> list[Side]:
    """Return the two releases of PAIR."""
    out = work.compared(
        work.folder("commands") / "out", "--base", PAIR[0], "--head", PAIR[1]
    )
    sides = []
    for name, release in zip(SIDES, PAIR, strict=True):
        snapshot = from_json((out / f"{name}.json").read_text(encoding="utf-8"))
        command = next(cell.command for cell in snapshot.cells if cell.command)
        sides.append(
            Side(
                name,
                snapshot,
                work.binary(release),
                home_of(command, work.config.parent),
            )
        )
    return sides


def variations(work: Work, home: Path) -> Iterator[Side]:
    """Yield small models under one further flag each, measured by the program.

    A flag that the release lacks is left out.
    """
    (home / "models").mkdir(parents=True, exist_ok=True)
    for name in SMALL:
        shutil.copy(ROOT / name, home / "models")
    binary = work.binary(PAIR[1])
    for number, flag in enumerate(FLAGS):
        config = home / f"{number}.yml"
        out = home / f"{number}.json"
        config.write_text(
            json.dumps(
                {
                    "schema": "code-size-config/1",
                    "models": ["models/*.mlir"],
                    "flags": [flag],
                }
            )
        )
        arguments = [
            "measure",
            "--compiler",
            str(binary),
            "--config",
            str(config),
            "--out",
            str(out),
        ]
        work.say(f"{number + 1} of {len(FLAGS)}: {flag}")
        if replace(work, selectors=work.targets).program(arguments, home).wait() == 0:
            yield Side(flag, from_json(out.read_text(encoding="utf-8")), binary, home)


def table(found: Sequence[Checked]) -> list[str]:
    """Return counts, and a line for each command that gave something else."""
    counts = Counter(command.outcome for command in found)
    lines = [
        f"{len(found)} commands: {counts['equal']} gave the reported result in the"
        " first run"
    ]
    lines[0] += (
        f", {counts['noise']} are non-deterministic (noise), {counts['other']} gave"
        " another result."
    )
    lines += [
        f"- {command.outcome}: `{command.where}` ({command.said[:300]})"
        for command in found
        if command.outcome != "equal"
    ]
    return lines


def sound(found: Iterable[Checked]) -> bool:
    """Return whether each command gave what was reported.

    Another result that the compiler sometimes gives is accepted.
    """
    return all(command.outcome != "other" for command in found)


def commands(work: Work) -> Section:
    """Return the section about the cells of two releases."""
    sides = sides_of(work)
    outcomes = checked(work, sides)
    heading = "## The printed command gives the reported build"
    about = f"IREE {PAIR[0]} and {PAIR[1]}, suite {work.suite}."
    return Section([heading, "", about, *table(outcomes)], sound(outcomes))


def flags(work: Work) -> Section:
    """Return the section about small models under further flags."""
    sides = list(variations(work, work.folder("flags")))
    outcomes = checked(work, sides)
    about = (
        f"{len(sides)} of {len(FLAGS)} flags, which {PAIR[1]} accepts, with two small"
        " models on all targets."
    )
    return Section(
        ["## The printed command under other flags", "", about, *table(outcomes)],
        sound(outcomes),
    )


if __name__ == "__main__":
    raise SystemExit(alone(commands, __doc__))
