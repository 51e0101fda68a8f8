"""Draw the tables of a history: totals, steps and the artifact of each build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.delta import value_of
from bot.core.explanation import Step
from bot.core.history_totals import TRACKED
from bot.core.metrics import METRIC_BY_ID
from bot.core.snapshot import CellKey
from bot.show.blocks import (
    Block,
    Footnotes,
    List,
    Phrase,
    Row,
    Sentence,
    Table,
    fair_in_order,
    joined,
    listed,
    listing,
    name_cell,
    phrase,
    section,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import UNKNOWN, amount, change, plural, relative, signed
from bot.show.history_facts import HistoryFacts
from bot.show.history_sentences import counted_builds
from bot.show.history_words import (
    ARTIFACT,
    gap_words,
    metric_label,
    shown_name,
    varying_words,
)
from bot.show.views import Room

_GAP = "–"  # stands for a value without an artifact
_CAUSES = 3
_WHAT = 160
_LEGEND = (
    "– is a gap: no artifact, with the reason in the footnote. n/a: unknown for this"
    " release. Regions folded: the share of dispatch regions that deduplication folds,"
    " in the first and the last known release. Changed most: the release with the"
    " largest change since the last measured release, and its cause. A gap has no"
    " change. A number with several values has no change either."
)


def total_tables(facts: HistoryFacts, columns: Sequence[str]) -> Iterator[Table]:
    """Yield the table of each target's artifacts, and that of all metrics together."""
    last = len(columns) + 2
    headers = ("builds", *map(shown_name, columns), "change")
    column_order = (last, 2, *range(last - 1, 2, -1), 1)
    yield Table(
        ("target", *headers),
        listed(_target_rows(facts, columns), "target"),
        caption="Artifacts of all models, bytes",
        wanted=column_order,
    )
    yield Table(
        ("total", *headers),
        listed(_metric_rows(facts, columns), "metric"),
        caption="All targets together",
        wanted=column_order,
    )


def _target_rows(facts: HistoryFacts, columns: Sequence[str]) -> list[Row]:
    """Return the artifacts of each target and of all; empty if none was measured."""
    if not facts.shown:
        return []
    rows = []
    for target in facts.totals:
        if target is None:
            name = phrase(strong("all"))
        else:
            name = name_cell(clip(target, NAME_LIMIT))
        rows.append(
            _total_row(
                facts, metric=ARTIFACT, target=target, columns=columns, name=name
            )
        )
    return rows


def _metric_rows(facts: HistoryFacts, columns: Sequence[str]) -> list[Row]:
    """Return the total of each metric that some build has, over all targets."""
    totals = facts.totals.get(None)
    if not totals:
        return []
    rows = []
    for metric in TRACKED:
        if not totals[0].cells.get(metric):
            continue
        over = "all together"
        if METRIC_BY_ID[metric].over == "largest":
            over = "the largest"
        rows.append(
            _total_row(
                facts,
                metric=metric,
                target=None,
                columns=columns,
                name=phrase(f"{metric_label(metric)}, {over}"),
            )
        )
    return rows


def _total_row(
    facts: HistoryFacts,
    metric: str,
    target: str | None,
    columns: Sequence[str],
    name: Phrase,
) -> Row:
    by_name = {total.compiler: total.metrics[metric] for total in facts.totals[target]}
    values = []
    for column in columns:
        if column in by_name:
            values.append(amount(by_name[column], "count"))
        else:
            values.append(_GAP)
    grown = UNKNOWN
    if len(facts.shown) > 1:
        grown = relative(by_name[facts.shown[0]], by_name[facts.shown[-1]])
    return (
        name,
        counted_builds(facts, metric, target).partition(" build")[0],
        *values,
        grown,
    )


def step_table(facts: HistoryFacts, room: Room, count: int) -> Iterator[Table]:
    """Yield the table with a row for each step that changed anything.

    With too few rows for all steps, it has the last ones.
    """
    cause_limit = _CAUSES
    if room.place == "terminal":
        cause_limit = 1
    steps = [step for step in facts.history.steps if _is_change(step)]
    rows = [_step_row(step, cause_limit) for step in steps[-max(1, count) :]]
    quiet = len(facts.history.steps) - len(steps)
    quiet_note = ""
    if quiet:
        verb = "has" if quiet == 1 else "have"
        quiet_note = f"; {plural(quiet, 'step')} without a change of size {verb} no row"
    yield Table(
        (
            "step",
            "root causes",
            "builds",
            "artifacts",
            "larger",
            "smaller",
            "broken",
            "fixed",
        ),
        listing(rows, len(steps), "step"),
        numbers_from=2,
        caption=(
            "From release to release, over the builds that are measured in"
            f" both{quiet_note}"
        ),
        sentences=1,
        wanted=(3, 6, 4, 5, 7, 2),
    )


def _is_change(step: Step) -> bool:
    counts = (step.larger, step.smaller, step.broken, step.fixed)
    return bool(step.causes or any(counts))


def _step_row(step: Step, cause_limit: int) -> Row:
    causes = []
    for cause in step.causes[:cause_limit]:
        cause_text = clip(clean(cause.what), _WHAT)
        causes.append(f"{cause_text} ({signed(cause.net_bytes)})")
    moved = UNKNOWN
    if step.base_bytes is not None:
        moved = change(step.base_bytes, step.head_bytes)
    return (
        f"{shown_name(step.base)} → {shown_name(step.head)}",
        joined(causes, "; ") or _GAP,
        str(step.cells),
        moved,
        f"{step.larger:,}",
        f"{step.smaller:,}",
        f"{step.broken:,}",
        f"{step.fixed:,}",
    )


def build_blocks(
    facts: HistoryFacts, columns: Sequence[str], notes: int, count: int
) -> Iterator[Block]:
    """Yield the table of the builds' artifacts, and the reasons of its gaps."""
    footnotes = Footnotes(notes)
    last = len(columns) + 2
    keys = fair_in_order([*facts.rows], lambda key: key.model, count)
    rows = []
    for key in keys:
        rows.append(_cell(facts, key=key, columns=columns, footnotes=footnotes))
    headers = (
        "model",
        "target",
        *map(shown_name, columns),
        "regions folded",
        "changed most",
    )
    column_order = (last + 1, last - 1, last, *range(2, last - 1))
    title = "Artifact, bytes, of each build"
    table = Table(
        headers,
        listing(rows, len(facts.rows), "build"),
        numbers_from=2,
        wanted=column_order,
    )
    yield section(title, table, name="cells")
    yield List(footnotes.listed(), small=True, name="footnotes")
    yield Sentence(phrase(_LEGEND), small=True)


def _cell(
    facts: HistoryFacts, key: CellKey, columns: Sequence[str], footnotes: Footnotes
) -> Row:
    """Return the row of a build: its artifact in each release, and its top change."""
    cells = dict(zip(facts.names, facts.rows[key], strict=True))
    values = []
    for column in columns:
        cell = cells[column]
        if cell.measured:
            size = amount(value_of(cell, ARTIFACT), "count")
            values.append(f"{size}{footnotes.mark(varying_words(cell))}")
        else:
            values.append(f"{_GAP}{footnotes.mark(gap_words(cell))}")
    return (
        name_cell(clip(key.model, NAME_LIMIT)),
        name_cell(clip(key.target, NAME_LIMIT)),
        *map(phrase, values),
        phrase(facts.folded(key)),
        phrase(facts.moved_most(key) or _GAP),
    )
