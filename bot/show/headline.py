"""Write the first sentence: the verdict, and which way the code size went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bot.core.delta import CellDelta, value_of
from bot.core.record import Spread, total
from bot.core.snapshot import Snapshot
from bot.show.blocks import Phrase, phrase, plain, some, strong
from bot.show.escape import clean, clip
from bot.show.facts import Facts, broken_alike, builds, is_lost, mark_of
from bot.show.filters import amount, change, plural
from bot.show.totals import Total, everything

_ICONS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}
_REASONS = 2
_REASON_CHARS = 120
_ALARMS = {  # a state has its own words
    "newly-broken": "",
    "fail": "fail the check",
    "forbidden": "in a state that the rules forbid",
    "accepted": "with accepted findings",
    "warn": "with warnings",
}


def headline(facts: Facts) -> Phrase:
    """Return the verdict, the alarms and the net change.

    ``❌ **Code size: 4 of 32 builds fail the check** · −123 B (−0.1 %) in all · 10
    larger``.
    """
    report = facts.report
    total = everything(report)
    alarming = list(_alarm_counts(facts))
    parts = [*alarming, _partly(facts)]
    status = report.verdict.status
    icon = _ICONS[status]
    if report.broke and status == "pass":
        icon = "⚪"
    subject = "Code size:"
    net = _net_words(facts, total)
    if status == "unknown":
        parts = ["unknown, because nothing could be compared", *parts]
    elif report.adoption and report.adoption.no_compiler:
        measured = _measured(report.head)
        parts.append(f"nothing compared, limits applied to head only: {measured}")
    elif report.adoption:
        icon = "🆕"
        subject = "Code size is"
        parts = [_measured_from_now(report.head), *parts]
    elif not alarming:
        net = ", ".join(filter(None, (_quiet(facts, total), net)))
    lead, *details = filter(None, (*parts, net, ", ".join(_ways(facts, total))))
    sentence = strong(f"{subject} {lead}")
    return phrase(icon, " ", sentence, *(f" · {detail}" for detail in details))


def _net_words(facts: Facts, total: Total) -> str:
    """Return `−123 B (−0.1 %) in all`; empty if no size changed."""
    if not (total.larger or total.smaller or total.base != total.head):
        return ""
    scope = "in all"
    if total.cells != facts.planned:
        scope = f"over the {plural(total.cells, 'build')} compared"
    return f"{change(total.base, total.head)} {scope}"


def _measured_from_now(head: Snapshot) -> str:
    """Return `measured from now on: 4 models on 8 targets, 4,321,012 B`."""
    return f"measured from now on: {_measured(head)}"


def _measured(head: Snapshot) -> str:
    """Return `4 models on 8 targets, 4,321,012 B`."""
    models = set[str]()
    targets = set[str]()
    sizes = list[int | Spread]()
    for cell in head.cells:
        if cell.status != "unsupported":
            models.add(cell.key.model)
            targets.add(cell.key.target)
            sizes.append(value_of(cell, "artifact_bytes") or 0)
    size = total(sizes) or 0
    where = f"{plural(len(models), 'model')} on {plural(len(targets), 'target')}"
    return f"{where}, {amount(size)}"


def _alarm_counts(facts: Facts) -> Iterator[str]:
    """Yield `2 of 32 builds newly failing`, then `4 of 32 builds fail the check`.

    Each build counts in only one of them.
    """
    counts = Counter(_alarm_kind(facts, delta) for delta in facts.report.deltas)
    for kind, label in _ALARMS.items():
        count = counts[kind]
        if not count:
            continue
        text = label or facts.state_words[kind]
        if count == 1:
            text = text.replace("fail the check", "fails the check")
        yield f"{builds(facts, count)} {text}"


def _alarm_kind(facts: Facts, delta: CellDelta) -> str:
    """Return the key of `_ALARMS` that a build counts in.

    Any other text for a build without an alarm.
    """
    worst = facts.worst(delta.key)
    kind = mark_of(worst) if worst else ""
    if delta.state == "newly-broken" and kind != "accepted":
        return "newly-broken"
    if worst and worst.metric is None and kind == "fail":
        return "forbidden"
    if worst and is_lost(delta, worst):
        return ""  # `_partly` counts these
    return kind


def _quiet(facts: Facts, total: Total) -> str:
    """Return in which direction the code changed, if there is no alarm."""
    if not facts.count("changed", "same", "fixed"):
        return "within the rules"
    is_still = all(map(broken_alike, facts.states["broken"]))
    if is_still and not facts.count("changed", "fixed", "new", "removed"):
        is_equal = all(delta.identical for delta in facts.states["same"])
        is_doubtful = facts.report.broke or _missing(facts) or total.unsure
        if is_equal and not is_doubtful:
            return "nothing changed"
        return "no change seen"
    if total.larger and total.smaller:
        return "changed within the rules"
    if total.larger:
        return "larger within the rules"
    if total.smaller:
        return "smaller"
    return "within the rules"


def _missing(facts: Facts) -> list[CellDelta]:
    """Return the planned builds that were not compared: lost, too late, or gone."""
    lost = [delta for delta in facts.states["unmeasured"] if not delta.excused]
    return [*lost, *facts.states["removed"]]


def _partly(facts: Facts) -> str:
    """Return how many builds were compared, and why not all; empty if all were.

    A sentence about some builds must not look like one about all.
    """
    lost = _missing(facts)
    if not lost:
        return ""
    reasons = Counter(map(_why_lost, lost))
    counts = []
    for reason, count in reasons.most_common(_REASONS):
        counts.append(f"{count:,} {clip(clean(reason), _REASON_CHARS)}")
    compared = builds(facts, facts.count("changed", "same"))
    return f"{compared} compared: {plain(some(counts, len(reasons)))}"


def _why_lost(delta: CellDelta) -> str:
    for cell in (delta.base, delta.head):
        if cell is not None and cell.status == "unsupported":
            return "not supported"
    return delta.reason.partition(": ")[0] or delta.state


def _ways(facts: Facts, total: Total) -> Iterator[str]:
    """Yield what changed and how; unchanged figures only if nothing changed."""
    as_large = 0
    for delta in facts.states["changed"]:
        as_large += delta.metrics["artifact_bytes"].change == 0
    counts = {
        "larger": total.larger,
        "smaller": total.smaller,
        "non-deterministic": total.unsure,
        "changed at the same size": as_large,
        "fixed": facts.count("fixed"),
        "new": facts.count("new"),
    }
    if not (total.larger or total.smaller or total.unsure or as_large):
        identical = 0
        unsure = 0
        for delta in facts.states["same"]:
            identical += delta.identical is True
            unsure += delta.metrics["artifact_bytes"].is_open
        counts[f"of {plural(facts.planned, 'build')} bit-identical"] = identical
        counts["equal in every metric"] = facts.count("same") - identical - unsure
    counts["already failing on base"] = facts.count("broken")
    for label, count in counts.items():
        if count:
            yield f"{count:,} {label}"
