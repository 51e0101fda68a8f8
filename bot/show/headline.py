"""The first sentence: a verdict that can be trusted without reading on, and which way the code went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bot.core.delta import CellDelta, value_of
from bot.core.record import total as summed
from bot.core.snapshot import CellKey
from bot.show.alarms import matters
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts, broken_alike, builds, mark_of
from bot.show.filters import amount, change, plural
from bot.show.phrase import Phrase, code, joined, phrase, strong
from bot.show.totals import Total, everything

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
    alarming, partly, net = list(_alarms(facts)), _partly(facts), _net(total)
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
    rest = [*map(phrase, alarming), *_accepted(facts), *map(phrase, filter(None, (partly, net, ways)))]
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
    said = (phrase(" · ", one) for one in rest)
    return phrase(icon, " ", strong(f"Code size is {_measured(facts)}"), *said)


def _measured(facts: Facts) -> str:
    """``measured from now on: 4 models on 8 targets, 1,234,567 B``."""
    cells = [cell for cell in facts.report.head.cells if cell.status != "unsupported"]
    models, targets = ({getattr(cell.key, what) for cell in cells} for what in ("model", "target"))
    size = summed(value_of(cell, "artifact_bytes") or 0 for cell in cells) or 0
    where = f"{plural(len(models), 'model')} on {plural(len(targets), 'target')}"
    return f"measured from now on: {where}, {amount(size)}"


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


def _accepted(facts: Facts) -> Iterator[Phrase]:
    names = sorted({finding.accepted.who for finding in facts.report.verdict.findings if finding.accepted})
    if names:
        others = f" and {plural(len(names) - 2, 'other')}" if len(names) > 2 else ""
        yield phrase("accepted by ", joined([(code(clip(name, NAME_LIMIT)),) for name in names[:2]], ", "), others)


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


def _net(total: Total) -> str:
    """What the changes of all cells that both sides measured add up to; empty where none has another size."""
    if not (total.larger or total.smaller) and total.base == total.head:
        return ""
    return f"{change(total.base, total.head)} in all"


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
    yield len(as_large), "changed, as large as before"
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
