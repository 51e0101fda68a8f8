"""Draw the changed builds, the alarming ones first: why each changed, and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from bot.core.cell_story import cell_story
from bot.core.delta import CellDelta, exact_changes
from bot.core.explanation import UNATTRIBUTED, Explanation
from bot.core.metrics import METRICS, code_words
from bot.core.snapshot import CellKey
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Line,
    List,
    Listing,
    Phrase,
    Rank,
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
    part,
    phrase,
    section,
)
from bot.show.escape import clean, clip
from bot.show.facts import MARKS, Facts, mark_of
from bot.show.filters import change, plural, sides
from bot.show.root_causes import root_details, shown_roots
from bot.show.views import View
from bot.show.why import (
    by_cause,
    cause_words,
    component_headers,
    component_row,
    diffs,
    dispatch_line,
    family_lines,
    passed_words,
    rest,
    why_words,
)

_NAME = 42
_COMPONENT = 36
_NOTE = 160


def changed_builds(facts: Facts, view: View) -> Fold:
    """Return the fold of the changed builds, the alarming ones first.

    It has their causes and, if there is room, every metric.
    """
    keys = _explained_keys(facts)

    def stories(count: int) -> Iterator[Block]:
        shown_keys = fair_in_order(keys, lambda key: key.model, count)
        for key in shown_keys:
            yield _story(facts, key, view)
        yield more_of(listing(shown_keys, len(keys), "explained build"))

    title = plural(len(keys), "build")
    if facts.count("changed"):
        title = plural(facts.count("changed"), "changed build")
    if keys:
        title = f"Why: {title}"
    metrics: tuple[Block, ...] = ()
    if view.changed:
        metrics = (part(partial(_every_metric, facts), view.changed, Rank.ROW),)
    return Fold(
        title,
        (
            List(listed(_cause_lines(facts, view))),
            part(stories, view.whys, Rank.STORY),
            Fold("Every metric", metrics, name="metrics"),
        ),
        name="changed",
    )


def _explained_keys(facts: Facts) -> list[CellKey]:
    """Return the explained builds of both sides, the alarming ones first."""
    alarming = [finding.key for finding in facts.report.verdict.news]
    keys = []
    for key in dict.fromkeys([*alarming, *facts.deltas]):
        delta = facts.deltas.get(key)
        if delta is None or key not in facts.report.explanations:
            continue
        if delta.state in ("changed", "same"):
            keys.append(key)
    return keys


def _cause_lines(facts: Facts, view: View) -> Iterator[Line]:
    """Yield the details of the root causes, unless these are shown with each cause."""
    if view.details:
        return
    roots = facts.roots[: shown_roots(facts, view)]
    for number, root in enumerate(roots, 1):
        detail = root_details(facts, root)
        if detail:
            yield Line(phrase(f"Cause {number}: ", detail))


def _every_metric(facts: Facts, count: int) -> Iterator[Table]:
    """Yield the table of the changed metrics of the changed builds.

    If there are too many, models take turns.
    """
    pairs: list[tuple[CellDelta, str]] = []
    for delta in facts.states["changed"]:
        changed_ids = [value.id for value in exact_changes(delta.metrics.values())]
        pairs += [(delta, metric_id) for metric_id in changed_ids or [METRICS[0].id]]
    rows = list[Row]()
    for delta, metric_id in fair_in_order(pairs, lambda pair: pair[0].key.model, count):
        metric = delta.metrics[metric_id].quantity
        base, head = delta.metrics[metric_id].sides
        mark = _metric_mark(facts, delta.key, metric_id)
        rows.append(
            (
                *facts.names(delta.key),
                phrase(facts.label(metric, delta.key)),
                phrase(sides(base, head, metric.unit)),
                phrase(f"{change(base, head, metric.unit)}{mark}"),
            )
        )
    headers = ("model", "target", "metric", "base → head", "change")
    yield Table(headers, listing(rows, len(pairs), "changed metric"), numbers_from=3)


def _metric_mark(facts: Facts, key: CellKey, metric_id: str) -> str:
    """Return the mark of a build's worst finding about a metric, or nothing."""
    for finding in facts.findings.get(key, ()):
        if finding.metric == metric_id:
            return f" {MARKS[mark_of(finding)]}"
    return ""


def _story(facts: Facts, key: CellKey, view: View) -> Fold:
    """Return why one build changed: its causes, dispatches, diffs and components."""
    story = cell_story(facts.index, key)
    explanation = facts.report.explanations[key]
    count = view.dispatches
    code_label = code_words("code", story.backend)
    families = List(family_lines(story.families, count))
    causes = by_cause(explanation)
    sentences = (
        phrase(why_words(explanation), "."),
        rest(explanation),
        f"By cause: {causes}." if causes else "",
    )
    return Fold(
        phrase(facts.named(key), f": {cause_words(explanation.cause)}"),
        (
            Sentence(joined(filter(None, sentences), " ")),
            _dispatch_table(explanation, code_label, count),
            List(_note_lines(explanation, count)),
            *_diff_blocks(explanation, view),
            _component_table(explanation, code_label, count),
            section(
                "What deduplication left behind",
                *([families] * view.details),
                name="families",
            ),
        ),
        name="story",
    )


def _dispatch_table(explanation: Explanation, code_label: str, count: int) -> Table:
    """Return the first `count` dispatches.

    They have their causes if a dispatch has another cause than the build.
    """
    dispatches = explanation.dispatches
    has_causes = any(delta.cause != explanation.cause for delta in dispatches)
    rows = list[Row]()
    for line in map(dispatch_line, dispatches[:count]):
        row: list[Words] = [name_cell(clip(line.name, _NAME))]
        if has_causes:
            row.append(line.cause)
        row.append(_component(line.component, _COMPONENT))
        row += [line.numbers[label].text for label in ("code", "stack frame")]
        rows.append(tuple(row))
    causes = ("cause",) if has_causes else ()
    headers = ("dispatch", *causes, "component", code_label, "stack frame")
    return Table(
        headers,
        listing(rows, len(dispatches), "dispatch"),
        len(headers) - 2,
        small=True,
    )


def _note_lines(explanation: Explanation, count: int) -> Listing[Phrase]:
    """Return the differences of the dispatches, each note once, at most four of them.

    The reason of the build itself is left out.
    """
    dispatches = explanation.dispatches if count else ()
    groups = by(dispatches, lambda delta: clean(delta.note, _NOTE))
    groups.pop("", None)
    groups.pop(clean(explanation.why, _NOTE), None)
    lines = list[Phrase]()
    for note, (delta, *same_note) in islice(groups.items(), min(4, count)):
        passed = passed_words(delta)
        also = ""
        ending = f"; {passed}" if passed else ""
        if same_note:
            also = f" and {plural(len(same_note), 'other dispatch')}"
            if passed:
                ending = f"; the first {passed}"
        lines.append(phrase(code(clean(delta.name, _NAME)), also, f": {note}", ending))
    return listing(lines, len(groups), "note")


def _diff_blocks(explanation: Explanation, view: View) -> Iterator[Block]:
    """Yield the smallest pieces of dispatches that differ."""
    count = 1 + view.details
    for name, text, more_lines in diffs(explanation.dispatches, count, view.diff_lines):
        yield Sentence(
            phrase("The smallest piece of ", code(name), " that differs:"), small=True
        )
        yield Code(text, language="diff")
        hidden = ""
        if more_lines:
            hidden = f"and {plural(more_lines, 'more line')}, in report.json"
        yield Sentence(hidden, small=True)


def _component_table(explanation: Explanation, code_label: str, count: int) -> Table:
    """Return the components that changed, at most eight of them."""
    rows = list[Row]()
    for component in explanation.components[: min(8, count)]:
        name, *sizes = component_row(component)
        rows.append((_component(name, 2 * _COMPONENT), *sizes))
    components = listing(rows, len(explanation.components), "changed component")
    return Table(component_headers(code_label), components, small=True)


def _component(name: str, limit: int) -> Words:
    if name == UNATTRIBUTED:
        return name
    return name_cell(clip(name, limit))
