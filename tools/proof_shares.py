"""Measure how much of the changed code has a ladder, and what experiments say of its causes.

`python -m proof_shares --suite quick` compares each release step, the whole span and ten flags
with the default budget. It prints the section of docs/evidence.md. Each comparison runs through
`proof_meter`, which counts the CPU time of experiments. `--work` keeps finished comparisons.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from evidence_page import table
from evidence_work import ANSWERED, CACHE_LIMIT, PAIR, Section, Work, alone
from places import ROOT

from bot.config.configuration import load_config
from bot.core.explanation import DispatchDelta, moved_bytes
from bot.core.ladder import CONFIGURATION, MLIR
from bot.core.proof import NOT_TRIED, PROVED, REFUTED, STATUSES
from bot.core.report import Baseline, Report
from bot.core.snapshot import CellKey
from bot.explain import root_causes as clustering
from bot.explain.carrying import claim_of
from bot.study.comparison import reported
from bot.study.snapshot_files import load_snapshot

FLAGS = (
    "--iree-opt-level=O3",
    "--iree-opt-data-tiling",
    "--iree-dispatch-creation-enable-aggressive-fusion=false",
    "--iree-llvmcpu-reassociate-fp-reductions",
    "--iree-llvmcpu-slp-vectorization",
    "--iree-opt-const-expr-hoisting=false",
    "--iree-llvmcpu-disable-vector-peeling",
    "--iree-codegen-llvmgpu-use-vector-distribution=false",
    "--iree-dispatch-creation-fuse-multi-use=false",
    "--iree-llvmcpu-number-of-threads=4",
)
FORMED = ("input", "fusion", "dedup-lost", "dedup-won")
"""Causes of dispatches that passes before code generation made others."""
LADDERS = ("laddering", "ladder", "proving")
TRACES = ("tracing", "trace")
PROGRAMS = ("program_experiments", "proving_program", "program_side")
DEFAULTS = ("changed_defaults", "proving_defaults", "trying_flags")
KINDS = ("ladders", "traces", "programs", "defaults")
BYTE_HEAD = (
    "comparison",
    "changed B",
    "formed otherwise",
    "of these proved",
    "own ladder",
    "cause has a ladder",
    *STATUSES,
    "refuted setting, B",
    "in configuration and MLIR, B",
    "proved",
    "proved or traced",
)
COST_HEAD = (
    "comparison",
    "compiles s",
    "ladders and proofs s",
    "traces s",
    "programs s",
    "defaults s",
    "ladders and proofs",
    "all experiments",
)
ABOUT = """
The columns show:

- *changed B*: the sum of the absolute changes of all dispatches. All shares are shares of such bytes.
- *formed otherwise*: bytes of dispatches that earlier passes formed in another way, or that only one
  side has. *of these proved*: an experiment on the program proves the pass.
- *own ladder*: bytes of dispatches with a complete ladder of their own. *cause has a ladder*: bytes of
  all dispatches of a root cause, if at least one of them has a complete ladder. Both are shares of the
  bytes of dispatches that both sides have.
- *proved*, *partly*, *refuted*, *not-tried*: bytes by the experiment behind the named cause of this
  dispatch itself. A dispatch counts as not tried even if another dispatch of its root cause was tried.
- *refuted setting*: bytes of dispatches with a different configuration that does not make the change.
- *in configuration and MLIR*: the sum of these parts in complete ladders. *proved*: the share with
  a proved setting. *proved or traced*: the same, and the bytes for which a trace names a pass."""
LADDERS_ABOUT = "By target, the share with an own ladder, and with a ladder of the root cause (both as above):"
COST_ABOUT = (
    "CPU seconds of both sides' compiles, and of the experiments. The last two columns are shares of"
    " the compiles:"
)


@dataclass(frozen=True)
class Compared:
    """One finished comparison: its name and the directory of its files."""

    name: str
    out: Path

    def report(self) -> Report:
        """Return the report of the two written snapshots."""
        base = load_snapshot(self.out / "base.json")
        head = load_snapshot(self.out / "head.json")
        return reported(load_config(None), base, head, Baseline("", ""))

    def experiment_ms(self) -> dict[str, int]:
        """Return kind of experiment → CPU time of its child processes."""
        text = (self.out / "cpu.json").read_text(encoding="utf-8")
        used_ms: Mapping[str, int] = json.loads(text)
        sums = Counter[str]()
        for files, spent_ms in used_ms.items():
            sums[kind_of(files.split())] += spent_ms
        return dict(sums)


def kind_of(files: Sequence[str]) -> str:
    """Return the kind of work that started a process; empty for a compile.

    Experiments on programs and on defaults may run inside of a trace; else the outermost file counts.
    """
    if any(name in PROGRAMS for name in files):
        return "programs"
    if any(name in DEFAULTS for name in files):
        return "defaults"
    for name in files:
        if name in LADDERS:
            return "ladders"
        if name in TRACES:
            return "traces"
    return ""


@dataclass
class Shares:
    """The bytes of one target; every amount is a sum of absolute changes.

    Attributes:
        moved: of all dispatches.
        formed: of dispatches that earlier passes made others, or that one side alone has.
        paired: of dispatches that both sides have, so that they can have a ladder.
        formed_proved: of those that are formed otherwise, bytes with a pass that an experiment on the program proves.
        own_ladder: of paired dispatches with a complete ladder of their own.
        cause_ladder: of paired dispatches whose root cause has a member with a complete ladder.
        by_status: status of the experiment behind the named cause → bytes.
        refuted_settings: of dispatches whose different configuration is refuted.
        in_phases: configuration or MLIR → the bytes that ladders found there.
        named: configuration or MLIR → those with a proved setting or pass.
        traced: bytes in MLIR for which a trace names a pass that no experiment proves.
        compile_ms: CPU time of both sides' compiles.
    """

    moved: int = 0
    formed: int = 0
    paired: int = 0
    formed_proved: int = 0
    own_ladder: int = 0
    cause_ladder: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    refuted_settings: int = 0
    in_phases: Counter[str] = field(default_factory=Counter)
    named: Counter[str] = field(default_factory=Counter)
    traced: int = 0
    compile_ms: int = 0

    def add(self, more: Shares) -> None:
        """Add the bytes of another target."""
        self.moved += more.moved
        self.formed += more.formed
        self.paired += more.paired
        self.formed_proved += more.formed_proved
        self.own_ladder += more.own_ladder
        self.cause_ladder += more.cause_ladder
        self.by_status.update(more.by_status)
        self.refuted_settings += more.refuted_settings
        self.in_phases.update(more.in_phases)
        self.named.update(more.named)
        self.traced += more.traced
        self.compile_ms += more.compile_ms


def clustered(report: Report) -> list[list[tuple[CellKey, DispatchDelta]]]:
    """Return the dispatches of each root cause, as the report clusters them."""
    clusters: list[list[tuple[CellKey, DispatchDelta]]] = []
    make_cause = clustering._root_cause

    def listed(cause: str, what: Any, members: Sequence[Any], **others: Any) -> Any:
        clusters.append(
            [
                (member.key, member.delta)
                for member in members
                if isinstance(member.delta, DispatchDelta)
            ]
        )
        return make_cause(cause, what, members, **others)

    with patch.object(clustering, "_root_cause", listed):
        clustering.root_causes_between(
            report.base,
            head=report.head,
            deltas=report.deltas,
            explanations=report.explanations,
        )
    return clusters


def has_ladder(delta: DispatchDelta) -> bool:
    """Return whether a dispatch has a ladder without an unknown part."""
    return delta.attribution is not None and None not in delta.attribution.values()


def shares_of(report: Report) -> dict[str, Shares]:
    """Return target → the bytes of its dispatches by what experiments say of them."""
    targets: dict[str, Shares] = {}
    for side in (report.base, report.head):
        for cell in side.cells:
            shares = targets.setdefault(cell.key.target, Shares())
            shares.compile_ms += cell.value("compile_cpu_ms") or 0
    for members in clustered(report):
        is_covered = any(has_ladder(delta) for _, delta in members)
        for key, delta in members:
            count_member(targets[key.target], delta, is_covered=is_covered)
    return dict(sorted(targets.items()))


def count_member(shares: Shares, delta: DispatchDelta, *, is_covered: bool) -> None:
    """Add one dispatch to the bytes of its target."""
    size = abs(moved_bytes(delta) or 0)
    shares.moved += size
    is_alone = delta.base is None or delta.head is None
    if is_alone or delta.cause in FORMED:
        shares.formed += size
        experiment = delta.passed.experiment if delta.passed is not None else ""
        if experiment == PROVED:
            shares.formed_proved += size
        shares.by_status[experiment or NOT_TRIED] += size
    else:
        shares.by_status[claim_of(delta).status] += size
    if not is_alone:
        shares.paired += size
    if is_covered and not is_alone:
        shares.cause_ladder += size
    is_refuted = delta.proof is not None and delta.proof.status == REFUTED
    if is_refuted:
        shares.refuted_settings += size
    if not has_ladder(delta) or delta.attribution is None:
        return
    shares.own_ladder += size
    for phase in (CONFIGURATION, MLIR):
        shares.in_phases[phase] += abs(delta.attribution.get(phase) or 0)
    if delta.proof is not None and delta.proof.status == PROVED:
        shares.named[CONFIGURATION] += abs(delta.attribution.get(CONFIGURATION) or 0)
    if delta.passed is not None and not delta.passed.experiment:
        shares.traced += abs(delta.attribution.get(MLIR) or 0)


def percent(part: int, whole: int) -> str:
    """Return `97 %`; `n/a` without anything to be a part of."""
    if not whole:
        return "n/a"
    return f"{100 * part / whole:.0f} %"


def byte_row(name: str, total: Shares) -> list[str]:
    """Return the row of one comparison in the table of bytes."""
    in_both = total.in_phases[CONFIGURATION] + total.in_phases[MLIR]
    named = total.named[CONFIGURATION] + total.named[MLIR]
    row = [name, f"{total.moved:,}", percent(total.formed, total.moved)]
    row.append(percent(total.formed_proved, total.formed))
    row.append(percent(total.own_ladder, total.paired))
    row.append(percent(total.cause_ladder, total.paired))
    row += [percent(total.by_status[status], total.moved) for status in STATUSES]
    row.append(f"{total.refuted_settings:,}")
    row.append(f"{in_both:,}")
    row.append(percent(named, in_both))
    row.append(percent(named + total.traced, in_both))
    return row


def phase_row(
    name: str, targets: Mapping[str, Shares], columns: Sequence[str]
) -> list[str]:
    """Return the row of one comparison in the table of ladders by target."""
    row = [name]
    for target in columns:
        shares = targets.get(target, Shares())
        if not shares.paired:
            row.append("–")
            continue
        same_ladder = percent(shares.own_ladder, shares.paired)
        row.append(f"{same_ladder} · {percent(shares.cause_ladder, shares.paired)}")
    return row


def cost_row(name: str, total: Shares, spent_ms: Mapping[str, int]) -> list[str]:
    """Return the row of one comparison in the table of CPU time."""
    ladders_ms = spent_ms.get("ladders", 0)
    experiments_ms = sum(spent_ms.get(kind, 0) for kind in KINDS)
    row = [name, f"{total.compile_ms / 1000:,.0f}"]
    row += [f"{spent_ms.get(kind, 0) / 1000:,.0f}" for kind in KINDS]
    row.append(percent(ladders_ms, total.compile_ms))
    row.append(percent(experiments_ms, total.compile_ms))
    return row


def compared(
    work: Work, name: str, base: str, head: str, *words: str
) -> Compared | None:
    """Return a comparison; None if it has no verdict.

    A comparison that an interrupted run finished is not made again.
    """
    out = work.folder("proofs", name)
    if not (out / "cpu.json").is_file():
        meter = Path(__file__).with_name("proof_meter.py")
        command = [
            sys.executable,
            str(meter),
            str(out / "cpu.json"),
            "compare",
            "--quiet",
        ]
        command += ["--base", base, "--head", head, *words, *work.selectors]
        command += ["--config", str(work.config), "--jobs", str(work.jobs)]
        command += ["--cache", str(work.cache), "--cache-limit", CACHE_LIMIT]
        command += ["--out", str(out)]
        folders = [str(ROOT), str(ROOT / "tests" / "support"), str(ROOT / "tools")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.DEVNULL, check=False
        )
        if done.returncode not in ANSWERED:
            work.say(f"{name} was not compared: exit code {done.returncode}")
            return None
    title = f"{base} → {head}"
    if words:
        title = f"`{words[0].partition('=')[2]}`"
    return Compared(title, out)


def comparisons(work: Work) -> Iterator[Compared]:
    """Compare the steps between neighbours, the whole span, and each flag."""
    steps = list(pairwise(work.releases))
    span = (work.releases[0], work.releases[-1])
    for base, head in dict.fromkeys([*steps, span]):
        comparison = compared(work, f"step-{base}-{head}", base, head)
        if comparison is not None:
            yield comparison
    for number, flag in enumerate(FLAGS, start=1):
        comparison = compared(
            work, f"flag-{number}", PAIR[1], PAIR[1], f"--flags={flag}"
        )
        if comparison is not None:
            yield comparison


def whole(targets: Mapping[str, Shares]) -> Shares:
    """Return all targets together."""
    total = Shares()
    for shares in targets.values():
        total.add(shares)
    return total


def lines(found: Sequence[Compared]) -> Iterator[str]:
    """Return the three tables."""
    by_name = {compared.name: shares_of(compared.report()) for compared in found}
    totals = {name: whole(targets) for name, targets in by_name.items()}
    changed = set[str]()
    for targets in by_name.values():
        changed |= {target for target, shares in targets.items() if shares.moved}
    columns = sorted(changed)
    yield from table(
        BYTE_HEAD, [byte_row(name, total) for name, total in totals.items()]
    )
    yield from ("", LADDERS_ABOUT, "")
    head = ["comparison", *(name.removeprefix("llvm-cpu-") for name in columns)]
    rows = [phase_row(name, targets, columns) for name, targets in by_name.items()]
    yield from table(head, rows)
    yield from ("", COST_ABOUT, "")
    costs = []
    for compared in found:
        costs.append(
            cost_row(compared.name, totals[compared.name], compared.experiment_ms())
        )
    yield from table(COST_HEAD, costs)


def proofs(work: Work) -> Section:
    """Return the section of the page."""
    all_comparisons = list(comparisons(work))
    chosen = ", ".join(word.partition("=")[2] for word in work.selectors)
    suite = f"Suite {work.suite} ({chosen})" if chosen else f"Suite {work.suite}"
    about = f"{suite}, default budget. Flags: IREE {PAIR[1]}, head has the flag."
    title = "## How much of the change experiments explain"
    return Section([title, "", about, ABOUT, "", *lines(all_comparisons)])


if __name__ == "__main__":
    raise SystemExit(alone(proofs, __doc__))
