"""The changed builds, the alarming first: why each changed, and every metric."""

from __future__ import annotations

from itertools import islice

from bot.core.delta import exact_changes
from bot.core.explanation import UNATTRIBUTED
from bot.core.metrics import METRICS, code_words
from bot.core.snapshot import CellKey
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Limits,
    Line,
    List,
    Phrase,
    Row,
    Sentence,
    Table,
    Words,
    by,
    code,
    fair_in_order,
    joined,
    listed,
    listing,
    more_of,
    name_cell,
    phrase,
    section,
)
from bot.show.escape import clean, clip
from bot.show.facts import MARKS, Facts, mark_of
from bot.show.filters import change, plural, sides
from bot.show.root_causes import root_details, shown_roots
from bot.show.why import (
    by_cause,
    cause_words,
    component_row,
    diffs,
    dispatch_line,
    family_lines,
    passed_words,
    rest,
    why_words,
)

_NAME, _COMPONENT, _NOTE = 42, 36, 160


def changed_builds(facts: Facts, limits: Limits) -> Fold:
    """The fold of the changed builds, the alarming first: why.

    And every metric, where there is room.
    """
    count = facts.count("changed")
    roots = [] if limits.details else facts.roots[: shown_roots(facts, limits)]
    details = [
        (number, root_details(facts, root)) for number, root in enumerate(roots, 1)
    ]
    causes = [
        Line(phrase(f"Cause {number}: ", detail))
        for number, detail in details
        if detail
    ]
    explained = facts.report.explanations
    known = {
        d.key
        for d in facts.report.deltas
        if d.key in explained and d.state in ("changed", "same")
    }
    alarming = [finding.key for finding in facts.report.verdict.news]
    keys = [key for key in dict.fromkeys([*alarming, *facts.deltas]) if key in known]
    shown = fair_in_order(keys, lambda key: key.model, limits.whys)
    stories = listing(
        [_story(facts, key, limits) for key in shown], len(keys), "explained build"
    )
    title = plural(count, "changed build") if count else plural(stories.total, "build")
    return Fold(
        f"Why: {title}" if stories else title,
        (
            List(listed(causes)),
            *stories,
            more_of(stories),
            Fold("Every metric", (_every_metric(facts, limits),), name="metrics"),
        ),
        name="changed",
    )


def _every_metric(facts: Facts, limits: Limits) -> Table:
    """The changed metrics of the changed builds; models take turns where there are too many."""
    pairs = [
        (delta, id_)
        for delta in facts.states["changed"]
        for id_ in [value.id for value in exact_changes(delta.metrics.values())]
        or [METRICS[0].id]
    ]
    rows = list[Row]()
    for delta, id_ in fair_in_order(
        pairs, lambda pair: pair[0].key.model, limits.changed
    ):
        metric, both = delta.metrics[id_].quantity, delta.metrics[id_].sides
        mark = next(
            (
                f" {MARKS[mark_of(one)]}"
                for one in facts.findings.get(delta.key, ())
                if one.metric == id_
            ),
            "",
        )
        words = (
            facts.label(metric, delta.key),
            sides(*both, metric.unit),
            f"{change(*both, metric.unit)}{mark}",
        )
        rows.append((*facts.names(delta.key), *map(phrase, words)))
    headers = ("model", "target", "metric", "base → head", "change")
    return Table(
        headers,
        listing(rows, len(pairs) if limits.changed else 0, "changed metric"),
        numbers_from=3,
    )


def _story(facts: Facts, key: CellKey, limits: Limits) -> Fold:
    """Why one cell changed: its sentence, its dispatches, what differs in them, and what moved."""
    why, head, most = (
        facts.report.explanations[key],
        facts.deltas[key].head,
        limits.dispatches,
    )
    size = code_words("code", facts.backends.get(key.target, ""))
    causes = ("cause",) * any(delta.cause != why.cause for delta in why.dispatches)
    headers = ("dispatch", *causes, "component", size, "stack frame")
    rows = list[Row]()
    for line in map(dispatch_line, why.dispatches[:most]):
        numbers = (line.numbers[label].text for label in ("code", "stack frame"))
        about = (*(line.cause for _ in causes), _component(line.component, _COMPONENT))
        rows.append((name_cell(clip(line.name, _NAME)), *about, *numbers))
    notes, lines = (
        by(why.dispatches if most else (), lambda delta: clean(delta.note, _NOTE)),
        list[Phrase](),
    )
    for told in (
        "",
        clean(why.why, _NOTE),
    ):  # what differs, once; not what the cell's `why` said already
        notes.pop(told, None)
    for note, (one, *others) in islice(notes.items(), min(4, most)):
        more, passed = (
            (f" and {plural(len(others), 'other dispatch')}" if others else ""),
            passed_words(one),
        )
        alone = "the first " if passed and others else ""
        lines.append(
            phrase(
                code(clean(one.name, _NAME)),
                more,
                f": {note}",
                f"; {alone}{passed}" if passed else "",
            )
        )
    pieces: list[Block] = []
    for name, text, more_lines in diffs(
        why.dispatches, 1 + limits.details, limits.diff_lines
    ):
        hidden = (
            f"and {plural(more_lines, 'more line')}, in report.json"
            if more_lines
            else ""
        )
        title = phrase("The smallest piece of ", code(name), " that differs:")
        pieces += [
            Sentence(title, small=True),
            Code(text, language="diff"),
            Sentence(hidden, small=True),
        ]
    moved = [component_row(delta) for delta in why.components[: min(8, most)]]
    components = [(_component(name, 2 * _COMPONENT), *sizes) for name, *sizes in moved]
    parts = (
        "component",
        "dispatch sites",
        f"{size}, base → head",
        "stack frame, base → head",
    )
    families = List(family_lines(head.families if head else (), most))
    causes_said = by_cause(why)
    said = (
        phrase(why_words(why), "."),
        rest(why),
        f"By cause: {causes_said}." if causes_said else "",
    )
    return Fold(
        phrase(facts.named(key), f": {cause_words(why.cause)}"),
        (
            Sentence(joined(filter(None, said), " ")),
            Table(
                headers,
                listing(rows, len(why.dispatches), "dispatch"),
                len(headers) - 2,
                small=True,
            ),
            List(listing(lines, len(notes), "note")),
            *pieces,
            Table(
                parts,
                listing(components, len(why.components), "changed component"),
                small=True,
            ),
            section(
                "What deduplication left behind",
                *([families] * limits.details),
                name="families",
            ),
        ),
        name="story",
    )


def _component(name: str, most: int) -> Words:
    return name if name == UNATTRIBUTED else name_cell(clip(name, most))
