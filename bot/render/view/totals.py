"""The totals: what all models' artifacts are on each target, over the cells that both sides measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.core.delta import CellDelta, MetricDelta
from bot.core.metrics import METRIC_BY_ID
from bot.core.policy import Finding
from bot.core.spread import Value, certain, difference, total
from bot.render.text.escape import clean, clip
from bot.render.text.filters import relative, signed
from bot.render.text.phrase import Phrase, code, phrase
from bot.render.view.facts import MARKS, Facts, broken_alike, mark_of, whole_of, worst_first

_NAME = 40


@dataclass(frozen=True, slots=True)
class Total:
    """Artifacts added up.

    Attributes:
        target: the short name; empty for all targets.
        cells: how many were measured on both sides; the sums are over these.
        base, head: sums in bytes; None where there is no such cell.
        larger, smaller: how many of them grew and shrank.
        unsure: of how many that is open, as the compiler does not repeat itself.
        worst: the worst finding's cell; without one the one that grew, or else shrank, by most bytes.
        level: of that finding: `fail`, `warn` or empty.
    """

    target: str
    cells: int
    base: Value
    head: Value
    larger: int
    smaller: int
    unsure: int = 0
    worst: Phrase = ()
    level: str = ""

    @property
    def moved(self) -> int:
        """The part of the change that is sure, in bytes; 0 where even its sign is open."""
        return certain(difference(self.base, self.head)) or 0

    @property
    def ways(self) -> str:
        """`3 / 1`, `3 / 1, 1 open`: how many are larger and smaller; `–` for none."""
        ways = f"{self.larger:,} / {self.smaller:,}" if self.larger or self.smaller else ""
        return ", ".join(filter(None, (ways, f"{self.unsure:,} open" if self.unsure else ""))) or "–"


@dataclass(frozen=True, slots=True)
class Totals:
    """All targets.

    Attributes:
        rows: each target that something changed on; then all, where there are several. Empty where nothing changed, or
            no cell was measured on both sides.
        still: the short names of the other ones.
        everything: the sum over all targets.
    """

    rows: tuple[Total, ...]
    still: tuple[str, ...]
    everything: Total


def totals(facts: Facts) -> Totals:
    """Those of each measured target."""
    found: dict[str, list[CellDelta]] = {target: [] for target in sorted(facts.measured_targets)}
    for delta in facts.report.deltas:
        if delta.key.target in found:
            found[delta.key.target].append(delta)
    news = worst_first(facts.report.verdict.news)
    worst: dict[str, Finding] = {}
    for finding in news:
        if finding.key.target not in worst:
            worst[finding.key.target] = whole_of(finding, news)
    moved = {target: deltas for target, deltas in found.items() if target in worst or not _is_still(deltas)}
    rows = tuple(_total(facts, target, deltas, worst.get(target)) for target, deltas in moved.items())
    still = tuple(facts.short[target] for target in found if target not in moved)
    every = everything(facts)
    if not every.cells:
        rows = ()
    return Totals((*rows, every) if rows and len(found) > 1 else rows, still, every)


def _is_still(deltas: Sequence[CellDelta]) -> bool:
    return all(delta.state == "same" or delta.excused or broken_alike(delta) for delta in deltas)


def everything(facts: Facts) -> Total:
    """The sum over all targets."""
    return _sum("", [delta for delta in facts.report.deltas if delta.key.target in facts.measured_targets])


def _total(facts: Facts, target: str, deltas: Sequence[CellDelta], worst: Finding | None) -> Total:
    said = _worst(facts, worst) if worst else _largest(deltas)
    level = worst.weight if worst and worst.weight != "pass" else ""
    return replace(_sum(facts.short[target], deltas), worst=said, level=level)


def _sum(target: str, deltas: Sequence[CellDelta]) -> Total:
    """What has the same artifact on both sides among those that were seen adds that: it moves no sum."""
    sizes = [(delta.metrics["artifact_bytes"], delta.state == "same") for delta in deltas]
    both = [(one, one.base, one.head) if same else (one, *one.sides) for one, same in sizes]
    known = [(one, base, head) for one, base, head in both if base is not None and head is not None]
    larger, smaller = (sum((one.change or 0) * sign > 0 for one, _, _ in known) for sign in (1, -1))
    sums = total(base for _, base, _ in known), total(head for _, _, head in known)
    return Total(target, len(known), *sums, larger, smaller, sum(one.is_open for one, _, _ in known))


def _worst(facts: Facts, finding: Finding) -> Phrase:
    """``❌ +66.5 % `m` ``; where it is not the artifact, of what."""
    mark = "💥" if finding.limit == "newly-broken" and not finding.accepted else MARKS[mark_of(finding)]
    if finding.metric is None:
        what = clean(finding.limit).replace("-", " ")
    else:
        label = (
            "" if finding.metric == "artifact_bytes" else f"{facts.label(METRIC_BY_ID[finding.metric], finding.key)} "
        )
        what = f"{label}{_step(finding)}"
    return phrase(f"{mark} {what} ", code(clip(finding.key.model, _NAME)))


def _step(finding: Finding) -> str:
    """In percent; where there is none to tell, the change, or what the value is."""
    unit = METRIC_BY_ID[finding.metric or ""].unit
    base, head = finding.sides
    if head is None:
        return "not known any more"
    if base is None or base == head:
        return "over its limit"
    return relative(base, head) if base else signed(difference(base, head), unit)


def _largest(deltas: Sequence[CellDelta]) -> Phrase:
    sizes = [(delta, delta.metrics["artifact_bytes"]) for delta in deltas]
    steps = [(artifact.change, delta, artifact) for delta, artifact in sizes if artifact.change]
    if not steps:
        return phrase("–")
    grown = [step for step in steps if step[0] > 0]
    _, delta, artifact = max(grown or steps, key=lambda step: (abs(step[0]), step[1].key))
    return phrase("" if grown else "best: ", f"{_ratio(artifact)} ", code(clip(delta.key.model, _NAME)))


def _ratio(artifact: MetricDelta) -> str:
    return relative(*artifact.sides) if artifact.ratio is not None else signed(artifact.change)
