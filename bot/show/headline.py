"""The first sentence: a verdict that can be trusted without reading on, and which way the code went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bot.core.delta import CellDelta, value_of
from bot.core.record import total
from bot.core.snapshot import Snapshot
from bot.show.blocks import Phrase, phrase, plain, some, strong
from bot.show.escape import clean, clip
from bot.show.facts import Facts, broken_alike, builds, is_lost, mark_of
from bot.show.filters import amount, change, plural
from bot.show.totals import Total, everything

_ICONS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}
_REASONS, _REASON_CHARS = 2, 120
_ALARMS = {  # a state has its own words
    "newly-broken": "",
    "fail": "fail the check",
    "forbidden": "in a state that the rules forbid",
    "accepted": "with accepted findings",
    "warn": "with warnings",
}


def headline(facts: Facts) -> Phrase:
    """``❌ **Code size: 4 of 32 builds fail the check** · −123 B (−0.1 %) in all · 10 larger``."""
    report, total, alarming = (
        facts.report,
        everything(facts.report),
        list(_alarm_counts(facts)),
    )
    status, subject, parts = (
        report.verdict.status,
        "Code size:",
        [*alarming, _partly(facts)],
    )
    icon = "⚪" if report.broke and status == "pass" else _ICONS[status]
    is_moved = total.larger or total.smaller or total.base != total.head
    over = (
        "in all"
        if total.cells == facts.planned
        else f"over the {plural(total.cells, 'build')} compared"
    )
    net = f"{change(total.base, total.head)} {over}" if is_moved else ""
    if status == "unknown":
        parts = ["unknown, because nothing could be compared", *parts]
    elif report.adoption and report.adoption.no_compiler:
        parts = [
            *parts,
            f"nothing compared, limits applied to head only: {_measured(report.head)}",
        ]
    elif report.adoption:
        icon, subject = "🆕", "Code size is"
        parts = [_measured_from_now(report.head), *parts]
    elif not alarming:
        net = ", ".join(filter(None, (_quiet(facts, total), net)))
    lead, *more = filter(None, (*parts, net, ", ".join(_ways(facts, total))))
    return phrase(
        icon, " ", strong(f"{subject} {lead}"), *(f" · {one}" for one in more)
    )


def _measured_from_now(head: Snapshot) -> str:
    """`measured from now on: 4 models on 8 targets, 4,321,012 B`."""
    return f"measured from now on: {_measured(head)}"


def _measured(head: Snapshot) -> str:
    """`4 models on 8 targets, 4,321,012 B`."""
    cells = [cell for cell in head.cells if cell.status != "unsupported"]
    models, targets = (
        {cell.key.model for cell in cells},
        {cell.key.target for cell in cells},
    )
    size = total(value_of(cell, "artifact_bytes") or 0 for cell in cells) or 0
    where = f"{plural(len(models), 'model')} on {plural(len(targets), 'target')}"
    return f"{where}, {amount(size)}"


def _alarm_counts(facts: Facts) -> Iterator[str]:
    """Yield `2 of 32 builds newly failing`, then `4 of 32 builds fail the check`.

    Each build is in one of them.
    """
    counts = Counter[str]()
    for delta in facts.report.deltas:
        worst = facts.worst(delta.key)
        kind = mark_of(worst) if worst else ""
        if delta.state == "newly-broken" and kind != "accepted":
            kind = "newly-broken"
        elif worst and worst.metric is None and kind == "fail":
            kind = "forbidden"
        elif worst and is_lost(delta, worst):
            kind = ""  # `_partly` has them
        counts[kind] += 1
    kinds = {
        kind: words or facts.state_words[kind]
        for kind, words in _ALARMS.items()
        if counts[kind]
    }
    for kind, words in kinds.items():
        verb = (
            words.replace("fail the check", "fails the check")
            if counts[kind] == 1
            else words
        )
        yield f"{builds(facts, counts[kind])} {verb}"


def _quiet(facts: Facts, total: Total) -> str:
    """Where there is no alarm: which way the code went."""
    if facts.count("changed", "same", "fixed"):
        is_still = all(map(broken_alike, facts.states["broken"]))
        if is_still and not facts.count("changed", "fixed", "new", "removed"):
            is_equal = all(delta.identical for delta in facts.states["same"])
            is_whole = is_equal and not (
                facts.report.broke or _missing(facts) or total.unsure
            )
            return "nothing changed" if is_whole else "no change seen"
        if total.larger or total.smaller:
            way = (
                "smaller"
                if total.smaller and not total.larger
                else "larger"
                if not total.smaller
                else "changed"
            )
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
    reasons = Counter(map(_why_lost, lost))
    counts = (
        f"{count:,} {clip(clean(why), _REASON_CHARS)}"
        for why, count in reasons.most_common(_REASONS)
    )
    return (
        f"{builds(facts, facts.count('changed', 'same'))} compared:"
        f" {plain(some(counts, len(reasons)))}"
    )


def _why_lost(delta: CellDelta) -> str:
    if any(
        cell is not None and cell.status == "unsupported"
        for cell in (delta.base, delta.head)
    ):
        return "not supported"
    return delta.reason.partition(": ")[0] or delta.state


def _ways(facts: Facts, total: Total) -> Iterator[str]:
    """What moved, how; what is the same only where nothing moved."""
    artifacts = {
        state: [state.metrics["artifact_bytes"] for state in facts.states[state]]
        for state in ("changed", "same")
    }
    as_large = sum(artifact.change == 0 for artifact in artifacts["changed"])
    counts = {
        "larger": total.larger,
        "smaller": total.smaller,
        "non-deterministic": total.unsure,
        "changed at the same size": as_large,
        "fixed": facts.count("fixed"),
        "new": facts.count("new"),
    }
    if not (total.larger or total.smaller or total.unsure or as_large):
        identical = sum(delta.identical is True for delta in facts.states["same"])
        unsure = sum(artifact.is_open for artifact in artifacts["same"])
        counts[f"of {plural(facts.planned, 'build')} bit-identical"] = identical
        counts["equal in every metric"] = facts.count("same") - identical - unsure
    counts["already failing on base"] = facts.count("broken")
    return (f"{count:,} {words}" for words, count in counts.items() if count)
