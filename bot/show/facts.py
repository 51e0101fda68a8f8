"""What every part of a view asks of a report, worked out once: cells by state, findings by cell, short names."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Protocol
from urllib.parse import quote

from bot.core import planned as selecting
from bot.core.delta import STATES, CellDelta, outcome
from bot.core.metrics import ARTIFACT_PARTS, Metric, metric_words
from bot.core.policy import Finding
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import Limits, Phrase, code, joined, name_cell, phrase
from bot.show.escape import clip
from bot.show.filters import plural

_LONGEST, _KEPT, _DIGITS = 160, 80, 16
EntryPoint = tuple[str, str]  # Names of executable and entry point


@lru_cache(maxsize=1 << 14)  # a model's name stands in the address of each of its dispatches
def segment(name: str) -> str:
    """The name as a part of an address; the end of a very long one is a digest."""
    text = quote(name, safe="", errors="surrogatepass")
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:_KEPT]}={digest[:_DIGITS]}"


def cell_address(key: CellKey) -> str:
    """Of a cell."""
    return f"{segment(key.model)}/{segment(key.target)}"


def dispatch_address(key: CellKey, executable: str) -> str:
    """Of the first entry point of an executable: nearly all have one alone."""
    return f"{cell_address(key)}/{segment(executable)}"


def component_address(key: CellKey, name: str) -> str:
    """Of a component of the model in a cell."""
    return f"{cell_address(key)}/component={segment(name)}"


def cause_address(number: int) -> str:
    """Of a root cause, by the number that the report gives it (from 1)."""
    return f"cause-{number}"


def entry_points(base: Cell | None, head: Cell | None) -> dict[EntryPoint, None]:
    """Those of both sides: head's in order, then what only base has."""
    found = ((one.executable, one.name) for cell in (head, base) if cell for one in cell.dispatches)
    return dict.fromkeys(found)


def dispatch_addresses(key: CellKey, points: Iterable[EntryPoint]) -> dict[EntryPoint, str]:
    """Entry point → its address: that of the executable, and after it the name of a second one in it."""
    seen: Counter[str] = Counter()
    made: dict[EntryPoint, str] = {}
    for executable, name in points:
        short = dispatch_address(key, executable)
        made[executable, name] = f"{short}/{segment(name)}" if seen[executable] else short
        seen[executable] += 1
    return made


STACK_LIMIT_BYTES = 32_768  # The compiler's default for `--iree-llvmcpu-stack-allocation-limit`

MARKS = {"fail": "❌", "warn": "⚠️", "accepted": "☑️", "known": "◽"}  # Marks of findings

_ENOUGH = 0.9

NAME_LIMIT = 64  # Longer names of models and targets lose their middle


class Naming(Protocol):
    """What cells are named by, with the attributes of Facts."""

    @property
    def short(self) -> Mapping[str, str]:
        """Target → the name for narrow columns."""

    @property
    def measured_targets(self) -> frozenset[str]:
        """Those of which `every target` is said."""

    @property
    def models(self) -> frozenset[str]:
        """Those of which `every model` is said."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A report, indexed."""

    report: Report
    states: Mapping[str, Sequence[CellDelta]]  # every state → its cells, in order of their keys
    findings: Mapping[CellKey, Sequence[Finding]]  # cell → its findings, worst first
    deltas: Mapping[CellKey, CellDelta]
    short: Mapping[str, str]  # target → the name for narrow columns; unique
    # measured_targets, models: those that have a cell which is more than unmeasured
    measured_targets: frozenset[str]
    models: frozenset[str]
    backends: Mapping[str, str]  # target → its backend
    # cell → bytes and number (from 1) of the root causes that have a part in it, the largest first
    causes: Mapping[CellKey, Sequence[tuple[int, int]]]

    def label(self, metric: Metric, key: CellKey) -> str:
        """What a metric is called in a cell."""
        return metric_words(metric, self.backends.get(key.target, ""))

    def mark(self, key: CellKey) -> str:
        """`fail`, `accepted`, `warn` or nothing: the worst finding of a cell, where accepted ones do not fail."""
        worst = self.worst(key)
        return mark_of(worst) if worst else ""

    def worst(self, key: CellKey) -> Finding | None:
        """The worst finding of a cell; those that base had are none of this change."""
        news = worst_first(one for one in self.findings.get(key, ()) if not one.known)
        return whole_of(news[0], news) if news else None

    def level(self, key: CellKey) -> str:
        """`fail`, `warn` or nothing: what the cell does to the verdict."""
        mark = self.mark(key)
        return "warn" if mark == "accepted" else mark

    def names(self, key: CellKey) -> tuple[Phrase, Phrase]:
        """Model and target of a cell in two columns of a table."""
        return name_cell(clip(key.model, NAME_LIMIT)), name_cell(self.short.get(key.target, key.target))

    def named(self, key: CellKey, to: str = "") -> Phrase:
        """A cell in running text, ``model` on `target``; `to`: where the model leads."""
        return phrase(code(clip(key.model, NAME_LIMIT), to), " on ", code(self.short[key.target]))

    @property
    def planned(self) -> int:
        """How many cells there are but for those that are left out on purpose."""
        return sum(not delta.excused for delta in self.report.deltas)

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
    cells = [delta.key for delta in report.deltas if delta.state != "unmeasured"]
    measured, models = frozenset(key.target for key in cells), frozenset(key.model for key in cells)
    deltas = {delta.key: delta for delta in report.deltas}
    causes: defaultdict[CellKey, list[tuple[int, int]]] = defaultdict(list)
    for number, root in enumerate(report.root_causes, 1):
        for key, size in root.by_cell.items():
            if size:
                causes[key].append((size, number))
    for sizes in causes.values():
        sizes.sort(key=lambda one: (-one[0], one[1]))
    short = short_names(targets, backends)
    return Facts(report, states, dict(findings), deltas, short, measured, models, backends, causes)


def leading(facts: Facts) -> int:
    """How many root causes, of the largest, hold nine tenths of all bytes that moved; all where nothing moved."""
    found = facts.report.root_causes
    sums = accumulate(root.share or 0 for root in found)
    return next((count for count, share in enumerate(sums, 1) if share >= _ENOUGH), len(found))


def shown_roots(facts: Facts, limits: Limits) -> int:
    """How many root causes have a line: those that hold nine tenths of the bytes, or as many as there is room for."""
    return min(limits.causes, len(facts.report.root_causes) if limits.every else leading(facts))


def builds(facts: Facts, count: int) -> str:
    """`2 of 32 builds`: cells among all that were planned."""
    return f"{count:,} of {plural(facts.planned, 'build')}"


def whole_of(finding: Finding, findings: Iterable[Finding]) -> Finding:
    """Of a part of an artifact the finding about all of it, where that is as bad; any other finding itself."""
    if finding.metric not in ARTIFACT_PARTS:
        return finding
    wholes = (one for one in findings if (one.key, one.metric) == (finding.key, "artifact_bytes"))
    return next((one for one in wholes if mark_of(one) == mark_of(finding)), finding)


def mark_of(finding: Finding) -> str:
    """`fail` or `warn`; `accepted` for a failing finding that was, `known` for one that base had."""
    if finding.known:
        return "known"
    return finding.level if finding.accepted is None else "accepted"


def worst_first(news: Iterable[Finding]) -> list[Finding]:
    """Failing findings, accepted ones, warnings; the order within each is kept."""
    return sorted(news, key=lambda finding: ("fail", "accepted", "warn").index(mark_of(finding)))


def short_names(targets: Iterable[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Target → its short name, as it is shown."""
    return {target: clip(short, NAME_LIMIT) for target, short in selecting.short_names(targets, backends).items()}


def broken_alike(delta: CellDelta) -> bool:
    """True where neither side compiles, and both end in the same way: not refused on one and crashed on the other."""
    return delta.state == "broken" and outcome(delta.base) == outcome(delta.head)


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


def cells_phrase(facts: Naming, keys: Sequence[CellKey], limit: int) -> Phrase:
    """Cells in words, with about `limit` names: `` `bert`, `vit` on `cuda`, `rocm`; `gpt2` on `cuda`; 7 more cells ``.

    Models with the same targets are taken together.
    """
    shapes: dict[tuple[str, ...], list[str]] = {}
    for model, targets in by_model(keys).items():
        shapes.setdefault(tuple(targets), []).append(model)
    parts, told, room = [], 0, limit
    for where, models in shapes.items():
        everywhere = len(models) > 1 and set(models) == facts.models
        shown = models if everywhere else models[: max(1, room)]
        # a model's name leads to the cell where there is one alone
        to = [cell_address(CellKey(model, where[0])) if len(where) == 1 else "" for model in shown]
        named = [(code(clip(model, NAME_LIMIT), at),) for model, at in zip(shown, to, strict=True)]
        who = phrase("every model") if everywhere else joined(named, ", ")
        parts.append(phrase(who, " on ", targets_phrase(facts, where[: max(1, limit)])))
        told, room = told + len(shown) * min(len(where), max(1, limit)), room - len(shown) - len(where) + 1
        if room <= 0:
            break
    rest = len(keys) - told
    return joined([*parts, *([phrase(plural(rest, "more build"))] if rest else [])], "; ")


def targets_phrase(facts: Naming, targets: Sequence[str]) -> Phrase:
    """Targets in words."""
    if len(targets) > 1 and set(targets) == facts.measured_targets:
        return phrase("every target")
    return joined([(code(facts.short[target]),) for target in targets], ", ")
