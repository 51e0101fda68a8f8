"""What every view asks of a report: cells by state, findings by cell, short names, cells in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.core import planned as selecting
from bot.core.delta import STATES, CellDelta, outcome
from bot.core.explanation import RootCause
from bot.core.metrics import ARTIFACT_PARTS, Metric, metric_words
from bot.core.policy import Finding
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.addresses import cell_address
from bot.show.blocks import (
    Limits,
    Listing,
    Phrase,
    code,
    first,
    joined,
    name_cell,
    phrase,
    strong,
)
from bot.show.escape import clip
from bot.show.filters import plural

STACK_LIMIT_BYTES = (
    32_768  # The compiler's default for `--iree-llvmcpu-stack-allocation-limit`
)
MARKS = {
    "fail": "❌",
    "warn": "⚠️",
    "accepted": "☑️",
    "known": "◽",
}  # Marks of findings
STATE_WORDS = {
    "same": "the same",
    "changed": "changed",
    "new": "new",
    "removed": "removed",
    "newly-broken": "newly failing",
    "fixed": "fixed",
    "broken": "already failing",
    "unmeasured": "not measured",
}
NAME_LIMIT = 64  # Longer names of models and targets lose their middle
VALUE_LIMIT = 300  # Characters of a note, or of another value that is not ours


class Naming(Protocol):
    """What cells are named by, with the attributes of Facts."""

    @property
    def short(self) -> Mapping[str, str]:
        """Target → the name for narrow columns."""

    @property
    def measured_targets(self) -> frozenset[str]:
        """The targets of which `every target` is said."""

    @property
    def models(self) -> frozenset[str]:
        """The models of which `every model` is said."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A report, indexed."""

    report: Report
    states: Mapping[
        str, Sequence[CellDelta]
    ]  # every state → its cells, in order of their keys
    findings: Mapping[CellKey, Sequence[Finding]]  # cell → its findings, worst first
    deltas: Mapping[CellKey, CellDelta]
    short: Mapping[str, str]  # target → the name for narrow columns; unique
    # measured_targets, models: those that have a cell which is more than unmeasured
    measured_targets: frozenset[str]
    models: frozenset[str]
    backends: Mapping[str, str]  # target → its backend
    # the root causes that are explained, in the order of their numbers (from 1): those
    # that hold most of a failing build come first
    roots: Sequence[RootCause]
    unexplained: Sequence[
        RootCause
    ]  # the others, such as code whose passes were not traced
    # cell → bytes and number of the root causes that have a part in it, the largest
    # first; 0 is the number of all that is not explained
    causes: Mapping[CellKey, Sequence[tuple[int, int]]]
    state_words: Mapping[
        str, str
    ]  # state → its words, which are true of a first report, too

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
        return name_cell(clip(key.model, NAME_LIMIT)), name_cell(
            self.short.get(key.target, key.target)
        )

    def named(self, key: CellKey, to: str = "") -> Phrase:
        """A cell in running text, ``model` on `target``; `to`: where the model leads."""
        return phrase(
            code(clip(key.model, NAME_LIMIT), to), " on ", code(self.short[key.target])
        )

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
    measured, models = (
        frozenset(key.target for key in cells),
        frozenset(key.model for key in cells),
    )
    deltas = {delta.key: delta for delta in report.deltas}
    roots = _numbered_roots(report)
    unexplained = [root for root in report.root_causes if not is_explained(root)]
    short = short_names(targets, backends)
    words = STATE_WORDS | ({"newly-broken": "failing"} if report.adoption else {})
    return Facts(
        report=report,
        states=states,
        findings=dict(findings),
        deltas=deltas,
        short=short,
        measured_targets=measured,
        models=models,
        backends=backends,
        roots=roots,
        unexplained=unexplained,
        causes=_causes_of_cells(roots, unexplained),
        state_words=words,
    )


def is_explained(root: RootCause) -> bool:
    """Return whether a root cause says what changed, and not only that the code is different."""
    if root.cause is None:
        return False
    return root.cause != "codegen" or root.passed is not None or bool(root.parts)


def _numbered_roots(report: Report) -> list[RootCause]:
    """Return the explained root causes: first those that hold most of a failing build, then the largest."""
    explained = [root for root in report.root_causes if is_explained(root)]
    failing = {
        finding.key for finding in report.verdict.news if mark_of(finding) == "fail"
    }
    failing_bytes = dict.fromkeys(range(len(explained)), 0)
    for key in failing:
        sizes = [root.by_cell.get(key, 0) for root in explained]
        if any(sizes):
            failing_bytes[sizes.index(max(sizes))] += max(sizes)
    order = sorted(failing_bytes, key=lambda place: (-failing_bytes[place], place))
    return [explained[place] for place in order]


def _causes_of_cells(
    roots: Sequence[RootCause], unexplained: Sequence[RootCause]
) -> dict[CellKey, list[tuple[int, int]]]:
    """Return, by cell, bytes and number of the causes in it, the largest first.

    0 stands for all unexplained ones.
    """
    causes: defaultdict[CellKey, list[tuple[int, int]]] = defaultdict(list)
    for number, root in enumerate(roots, 1):
        for key, size in root.by_cell.items():
            if size:
                causes[key].append((size, number))
    rest: Counter[CellKey] = Counter()
    for root in unexplained:
        rest.update(root.by_cell)
    for key, size in rest.items():
        if size:
            causes[key].append((size, 0))
    for sizes in causes.values():
        sizes.sort(
            key=lambda size_and_number: (-size_and_number[0], size_and_number[1])
        )
    return dict(causes)


def builds(facts: Facts, count: int) -> str:
    """`2 of 32 builds`: cells among all that were planned."""
    return f"{count:,} of {plural(facts.planned, 'build')}"


def whole_of(finding: Finding, findings: Iterable[Finding]) -> Finding:
    """The finding about the whole artifact for one about a part, where that is as bad.

    Any other finding itself.
    """
    if finding.metric not in ARTIFACT_PARTS:
        return finding
    wholes = (
        one
        for one in findings
        if (one.key, one.metric) == (finding.key, "artifact_bytes")
    )
    return next((one for one in wholes if mark_of(one) == mark_of(finding)), finding)


def mark_of(finding: Finding) -> str:
    """`fail` or `warn`.

    `accepted` for a failing finding that was, `known` for one that base had.
    """
    if finding.known:
        return "known"
    return finding.level if finding.accepted is None else "accepted"


def worst_first(news: Iterable[Finding]) -> list[Finding]:
    """Failing findings, accepted ones, warnings; the order within each is kept."""
    return sorted(
        news, key=lambda finding: ("fail", "accepted", "warn").index(mark_of(finding))
    )


def short_names(targets: Iterable[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Target → its short name, as it is shown."""
    return {
        target: clip(short, NAME_LIMIT)
        for target, short in selecting.short_names(targets, backends).items()
    }


def broken_alike(delta: CellDelta) -> bool:
    """True where neither side compiles, and both end in the same way: not refused on one and crashed on the other."""
    return delta.state == "broken" and outcome(delta.base) == outcome(delta.head)


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
    """Cells in words, with about `limit` names: `` `bert`, `vit` on `cuda`, `rocm`.

    `gpt2` on `cuda`; 7 more cells ``.

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
        to = [
            cell_address(CellKey(model, where[0])) if len(where) == 1 else ""
            for model in shown
        ]
        named = [
            (code(clip(model, NAME_LIMIT), at),)
            for model, at in zip(shown, to, strict=True)
        ]
        who = phrase("every model") if everywhere else joined(named, ", ")
        parts.append(phrase(who, " on ", targets_phrase(facts, where[: max(1, limit)])))
        told, room = (
            told + len(shown) * min(len(where), max(1, limit)),
            room - len(shown) - len(where) + 1,
        )
        if room <= 0:
            break
    rest = len(keys) - told
    return joined(
        [*parts, *([phrase(plural(rest, "more build"))] if rest else [])], "; "
    )


def targets_phrase(facts: Naming, targets: Sequence[str]) -> Phrase:
    """Targets in words."""
    if len(targets) > 1 and set(targets) == facts.measured_targets:
        return phrase("every target")
    return joined([(code(facts.short[target]),) for target in targets], ", ")


def counted(title: str, count: int, facts: Facts) -> Phrase:
    """**Over the limit** (4 of 32 builds)."""
    if title == STATE_WORDS["newly-broken"].capitalize():
        title = facts.state_words["newly-broken"].capitalize()
    return phrase(strong(title), f" ({builds(facts, count)})")


def is_lost(delta: CellDelta, finding: Finding) -> bool:
    """True of a finding that warns of a build which was not measured: the first sentence counts these."""
    return (
        delta.state == "unmeasured"
        and finding.metric is None
        and finding.level == "warn"
    )


def notes(report: Report, limits: Limits) -> Listing[str]:
    """What broke or was left out while the report was made, and what each side says of itself."""
    every = [*report.notes]
    for name, side in (("base", report.base), ("head", report.head)):
        every += [f"{name}: {note}" for note in side.notes]
    return first([clip(note, VALUE_LIMIT) for note in every], limits.failures, "note")
