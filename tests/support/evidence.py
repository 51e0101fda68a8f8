"""What docs/speed.md claims of sameness, shown on the real thing: `make evidence` (an hour) writes docs/evidence.md.

1. The same comparison from two empty caches, with one and with two jobs, in two folders, side by side.
2. The printed command of every cell of both sides, run by a shell as anyone would, against what was reported.
3. The same for small models under forty further flags, most of which no cell may share a front half under.
4. Every headline beside a judgement from IR and device code that shares nothing with the bot (`cause_evidence`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cause_evidence
from places import ROOT

from bot.compiler.diagnostics import failure
from bot.compiler.sharing.places import without_places
from bot.compiler.tools.toolchain import resolve
from bot.core.codec.snapshot_json import from_json
from bot.core.values.snapshot import Cell, Snapshot
from bot.system.defaults import cores, default_cache
from bot.system.processes import Cancel, Outcome

RELEASES = {"base": "3.11.0", "head": "3.13.0"}
TIMES = frozenset({"compile_cpu_ms", "compile_peak_rss_kib", "phases_ms"})
SMALL = ("tests/fixtures/binaries/dense.mlir", "tests/fixtures/e2e/models/embedding_norm.mlir")
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
    """One printed command, run once more.

    Attributes:
        outcome: `equal`; `noise` (what the cell names as another outcome, or comes now and then); `other`.
    """

    where: str
    outcome: str
    said: str = ""


def cli(arguments: Sequence[str], cwd: Path) -> subprocess.Popen[bytes]:
    """The program, as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "bot", *arguments], cwd=cwd, env=environment, stdout=subprocess.DEVNULL
    )


def without_times(value: Any) -> Any:
    """The JSON value without what differs from run to run by nature."""
    if isinstance(value, dict):
        return {name: without_times(found) for name, found in value.items() if name not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def differing(one: Path, other: Path) -> Iterator[str]:
    """Where two JSON files differ beside times, as paths into them."""
    left, right = (without_times(json.loads(path.read_bytes())) for path in (one, other))
    yield from _differing(left, right, one.name)


def _differing(one: Any, other: Any, path: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from _differing(one.get(name), other.get(name), f"{path}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _differing(*pair, f"{path}[{index}]")
    elif one != other:
        yield f"{path}: {str(one)[:80]} | {str(other)[:80]}"


@dataclass(frozen=True)
class Side:
    """Reported cells, and how to run their commands.

    Attributes:
        home: the directory that the printed paths are relative to.
    """

    name: str
    snapshot: Snapshot
    binary: Path
    home: Path


def ran(cell: Cell, side: Side, target: Path) -> tuple[str, str]:
    """What a shell makes of the printed command: the artifact's digest, or the first diagnostics."""
    line = cell.command.replace("iree-compile -", f"{side.binary} -", 1)
    line = line.replace(f"-o {cell.key.model}.vmfb", f"-o {target}")
    done = subprocess.run(["sh", "-c", line], cwd=side.home, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        target.unlink()
        return digest, ""
    outcome = Outcome(done.returncode, None, False, without_places(done.stderr), 0, None)
    return "", failure(outcome, 0).message


def check(number: int, cell: Cell, side: Side, scratch: Path) -> Checked:
    """The printed command against the cell; one that gives something else is asked a few times more."""
    where = f"{side.name} {cell.key}"
    wanted = (cell.artifact_digest or "", "" if cell.measured or not cell.failure else cell.failure.message)
    known = {other.artifact_digest or "" for other in cell.others}
    seen = []
    for _ in range(6):
        seen.append(ran(cell, side, scratch / f"{number}.vmfb"))
        if seen[-1] == wanted:
            return Checked(where, "equal" if len(seen) == 1 else "noise", f"after {len(seen)} runs")
        if seen[-1][0] in known:
            return Checked(where, "noise", "an outcome that the cell names")
    return Checked(where, "other", f"reported {wanted}, gave {seen[-1]}")


def checked(sides: Iterable[Side], scratch: Path) -> list[Checked]:
    """All cells of these sides, a compile per core."""
    asked = [(cell, side) for side in sides for cell in side.snapshot.cells if cell.command]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda number: check(number, *asked[number], scratch), range(len(asked))))


def same_comparison(scratch: Path) -> tuple[list[str], list[Path]]:
    """What differs between the two runs; their report directories."""
    runs, outs = [], []
    for jobs, folder in ((1, "one"), (2, "another/folder")):
        home = scratch / folder
        home.mkdir(parents=True)
        (home / "cache").mkdir()
        (home / "cache" / "toolchains").symlink_to(default_cache() / "toolchains")
        words = ["compare", "--quiet", "--config", str(ROOT / "configs/default.yml"), "--jobs", str(jobs)]
        words += ["--cache", str(home / "cache"), "--out", str(home / "out")]
        runs.append(cli(words, home))
        outs.append(home / "out")
    codes = [run.wait() for run in runs]
    found = [] if len(set(codes)) == 1 else [f"exit codes {codes}"]
    for name in ("base.json", "head.json", "report.json"):
        found += differing(outs[0] / name, outs[1] / name)
    return found, outs


def variations(binary: Path, scratch: Path) -> Iterator[Side]:
    """Small models under one further flag each, measured by the program; a flag that the release lacks is left out."""
    home = scratch / "small"
    (home / "models").mkdir(parents=True)
    for name in SMALL:
        shutil.copy(ROOT / name, home / "models")
    for number, flag in enumerate(FLAGS):
        config, out = home / f"{number}.yml", home / f"{number}.json"
        config.write_text(json.dumps({"schema": "code-size-config/1", "models": ["models/*.mlir"], "flags": [flag]}))
        words = ["measure", "--quiet", "--compiler", str(binary), "--config", str(config)]
        words += ["--cache", str(scratch / "cache"), "--out", str(out)]
        if cli(words, home).wait() == 0:
            yield Side(flag, from_json(out.read_text(encoding="utf-8")), binary, home)


def table(found: Sequence[Checked]) -> list[str]:
    """Counts, and a line for each command that gave something else."""
    counts = Counter(one.outcome for one in found)
    lines = [f"{len(found)} commands: {counts['equal']} gave what was reported at once"]
    lines[0] += f", {counts['noise']} now and then (noise), {counts['other']} something else."
    lines += [f"- {one.outcome}: `{one.where}` ({one.said[:300]})" for one in found if one.outcome != "equal"]
    return lines


def main() -> int:
    """Do all three, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "evidence.md")
    arguments = parser.parse_args()
    binaries = {side: resolve(release, default_cache(), Cancel(), print).binary for side, release in RELEASES.items()}
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        scratch = Path(name)
        differences, outs = same_comparison(scratch)
        sides = [
            Side(name, from_json((outs[1] / f"{name}.json").read_text(encoding="utf-8")), binary, ROOT)
            for name, binary in binaries.items()
        ]
        printed = checked(sides, scratch)
        varied = list(variations(binaries["head"], scratch))
        flagged = checked(varied, scratch)
        report = json.loads((outs[1] / "report.json").read_text(encoding="utf-8"))
        causes = cause_evidence.table(report, binaries["base"], binaries["head"], cores())
        shared = Counter(cell.donor is not None for side in sides for cell in side.snapshot.cells if cell.measured)
    page = [
        "# Evidence",
        "",
        f"IREE {RELEASES['base']} → {RELEASES['head']}, all models of the suite. Made by `make evidence`.",
        "",
        "## The same comparison gives the same report",
        "",
        "From two empty caches, with 1 and 2 jobs, in two folders, at the same time. Beside times and memory, "
        f"`base.json`, `head.json` and `report.json` differ in {len(differences) or 'nothing'}"
        + (" places:" if differences else "."),
        *(f"- `{line}`" for line in differences[:40]),
        "",
        "## The printed command gives the reported cell",
        "",
        f"{shared[True]} measured cells were resumed from a shared front half, {shared[False]} compiled directly.",
        *table(printed),
        "",
        "## Under further flags",
        "",
        f"{len(varied)} of {len(FLAGS)} flags that {RELEASES['head']} knows, two small models, all targets.",
        *table(flagged),
        "",
        "## The cause that is told is the cause of the change",
        "",
        *causes,
    ]
    arguments.out.parent.mkdir(exist_ok=True)
    arguments.out.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(page))
    return 1 if differences or any(one.outcome == "other" for one in (*printed, *flagged)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
