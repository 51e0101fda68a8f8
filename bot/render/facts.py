"""What every part of a view asks of a report, worked out once: cells by state, findings by cell, short names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.core.delta import STATES, CellDelta
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.core.verdict import Finding
from bot.render.escape import clip
from bot.render.phrase import Phrase, code, joined, phrase

STACK_LIMIT_BYTES = 32_768
"""The compiler's default for `--iree-llvmcpu-stack-allocation-limit`."""

NAME_LIMIT = 64
"""Longer names of models and targets lose their middle."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A report, indexed.

    Attributes:
        states: every state → its cells, in order of their keys.
        findings: cell → its findings, worst first.
        short: target → the name for narrow columns; unique.
    """

    report: Report
    states: Mapping[str, Sequence[CellDelta]]
    findings: Mapping[CellKey, Sequence[Finding]]
    deltas: Mapping[CellKey, CellDelta]
    short: Mapping[str, str]

    def level(self, key: CellKey) -> str:
        """`fail`, `warn` or nothing: the worst finding of a cell."""
        return self.findings[key][0].level if key in self.findings else ""

    def count(self, *states: str) -> int:
        """How many cells are in these states."""
        return sum(len(self.states[state]) for state in states)


def build_facts(report: Report) -> Facts:
    """Index a report."""
    states: dict[str, list[CellDelta]] = {state: [] for state in STATES}
    findings: defaultdict[CellKey, list[Finding]] = defaultdict(list)
    for delta in report.deltas:
        states[delta.state].append(delta)
    for finding in report.verdict.findings:
        findings[finding.key].append(finding)
    targets = {delta.key.target for delta in report.deltas}
    backends = {**report.base.targets, **report.head.targets}
    return Facts(report, states, dict(findings), {d.key: d for d in report.deltas}, short_names(targets, backends))


def _shorter(target: str, backend: str) -> str:
    rest = target[len(backend) :].lstrip("-_") if backend and target.startswith(backend) else ""
    return rest or target.removesuffix("-spirv")


def short_names(targets: Iterable[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Target → its name without the backend it shares with others, where that leaves the names different."""
    full = sorted(targets)
    short = {target: _shorter(target, backends.get(target, "")) for target in full}
    names = [*short.values(), *full]
    return {t: clip(s if s == t or names.count(s) == 1 else t, NAME_LIMIT) for t, s in short.items()}


def figure_bytes(cell: Cell | None) -> int | None:
    """What the compiler said that a function of the cell needs on the stack; None where it did not."""
    if cell is None or cell.status != "over-stack-limit":
        return None
    said = cell.failure.figure_bytes if cell.failure else None
    return said if said is not None else cell.value("stack_alloca_bytes")


def is_over(cell: Cell | None) -> bool:
    """True where the compiler's stack gate refuses the cell."""
    return cell is not None and cell.status == "over-stack-limit"


def by_model(keys: Iterable[CellKey]) -> dict[str, list[str]]:
    """Model → targets, in order."""
    models: dict[str, list[str]] = {}
    for key in keys:
        models.setdefault(key.model, []).append(key.target)
    return models


def cells_phrase(facts: Facts, keys: Sequence[CellKey], limit: int) -> Phrase:
    """Cells in words, at most `limit` of them: `` `bert` on `cuda`, `rocm`; `vit` on `cuda` and 7 more ``."""
    shown = by_model(keys[:limit])
    parts = [_targets_phrase(facts, model, targets) for model, targets in shown.items()]
    rest = len(keys) - min(limit, len(keys))
    return phrase(joined(parts, "; "), f" and {rest:,} more" if rest else "")


def _targets_phrase(facts: Facts, model: str, targets: Sequence[str]) -> Phrase:
    names = joined([(code(facts.short[target]),) for target in targets], ", ")
    return phrase(code(clip(model, NAME_LIMIT)), " on ", names)
