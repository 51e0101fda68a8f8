"""The first sentence: a verdict that can be trusted without reading on, and which way the code went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bot.core.delta import CellDelta, value_of
from bot.core.policy import Finding
from bot.core.record import Value, certain, difference, total
from bot.core.record import total as summed
from bot.core.snapshot import CellKey
from bot.show.alarms import matters
from bot.show.blocks import Phrase, code, joined, phrase, strong
from bot.show.escape import clean, clip
from bot.show.facts import MARKS, NAME_LIMIT, Facts, broken_alike, builds, mark_of, whole_of, worst_first
from bot.show.filters import amount, change, plural, relative, sides


@dataclass(frozen=True, slots=True)
class Total:
    """Artifacts added up."""

    target: str  # the short name; empty for all targets
    cells: int  # how many were measured on both sides; the sums are over these
    # base, head: sums in bytes; None where there is no such cell
    base: Value
    head: Value
    # larger, smaller: how many of them grew and shrank
    larger: int
    smaller: int
    unsure: int = 0  # of how many that is open, as the compiler does not repeat itself
    planned: int = 0  # how many there are, but for those that are left out on purpose
    broken: int = 0  # how many of them are newly broken
    # mark, level: of the worst finding there: its symbol, and `fail`, `warn` or empty
    mark: str = ""
    level: str = ""

    @property
    def moved(self) -> int:
        """The part of the change that is sure, in bytes; 0 where even its sign is open."""
        return certain(difference(self.base, self.head)) or 0

    @property
    def change(self) -> str:
        """`+41.3 %`, `−3.1 %, 1 broken`, `1 broken`; `n/a` where no cell was measured on both sides."""
        parts = [relative(self.base, self.head)] if self.cells and (self.moves or not self.broken) else []
        parts += [f"{self.broken:,} broken"] if self.broken else []
        return ", ".join(parts) or "n/a"

    @property
    def moves(self) -> bool:
        """True where some artifact has another size."""
        return bool(self.larger or self.smaller or self.unsure or self.base != self.head)

    @property
    def sizes(self) -> str:
        """`510,350 → 721,214 B`, and of how many cells where that is not all: `385,162 B (2 of 4)`; or `n/a`."""
        if not self.cells:
            return "n/a"
        over = f" ({self.cells:,} of {self.planned:,})" if self.cells < self.planned else ""
        return f"{sides(self.base, self.head)}{over}"

    @property
    def ways(self) -> str:
        """`3 / 1`, `3 / 1, 1 open`: how many are larger and smaller; `–` for none."""
        ways = f"{self.larger:,} / {self.smaller:,}" if self.larger or self.smaller else ""
        return ", ".join(filter(None, (ways, f"{self.unsure:,} open" if self.unsure else ""))) or "–"


class Totals(NamedTuple):
    """All targets."""

    # each target that something changed on; then all, where these are several. Empty where nothing changed, or no cell
    # was measured on both sides.
    rows: tuple[Total, ...]
    still: tuple[str, ...]  # the short names of the other ones
    everything: Total  # the sum over all targets


def totals(facts: Facts) -> Totals:
    """Those of each measured target."""
    targets: dict[str, list[CellDelta]] = {target: [] for target in sorted(facts.measured_targets)}
    for delta in facts.report.deltas:
        if delta.key.target in targets:
            targets[delta.key.target].append(delta)
    news = worst_first(facts.report.verdict.news)
    worst: dict[str, Finding] = {}
    for finding in news:
        if finding.key.target not in worst:
            worst[finding.key.target] = whole_of(finding, news)
    rows, still = [], []
    for target, deltas in targets.items():
        if one := worst.get(target):
            mark = "💥" if one.limit == "newly-broken" and not one.accepted else MARKS[mark_of(one)]
            level = one.weight if one.weight != "pass" else ""
            rows.append(replace(_sum(facts.short[target], deltas), mark=mark, level=level))
        elif all(delta.state == "same" or delta.excused or broken_alike(delta) for delta in deltas):
            still.append(facts.short[target])
        else:
            rows.append(_sum(facts.short[target], deltas))
    every = everything(facts)
    if not every.cells:
        rows = []
    return Totals((*rows, every) if len(rows) > 1 else tuple(rows), tuple(still), every)


def everything(facts: Facts) -> Total:
    """The sum over all targets."""
    return _sum("", [delta for delta in facts.report.deltas if delta.key.target in facts.measured_targets])


def _sum(target: str, deltas: Sequence[CellDelta]) -> Total:
    """What has the same artifact on both sides among those that were seen adds that: it moves no sum."""
    sizes = [(delta.metrics["artifact_bytes"], delta.state == "same") for delta in deltas]
    both = [(one, one.base, one.head) if same else (one, *one.sides) for one, same in sizes]
    known = [(one, base, head) for one, base, head in both if base is not None and head is not None]
    larger, smaller = (sum((one.change or 0) * sign > 0 for one, _, _ in known) for sign in (1, -1))
    sums = total(base for _, base, _ in known), total(head for _, _, head in known)
    planned, broken = sum(not d.excused for d in deltas), sum(d.state == "newly-broken" for d in deltas)
    unsure = sum(one.is_open for one, _, _ in known)
    return Total(target, len(known), *sums, larger, smaller, unsure, planned, broken)


_ICONS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}
_REASONS, _REASON_CHARS = 2, 120
_ALARMS = (
    ("newly-broken", "newly broken"),
    ("fail", "over the limit"),
    ("forbidden", "in a state that the rules forbid"),
    ("broken-accepted", "newly broken, accepted"),
    ("accepted", "over the limit, accepted"),
    ("warn", "to look at"),
    ("lost", "not compared"),
)


def headline(facts: Facts) -> Phrase:
    """``❌ **Code size: 2 causes over the limit, in 4 of 32 builds** · −123 B (−0.1 %) in all · 10 larger``."""
    if facts.report.adoption and facts.report.verdict.status != "unknown":
        return _adopting(facts)
    status, total = facts.report.verdict.status, everything(facts)
    icon = "⚪" if facts.report.broke and status == "pass" else _ICONS[status]
    alarming, partly, net = list(_alarms(facts)), _partly(facts), ""
    if total.larger or total.smaller or total.base != total.head:
        net = f"{change(total.base, total.head)} in all"
    if status == "unknown":
        said = "unknown, as nothing could be compared"
    elif alarming:
        said = alarming.pop(0)
    else:
        said = ", ".join(filter(None, (_quiet(facts, total), net)))
        net = ""
        if partly:
            said, partly = partly, said
    ways = ", ".join(f"{count:,} {words}" for count, words in _ways(facts, total) if count)
    who = sorted({finding.accepted.who for finding in facts.report.verdict.findings if finding.accepted})
    others = f" and {plural(len(who) - 2, 'other')}" if len(who) > 2 else ""
    names = joined([(code(clip(name, NAME_LIMIT)),) for name in who[:2]], ", ")
    accepted = [phrase("accepted by ", names, others)] if who else []
    rest = [*map(phrase, alarming), *accepted, *map(phrase, filter(None, (partly, net, ways)))]
    return phrase(icon, " ", strong(f"Code size: {said}"), *(phrase(" · ", one) for one in rest))


def _adopting(facts: Facts) -> Phrase:
    """``🆕 **Code size is measured from now on: …** · 2 builds do not compile · 4 builds compared with base: …``."""
    total, new = everything(facts), [delta for delta in facts.report.deltas if delta.base is None and delta.head]
    icon = "❌" if facts.report.verdict.status == "fail" else "🆕"
    broken = sum(not delta.head.measured for delta in new if delta.head and delta.head.status != "unsupported")
    over = sum(bool(facts.mark(delta.key)) for delta in new if delta.head and delta.head.measured)
    rest = [f"{plural(broken, 'build')} {'does' if broken == 1 else 'do'} not compile"] if broken else []
    rest += [f"{plural(over, 'build')} over a limit from the start"] if over else []
    if both := facts.count("same", "changed", "fixed"):
        ways = [f"{count:,} {words}" for count, words in _ways(facts, total) if count and words != "new"]
        rest.append(": ".join(filter(None, (f"{plural(both, 'build')} compared with base", ", ".join(ways)))))
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    models, targets = ({getattr(cell.key, what) for cell in cells} for what in ("model", "target"))
    size = summed(value_of(cell, "artifact_bytes") or 0 for cell in cells) or 0
    where = f"{plural(len(models), 'model')} on {plural(len(targets), 'target')}"
    lead = strong(f"Code size is measured from now on: {where}, {amount(size)}")
    return phrase(icon, " ", lead, *(phrase(" · ", one) for one in rest))


def _alarms(facts: Facts) -> Iterator[str]:
    """`2 of 32 builds newly broken`, `3 causes over the limit, in 4 of 32 builds`, the worst first.

    Each alarming cell is in one of them. Causes are counted where that of each cell is known.
    """
    lost = {delta.key for delta in _missing(facts)}
    kinds = {delta.key: _kind(facts, delta, delta.key in lost) for delta in facts.report.deltas}
    worst: dict[CellKey, tuple[str, int]] = {}
    for cause, findings in matters(facts):
        for one in findings:
            worst.setdefault(one.key, (mark_of(one), cause))
    causes = {
        level: {cause for key, (mark, cause) in worst.items() if mark == level == kinds[key]}
        for level in ("fail", "warn")
    }
    causes["warn"] -= causes["fail"] - {0}
    for kind, words in _ALARMS:
        if count := sum(found == kind for found in kinds.values()):
            known = causes.get(kind) or {0}
            of = "" if 0 in known else f"{plural(len(known), 'cause')} {words}, in "
            yield f"{of}{builds(facts, count)}{'' if of else f' {words}'}"


def _kind(facts: Facts, delta: CellDelta, lost: bool) -> str:
    mark, worst = facts.mark(delta.key), facts.worst(delta.key)
    about_state = worst is not None and worst.metric is None
    if lost and about_state:
        return "lost" if mark == "fail" else ""  # `_partly` has them
    if delta.state == "newly-broken":
        return "broken-accepted" if mark == "accepted" else "newly-broken"
    return "forbidden" if about_state and mark == "fail" else mark


def _quiet(facts: Facts, total: Total) -> str:
    """Where there is no alarm: which way the code went."""
    if facts.count("changed", "same", "fixed"):
        if not facts.count("changed", "fixed", "new", "removed") and not _otherwise(facts):
            return "no change seen" if _missing(facts) or total.unsure else "nothing changed"
        if total.larger or total.smaller:
            way = "smaller" if total.smaller and not total.larger else "larger" if not total.smaller else "changed"
            return f"{way} within the rules" if total.larger else way
    return "within the rules"


def _missing(facts: Facts) -> list[CellDelta]:
    """The cells that a side planned, and that were not compared: lost, too late, or gone."""
    lost = [delta for delta in facts.states["unmeasured"] if not delta.excused]
    return [*lost, *facts.states["removed"]]


def _partly(facts: Facts) -> str:
    """How much was compared, and why not all: a sentence about less must not look like one about all. Or empty."""
    if not (lost := _missing(facts)):
        return ""
    compared = facts.count("changed", "same")
    reasons = Counter(map(_why, lost)).most_common()
    said = [f"{count:,} {clip(clean(why), _REASON_CHARS)}" for why, count in reasons[:_REASONS]]
    if rest := sum(count for _, count in reasons[_REASONS:]):
        said.append(f"{rest:,} for other reasons")
    whole = builds(facts, compared) if compared else f"none of {plural(facts.planned, 'build')}"
    return f"{whole} compared: {', '.join(said)}"


def _why(delta: CellDelta) -> str:
    for name, cell in (("head", delta.head), ("base", delta.base)):
        if cell is not None and cell.status == "unsupported":
            return f"unsupported on {name}"
    what, _, limit = delta.reason.partition(": ")
    return f"{what} ({limit})" if limit else what or delta.state


def _otherwise(facts: Facts) -> int:
    """How many cells are broken on both sides, and not alike: refused on one, crashed on the other."""
    return sum(not broken_alike(delta) for delta in facts.states["broken"])


def _ways(facts: Facts, total: Total) -> Iterator[tuple[int, str]]:
    """What is still broken is no news, and what is the same is told where nothing else is."""
    as_large = [delta for delta in facts.states["changed"] if delta.metrics["artifact_bytes"].change == 0]
    otherwise, moved = _otherwise(facts), (total.larger, total.smaller, total.unsure, len(as_large))
    yield total.larger, "larger"
    yield total.smaller, "smaller"
    yield total.unsure, "open, as the compiler does not repeat itself"
    yield len(as_large), "changed at the same size"
    yield facts.count("fixed"), "compile now" if facts.count("fixed") > 1 else "compiles now"
    yield facts.count("new"), "new"
    yield otherwise, "broken on both sides in another way"
    if not facts.count("same", "changed", "fixed", "new"):
        yield facts.count("broken") - otherwise, f"of {plural(facts.planned, 'build')} broken on both sides"
    if not any(moved) and facts.count("same"):
        identical = sum(delta.identical is True for delta in facts.states["same"])
        unsure = sum(delta.metrics["artifact_bytes"].is_open for delta in facts.states["same"])
        yield identical, f"of {plural(facts.planned, 'build')} bit-identical"
        yield facts.count("same") - identical - unsure, "equal in every metric"
