"""The first sentence: a verdict that can be trusted without reading on; and the counts below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.core.rules.delta import CellDelta, exact_changes
from bot.core.rules.quiet import is_standing
from bot.core.values.verdict import Finding
from bot.render.text.escape import clean, clip
from bot.render.text.filters import amount, change, plural, sides
from bot.render.text.phrase import Phrase, Span, code, joined, phrase, strong
from bot.render.view.facts import NAME_LIMIT, Facts, level_of
from bot.render.view.failures import failure_words

_ICONS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}
_REASONS = 2
_REASON_CHARS = 120


def headline(facts: Facts) -> Phrase:
    """The sentence: verdict, how many cells, and the worst of them in words."""
    status, known = facts.report.verdict.status, facts.count("changed", "same") and not facts.report.broke
    icon = _ICONS[status] if facts.findings or known else "⚪"
    said = phrase(icon, " ", strong(f"Code size: {status}"), " — ")
    told = [*_partly(facts), *(_judged(facts) if _untold(facts) else _unjudged(facts))]
    return phrase(said, joined(told, "; "), ".")


def _missing(facts: Facts) -> list[CellDelta]:
    """The cells that a side planned, and that were not compared: lost, too late, or gone."""
    lost = [delta for delta in facts.states["unmeasured"] if not delta.excused]
    return [*lost, *facts.states["removed"]]


def _partly(facts: Facts) -> Iterator[Phrase]:
    """How much was compared, and why not all: a sentence about less must not look like one about all."""
    if not (missing := _missing(facts)):
        return
    compared, on_purpose = facts.count("changed", "same"), sum(delta.excused for delta in facts.report.deltas)
    whole = plural(len(facts.report.deltas) - on_purpose, "cell")
    reasons = Counter(map(_why, missing)).most_common()
    told = [f"{count:,} {clip(clean(why), _REASON_CHARS)}" for why, count in reasons[:_REASONS]]
    if rest := sum(count for _, count in reasons[_REASONS:]):
        told.append(f"{rest:,} for other reasons")
    yield phrase(f"{f'{compared:,}' if compared else 'none'} of {whole} compared: {', '.join(told)}")


def _why(delta: CellDelta) -> str:
    for name, cell in (("head", delta.head), ("base", delta.base)):
        if cell is not None and cell.status == "unsupported":
            return f"unsupported on {name}"
    what, _, limit = delta.reason.partition(": ")
    return f"{what} ({limit})" if limit else what or delta.state


def _untold(facts: Facts) -> bool:
    """True where there are findings that `_partly` does not tell."""
    told = {delta.key for delta in _missing(facts)}
    return any(f.key not in told or f.metric or level_of(f) == "fail" for f in facts.report.verdict.findings)


def _judged(facts: Facts) -> Iterator[Phrase]:
    marks = [facts.mark(key) for key in facts.findings]
    failing = marks.count("fail")
    yield from _counted(facts, failing, marks.count("accepted"), marks.count("warn"))
    if all(is_standing(finding) for finding in facts.report.verdict.findings):
        yield phrase("all of them were there on base")
        yield from _unjudged(facts)
    elif is_standing(worst := _worst(facts)):
        yield phrase("these were there on base")
    else:
        yield phrase("worst: ", finding_words(facts, worst))
    broken = sum(facts.mark(delta.key) in ("", "warn") for delta in facts.states["newly-broken"])
    if not failing and broken:
        yield phrase(f"{plural(broken, 'cell')} newly broken")


def _counted(facts: Facts, failing: int, accepted: int, warning: int) -> Iterator[Phrase]:
    if failing:
        yield phrase(f"{plural(failing, 'cell')} broke the rules")
    if accepted:
        more = f"{accepted:,} more" if failing else plural(accepted, "cell")
        yield phrase(f"{more} over the rules, accepted by ", _people(facts))
    if warning:
        who = f"{warning:,} more" if failing or accepted else plural(warning, "cell")
        yield phrase(f"{who} reached a warning level")


def _people(facts: Facts) -> Phrase:
    names = sorted({finding.accepted.who for finding in facts.report.verdict.findings if finding.accepted})
    others = f" and {plural(len(names) - 2, 'other')}" if len(names) > 2 else ""
    return phrase(joined([(code(clip(name, NAME_LIMIT)),) for name in names[:2]], ", "), others)


def _worst(facts: Facts) -> Finding:
    """The verdict's worst finding; among equals one that is news, and of a part and its whole the whole."""
    ranked = sorted(facts.report.verdict.findings, key=_rank)
    news = [f for f in ranked if _rank(f) == _rank(ranked[0]) and not is_standing(f)] or ranked
    if news[0].metric == "executable_bytes":
        return next((f for f in news if f.key == news[0].key and f.metric == "artifact_bytes"), news[0])
    return news[0]


def _rank(finding: Finding) -> tuple[bool, bool]:
    return level_of(finding) != "fail", finding.accepted is not None


def finding_words(facts: Facts, finding: Finding) -> Phrase:
    """A finding as a clause: ``artifact of `bert` on `vmvx`: 1,000 → 2,000 B (+1,000 B, +100.0 %), limit `4KiB` ``."""
    cell = (code(clip(finding.key.model, NAME_LIMIT)), Span(" on "), code(clip(finding.key.target, NAME_LIMIT)))
    if finding.metric is None:
        return phrase(cell, " ", _state_words(facts.deltas.get(finding.key)))
    metric = METRIC_BY_ID[finding.metric]
    about = phrase(f"{metric.label} of ", cell)
    if finding.kind == "unknown" or finding.head is None:
        return phrase(about, f" is not known any more, was {amount(finding.base, metric.unit)}")
    if finding.kind == "limit":
        return phrase(about, f" is {amount(finding.head, metric.unit)}, the limit ", code(clip(finding.limit, 48)))
    values = sides(finding.base, finding.head, metric.unit)
    said = f": {values}, {change(finding.base, finding.head, metric.unit)}, allowed "
    return phrase(about, said, code(clip(finding.limit, 48)))


def _state_words(delta: CellDelta | None) -> Phrase:
    if delta is None:
        return phrase("broke a rule")
    if delta.state == "newly-broken" and delta.head is not None:
        return phrase("is newly broken: ", failure_words(delta.head))
    words = {"removed": "was removed", "broken": "is broken on both sides", "unmeasured": "was not measured"}
    return phrase(words.get(delta.state, f"is {delta.state}"))


def _unjudged(facts: Facts) -> Iterator[Phrase]:
    compared, changed = facts.count("changed", "same"), facts.count("changed")
    within = "" if facts.findings else ", within the rules"
    if changed:
        yield phrase(f"{changed:,} of {plural(compared, 'compared cell')} changed{within}")
        yield _largest(facts)
    elif compared:
        identical = sum(delta.identical is True for delta in facts.states["same"])
        how = "all bit-identical" if identical == compared else f"all metrics equal, {identical:,} bit-identical"
        yield phrase(f"nothing changed in {plural(compared, 'compared cell')}: {how}")
    elif not _missing(facts):
        yield phrase("nothing could be compared")
    if facts.count("newly-broken") and not facts.findings:
        yield phrase(f"{plural(facts.count('newly-broken'), 'cell')} newly broken")
    if facts.count("new"):
        yield phrase(f"{plural(facts.count('new'), 'cell')} new")
    if not changed and facts.count("broken"):
        yield phrase(f"{plural(facts.count('broken'), 'cell')} broken on both sides")


def _largest(facts: Facts) -> Phrase:
    """The largest growth of the first metric that grew anywhere, in the order of the metrics."""
    grown: dict[str, tuple[float, CellDelta]] = {}
    lost = False
    for delta in facts.states["changed"]:
        for metric in exact_changes(delta.metrics.values()):
            step = metric.change
            lost = lost or metric.head is None
            if step is not None and step > 0:
                size = step * step / max(metric.base or 0, 1)
                if metric.id not in grown or size > grown[metric.id][0]:
                    grown[metric.id] = (size, delta)
    found = next((metric for metric in METRICS if metric.id in grown), None)
    if found is None:
        return phrase("some metrics are not known any more" if lost else "no metric grew")
    delta = grown[found.id][1]
    value = delta.metrics[found.id]
    cell = (code(clip(delta.key.model, NAME_LIMIT)), Span(" on "), code(clip(delta.key.target, NAME_LIMIT)))
    values = f"{sides(value.base, value.head, found.unit)}, {change(value.base, value.head, found.unit)}"
    return phrase(f"largest growth: {found.label} of ", cell, f" {values}")


def counts(facts: Facts) -> Phrase:
    """Every cell in one of the counts: `104 cells: 1 newly broken · 55 changed · 48 bit-identical`."""
    identical = sum(delta.identical is True for delta in facts.states["same"])
    unsupported = sum(delta.excused for delta in facts.report.deltas)
    told = (
        (facts.count("newly-broken"), "newly broken"),
        (facts.count("changed"), f"changed{_directions(facts)}"),
        (facts.count("removed"), "removed"),
        (facts.count("broken"), "broken on both sides"),
        (facts.count("fixed"), "fixed"),
        (facts.count("new"), "new"),
        (facts.count("same") - identical, "equal in every metric"),
        (identical, "bit-identical"),
        (facts.count("unmeasured") - unsupported, "not measured"),
        (unsupported, "unsupported"),
    )
    parts = [phrase(f"{count:,} {words}") for count, words in told if count]
    return phrase(f"{plural(len(facts.report.deltas), 'cell')}: " if parts else "No cells", joined(parts, " · "), ".")


def _directions(facts: Facts) -> str:
    steps = [delta.metrics["artifact_bytes"].change for delta in facts.states["changed"]]
    larger, smaller = (sum(1 for step in steps if step and step * sign > 0) for sign in (1, -1))
    told = [f"{words} in {count:,}" for count, words in ((larger, "larger"), (smaller, "smaller")) if count]
    return f" (artifact {', '.join(told)})" if told else ""
