"""Show a history: totals, steps with their root causes, and each build's changes.

`write_history` writes the answer as JSON, as Markdown and as a page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from bot.core.delta import seen_values, value_of
from bot.core.explanation import Step
from bot.core.history import History, Move, history_lines
from bot.core.history_totals import TRACKED
from bot.core.json_text import canonical
from bot.core.metrics import METRIC_BY_ID
from bot.core.planned import short_names
from bot.core.snapshot import Cell, CellKey
from bot.core.study import UNMEASURED
from bot.show.addresses import cell_address, segment
from bot.show.blocks import (
    NOTE_LIMIT,
    Block,
    Code,
    Fold,
    Footnotes,
    List,
    Phrase,
    Picture,
    Rank,
    Row,
    Sentence,
    Span,
    Table,
    bounded,
    by,
    code,
    fair_in_order,
    joined,
    listed,
    listing,
    name_cell,
    part,
    phrase,
    section,
    strong,
)
from bot.show.deduplication import folded_shares, folded_words
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import (
    UNKNOWN,
    amount,
    change,
    percent,
    plural,
    relative,
    sides,
    signed,
)
from bot.show.renderers import data_element, write_answer
from bot.show.slow_growth import growth_section
from bot.show.views import Room
from bot.show.why import cause_words

# Half of what GitHub takes as the summary of one step, in UTF-8
HISTORY_LIMIT_BYTES = 512 * 1024
_ARTIFACT = "artifact_bytes"
_GAP = "–"  # stands for a value without an artifact
_OVER = "over-stack-limit"
_REFUSED = "above the compiler's stack limit, measured with the limit lifted"
_UNITS = {"bytes": ", bytes", "count": ""}
_CAUSES = 3
_WHAT = 160
_NOTE = 400
_WHY = 400
_CHART_WHY = 240
_COMMAND = 4_000
# A build's table has a row for each of so many releases. With more releases, those in
# which nothing changed have no row.
_ALL_ROWS = 30
_CELL_BYTES = 1_300
_ROW_BYTES = 420
_CELLS_BYTES = 4_200_000
"""Bytes on the page: of a build without rows, of a row, and the room for all builds."""
_LEGEND = (
    "– is a gap: no artifact, with the reason in the footnote. n/a: unknown for this"
    " release. Regions folded: the share of dispatch regions that deduplication folds,"
    " in the first and the last known release. Changed most: the release with the"
    " largest change since the last measured release, and its cause. A gap has no"
    " change. A number with several values has no change either."
)


def write_history(history: History, templates: Path | None, out: Path) -> list[Path]:
    """Write `history.json`, `history.md` and `history.html`; return their paths.

    The Markdown has at most `HISTORY_LIMIT_BYTES` in UTF-8.
    `templates`: the user's templates, searched before the default ones.
    """
    return write_answer(
        "history",
        json=history_lines(history),
        blocks=partial(history_blocks, history),
        limit_bytes=HISTORY_LIMIT_BYTES,
        templates_dir=templates,
        out=out,
        styles=("history/history.css",),
        scripts=("history/history.js",),
    )


def history_blocks(history: History, room: Room) -> tuple[Block, ...]:
    """Return the whole answer.

    Builds are rows of a table. A page has a fold for each build, and charts of all.
    """
    facts = _Facts(history)
    names = facts.names
    if len(names) <= room.columns:
        columns = names
    else:
        columns = (names[0], *names[len(names) - room.columns + 1 :])
    charted: Mapping[str, Sequence[dict[str, Any]]] = {}
    if room.place == "page":
        charted = _shown_models(facts)
    charts: tuple[tuple[str, str], ...] = ()
    if charted:
        chart_json = data_element("page:history", _chart_data(facts, charted))
        charts = (("page:history", chart_json),)
    builds: tuple[Block, ...]
    if room.place == "page":
        builds = tuple(_models(facts, charted))
    else:
        builds = (
            part(partial(_cells, facts, columns, room.lines), room.rows, Rank.ROW),
        )
    return (
        Sentence(_headline(facts)),
        Sentence(_counted(facts, columns), small=room.place == "page"),
        section(
            "What to know",
            bounded(List(listed(_notes(history), "note")), Rank.LINE),
            name="notes",
            address="page:notes",
        ),
        Picture(charts, name="charts"),
        section(
            "Totals", *_totals(facts, columns), name="totals", address="page:totals"
        ),
        growth_section(history.growths),
        section(
            "Steps and their root causes",
            part(partial(_steps, facts, room), room.rows // 4, Rank.ANSWER),
            name="steps",
            address="page:steps",
        ),
        *builds,
    )


class _Facts:
    """A history, indexed."""

    def __init__(self, history: History) -> None:
        self.history = history
        # each cell that was tried, in the order of the releases
        self.rows = history.rows
        # totals of a target, or None for all, by release
        self.totals = by(history.totals, lambda total: total.target)
        # names: of all releases, gaps too; shown: of those that measured anything
        self.names = tuple(variant.name for variant in history.study.variants)
        self.shown = tuple(variant.name for variant in history.study.measured)
        # with the cells that have a row
        self.models = by(self.rows, lambda key: key.model)
        self.targets = tuple(sorted({key.target for key in self.rows}))

    def metrics_of(self, key: CellKey) -> tuple[str, ...]:
        """Return the tracked metrics that some release knows of the cell."""
        return tuple(id_ for id_ in TRACKED if self._has_metric(key, id_))

    def _has_metric(self, key: CellKey, metric: str) -> bool:
        return any(value_of(cell, metric) is not None for cell in self.rows[key])

    def folded(self, key: CellKey) -> str:
        """Return the share of regions that deduplication folds: `68 % → 61 %`.

        The shares are those of the first and the last release that know it. Return
        `n/a` if no release knows it.
        """
        shares = [text for text in folded_shares(self.rows[key]) if text != UNKNOWN]
        ends = dict.fromkeys((*shares[:1], *shares[-1:]))
        return " → ".join(ends) or UNKNOWN

    def since(self, release: str, since: str) -> str:
        """Return `since 3.10.0`; empty if that is the neighbour."""
        place = self.names.index(release)
        if place and self.names[place - 1] == since:
            return ""
        return f"since {clean(since, NAME_LIMIT)}"

    def points(self, key: CellKey) -> list[tuple[str, Cell, Move | None]]:
        """Return the cell in each release, with its change there."""
        row = zip(self.names, self.rows[key], strict=True)
        return [(name, cell, self.history.moves.get((name, key))) for name, cell in row]

    def why(self, release: str, move: Move | None) -> list[str]:
        """Return since when and why a cell changed in a release.

        It is empty if the cell did not change.
        """
        if not move:
            return []
        cause = move.cause and cause_words(move.cause)
        reason = ": ".join(filter(None, (cause, move.why)))
        return [self.since(release, move.since), reason]

    def moved(self, key: CellKey) -> list[tuple[str, Cell, Move]]:
        """Return the releases in which the artifact of a cell changed."""
        return [
            (name, cell, move)
            for name, cell, move in self.points(key)
            if move and _ARTIFACT in move.changes
        ]

    def moved_most(self, key: CellKey) -> str:
        """Return the largest change: `3.11.0: +26,464 (+55.3 %), strategy`.

        It is empty if the artifact never changed.
        """
        moved = self.moved(key)
        if not moved:
            return ""
        release, cell, move = max(
            moved, key=lambda point: abs(point[2].changes[_ARTIFACT])
        )
        since = self.since(release, move.since)
        cause = ""
        if move.cause:
            cause = f", {cause_words(move.cause)}"
        change_text = _change(move.changes[_ARTIFACT], cell.value(_ARTIFACT))
        return f"{_name(release)}{since and f' ({since})'}: {change_text}{clean(cause)}"


# Words.


def _label(metric: str) -> str:
    return f"{METRIC_BY_ID[metric].label}{_UNITS[METRIC_BY_ID[metric].unit]}"


def _change(moved: int, value: int | None) -> str:
    """Return `+26,464 (+55.3 %)`; `value` is the one after the change."""
    base = (value or 0) - moved
    text = signed(moved, "count")
    if not base:
        return text
    return f"{text} ({percent(moved / base)})"


def _gap(cell: Cell) -> str:
    reason = clip(clean(cell.reason), NOTE_LIMIT) or "no reason is known"
    if cell.status == UNMEASURED:
        return reason
    return f"{cell.status}: {reason}"


def _varies(cell: Cell) -> str:
    """Return the note that a cell's command gives artifacts of several sizes.

    It is empty if there is only one size.
    """
    sizes = " or ".join(map(amount, seen_values(cell).get(_ARTIFACT, ())))
    if sizes:
        return f"non-deterministic: the same command gives {sizes}"
    return ""


def _name(text: str) -> str:
    return clean(text, NAME_LIMIT)


# Sentences.


def _headline(facts: _Facts) -> Phrase:
    """Return `Code size from 3.8.0 to 3.13.0: artifacts +12,345 B (+3.1 %)`."""
    first, *later = facts.shown or ("no release",)
    if later:
        ends = phrase("from ", strong(_name(first)), " to ", strong(_name(later[-1])))
    else:
        ends = phrase("of ", strong(_name(first)))
    sizes = [total.metrics[_ARTIFACT] for total in facts.totals.get(None, ())]
    if len(sizes) < 2 or sizes[0] is None or sizes[-1] is None:
        return phrase("Code size ", ends)
    grown = f": artifacts {change(sizes[0], sizes[-1])} over {_over(facts, _ARTIFACT)}"
    return phrase("Code size ", ends, grown)


def _over(facts: _Facts, metric: str, target: str | None = None) -> str:
    """Return how many builds a total is over: `15 of 33 builds`."""
    totals = facts.totals.get(target, ())
    count = 0
    if totals:
        count = totals[0].cells.get(metric, 0)
    row_count = sum(target in (None, key.target) for key in facts.rows)
    return f"{count:,} of {plural(row_count, 'build')}"


def _counted(facts: _Facts, columns: Sequence[str]) -> Phrase:
    models = plural(len(facts.models), "model")
    targets = plural(len(facts.targets), "target")
    measured = sum(cell.measured for row in facts.rows.values() for cell in row)
    gaps = len(facts.rows) * len(facts.names) - measured
    points = plural(measured, "point")
    if gaps:
        points = f"{points}, and {plural(gaps, 'gap')} with reasons"
    releases = plural(len(facts.names), "release")
    left_out = len(facts.names) - len(columns)
    sentences = [
        (
            f"{plural(len(facts.rows), 'build')} of {models} on {targets} in"
            f" {releases}: {points}."
        ),
        (
            "Totals count only builds with exactly one value in every measured release."
            " So a gap never looks like a change."
        ),
    ]
    if left_out:
        sentences.append(
            f"No column here for {plural(left_out, 'release')} between the first and"
            " the last ones."
        )
    return phrase(" ".join(sentences))


def _notes(history: History) -> Iterator[Phrase]:
    """Yield a line for each release that is a gap, and for each note of a release."""
    for release in history.study.variants:
        name = phrase(strong(_name(release.name)), ": ")
        if release.reason:
            yield phrase(
                name, "could not be measured: ", clip(clean(release.reason), _NOTE)
            )
        for note in release.snapshot.notes if release.snapshot else ():
            yield phrase(name, clip(clean(note), _NOTE))


# Tables.


def _totals(facts: _Facts, columns: Sequence[str]) -> Iterator[Table]:
    """Yield the table of each target's artifacts, and that of all metrics together."""
    last = len(columns) + 2
    headers = ("builds", *map(_name, columns), "change")
    column_order = (last, 2, *range(last - 1, 2, -1), 1)
    rows = list[Row]()
    sums = list[Row]()
    for target in facts.totals if facts.shown else ():
        if target is None:
            name = phrase(strong("all"))
        else:
            name = name_cell(clip(target, NAME_LIMIT))
        rows.append(
            _total_row(
                facts, metric=_ARTIFACT, target=target, columns=columns, name=name
            )
        )
    for metric in TRACKED if facts.totals.get(None) else ():
        if facts.totals[None][0].cells.get(metric):
            over = "all together"
            if METRIC_BY_ID[metric].over == "largest":
                over = "the largest"
            sums.append(
                _total_row(
                    facts,
                    metric=metric,
                    target=None,
                    columns=columns,
                    name=phrase(f"{_label(metric)}, {over}"),
                )
            )
    yield Table(
        ("target", *headers),
        listed(rows, "target"),
        caption="Artifacts of all models, bytes",
        wanted=column_order,
    )
    yield Table(
        ("total", *headers),
        listed(sums, "metric"),
        caption="All targets together",
        wanted=column_order,
    )


def _total_row(
    facts: _Facts, metric: str, target: str | None, columns: Sequence[str], name: Phrase
) -> Row:
    by_name = {total.compiler: total.metrics[metric] for total in facts.totals[target]}
    values = [
        amount(by_name[column], "count") if column in by_name else _GAP
        for column in columns
    ]
    grown = UNKNOWN
    if len(facts.shown) > 1:
        grown = relative(by_name[facts.shown[0]], by_name[facts.shown[-1]])
    return (name, _over(facts, metric, target).partition(" build")[0], *values, grown)


def _steps(facts: _Facts, room: Room, count: int) -> Iterator[Table]:
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
    causes = (
        f"{clip(clean(cause.what), _WHAT)} ({signed(cause.net_bytes)})"
        for cause in step.causes[:cause_limit]
    )
    moved = UNKNOWN
    if step.base_bytes is not None:
        moved = change(step.base_bytes, step.head_bytes)
    return (
        f"{_name(step.base)} → {_name(step.head)}",
        joined(causes, "; ") or _GAP,
        str(step.cells),
        moved,
        f"{step.larger:,}",
        f"{step.smaller:,}",
        f"{step.broken:,}",
        f"{step.fixed:,}",
    )


def _cells(
    facts: _Facts, columns: Sequence[str], notes: int, count: int
) -> Iterator[Block]:
    """Yield the table of the builds' artifacts, and the reasons of its gaps."""
    footnotes = Footnotes(notes)
    last = len(columns) + 2
    keys = fair_in_order([*facts.rows], lambda key: key.model, count)
    rows = listing(
        [_cell(facts, key=key, columns=columns, footnotes=footnotes) for key in keys],
        len(facts.rows),
        "build",
    )
    headers = (
        "model",
        "target",
        *map(_name, columns),
        "regions folded",
        "changed most",
    )
    column_order = (last + 1, last - 1, last, *range(2, last - 1))
    title = "Artifact, bytes, of each build"
    yield section(
        title, Table(headers, rows, numbers_from=2, wanted=column_order), name="cells"
    )
    yield List(footnotes.listed(), small=True, name="footnotes")
    yield Sentence(phrase(_LEGEND), small=True)


def _cell(
    facts: _Facts, key: CellKey, columns: Sequence[str], footnotes: Footnotes
) -> Row:
    """Return the row of a build: its artifact in each release, and its top change."""
    cells = dict(zip(facts.names, facts.rows[key], strict=True))
    values = []
    for column in columns:
        cell = cells[column]
        if cell.measured:
            size = amount(value_of(cell, _ARTIFACT), "count")
            values.append(f"{size}{footnotes.mark(_varies(cell))}")
        else:
            values.append(f"{_GAP}{footnotes.mark(_gap(cell))}")
    names = (name_cell(clip(name, NAME_LIMIT)) for name in (key.model, key.target))
    return (
        *names,
        *map(phrase, (*values, facts.folded(key), facts.moved_most(key) or _GAP)),
    )


# The page.


def _shown_models(facts: _Facts) -> Mapping[str, Sequence[dict[str, Any]]]:
    """Return the chart lines of each model, in the order of the models.

    Where there is no room for all models, they are those whose artifacts changed most.
    """
    charts = dict[str, list[dict[str, Any]]]()
    room = _CELLS_BYTES
    moved = {model: _total_change(facts, model) for model in facts.models}
    for model in sorted(moved, key=lambda name: -moved[name]):
        lines = [_chart_cell(facts, key) for key in facts.models[model]]
        rows = sum(len(_told_rows(facts, key)) for key in facts.models[model])
        room -= len(lines) * _CELL_BYTES
        room -= rows * _ROW_BYTES
        room -= len(canonical({"lines": lines}))
        if room < 0 and charts:
            break
        charts[model] = lines
    return {model: charts[model] for model in moved if model in charts}


def _total_change(facts: _Facts, model: str) -> int:
    """Return by how many bytes the artifacts of a model's builds grew and shrank."""
    moves = [move for key in facts.models[model] for _, _, move in facts.moved(key)]
    return sum(abs(move.changes[_ARTIFACT]) for move in moves)


def _models(facts: _Facts, models: Collection[str]) -> Iterator[Block]:
    """Yield a section for each model, in which each build is folded."""
    if len(models) < len(facts.models):
        of = (
            f"Of {plural(len(facts.models), 'model')} this page shows the"
            f" {len(models):,} whose artifacts changed most"
        )
        yield Sentence(f"{of}; history.json and the totals have all models.")
    for model in models:
        cells = tuple(_opened(facts, key) for key in facts.models[model])
        yield Fold(
            phrase(code(clip(model, NAME_LIMIT))),
            cells,
            is_open=True,
            address=segment(model),
        )


def _told_rows(facts: _Facts, key: CellKey) -> list[int]:
    """Return the places of the releases that have a row in a build's table."""
    cells = facts.rows[key]
    metrics = facts.metrics_of(key)
    states = [
        (cell.status, cell.reason, *(value_of(cell, id_) for id_ in metrics))
        for cell in cells
    ]
    if len(cells) <= _ALL_ROWS:
        return [*range(len(cells))]
    ends = (0, len(cells) - 1)
    return [
        place
        for place in range(len(cells))
        if place in ends or states[place] != states[place - 1]
    ]


def _opened(facts: _Facts, key: CellKey) -> Fold:
    """Return the fold of a build, with a row for each release.

    Where there are many releases, those in which nothing changed have no row.
    """
    metrics = facts.metrics_of(key)
    cells = facts.rows[key]
    address = cell_address(key)
    points = facts.points(key)
    rows = [_release(facts, metrics, *points[row]) for row in _told_rows(facts, key)]
    hidden = len(points) - len(rows)
    quiet = ""
    if hidden:
        verb = "has" if hidden == 1 else "have"
        quiet = f"{plural(hidden, 'release')} in which nothing changed {verb} no row."
    command = next((cell.command for cell in reversed(cells) if cell.command), "")
    if len(command) > _COMMAND:
        command = ""
    largest_move = facts.moved_most(key)
    caption = phrase(
        code(clip(key.model, NAME_LIMIT)), " on ", code(clip(key.target, NAME_LIMIT))
    )
    headers = ["release", *map(_label, metrics)]
    if facts.folded(key) != UNKNOWN:
        headers.append("regions folded")
    headers.append("why it changed")
    return Fold(
        phrase(
            code(key.target),
            f" {_ends(cells)}",
            Span(f" · changed most in {largest_move}" if largest_move else "", "small"),
        ),
        (
            Sentence((Span("Address of this build", to=address),), small=True),
            Table(
                tuple(headers),
                listed(rows, "release"),
                caption=caption,
                sentences=len(headers) - 1,
            ),
            Sentence(quiet, small=True),
            Code(command),
        ),
        address=address,
    )


def _ends(cells: Sequence[Cell]) -> str:
    """Return `47,704 → 64,920 B (+36.1 %)`, of the first and last measured release."""
    sizes = [size for cell in cells if (size := value_of(cell, _ARTIFACT)) is not None]
    if not sizes:
        return "no artifact in any release"
    gaps = sum(not cell.measured for cell in cells)
    text = sides(sizes[0], sizes[-1])
    if sizes[0] != sizes[-1]:
        text += f" ({relative(sizes[0], sizes[-1])})"
    if gaps:
        text += f", {gaps} of {len(cells)} without an artifact"
    return text


def _release(
    facts: _Facts, metrics: Sequence[str], name: str, cell: Cell, move: Move | None
) -> Row:
    """Return the row of a release: values, their changes, and why they changed.

    The row of a gap has only its reason.
    """
    if not cell.measured:
        return (phrase(name), phrase(_gap(cell)))
    values = []
    for metric in metrics:
        moved = ""
        if move is not None and metric in move.changes:
            moved = _change(move.changes[metric], cell.value(metric))
        values.append(
            phrase(amount(value_of(cell, metric), "count"), Span(moved, "small"))
        )
    reasons = (
        *facts.why(name, move),
        _REFUSED if cell.status == _OVER else "",
        _varies(cell),
    )
    if facts.folded(cell.key) != UNKNOWN:
        values.append(phrase(folded_words(cell)))
    return (
        phrase(name),
        *values,
        phrase(clip("; ".join(clean(reason) for reason in reasons if reason), _WHY)),
    )


def _chart_data(facts: _Facts, charted: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    """Return releases, metrics, and the values of each target for each chart, as JSON.

    Nothing in it can end a script element.
    """
    backends = facts.history.study.targets
    short = short_names(
        facts.targets, {name: backends.get(name, "") for name in facts.targets}
    )
    data = {
        "releases": [_name(name) for name in facts.names],
        "marks": _compiler_marks(facts.history),
        "metrics": [
            {"id": id_, "label": _label(id_), "unit": METRIC_BY_ID[id_].unit}
            for id_ in TRACKED
        ],
        "targets": [
            {"name": _name(name), "short": clean(clip(short[name], NAME_LIMIT), 24)}
            for name in facts.targets
        ],
        "total": [
            _chart_total(facts, target)
            for target in facts.targets
            if target in facts.totals
        ],
        "models": [
            {"name": _name(model), "address": segment(model), "series": series}
            for model, series in charted.items()
        ],
    }
    return canonical(data).decode().replace("<", "\\u003c").replace("&", "\\u0026")


def _compiler_marks(history: History) -> list[dict[str, Any]]:
    """Return the releases at which another compiler begins, and which one it is."""
    marks = list[dict[str, Any]]()
    before = ""
    for place, release in enumerate(history.study.variants):
        if release.compiler and release.compiler.digest not in ("", before):
            text = release.spec
            if release.compiler.version.startswith(release.name):
                text = ""
            marks.append({"at": place, "text": clean(text, 24)})
            before = release.compiler.digest
    return marks


def _chart_total(facts: _Facts, target: str) -> dict[str, Any]:
    by_name = {total.compiler: total.metrics for total in facts.totals[target]}
    values = {}
    for metric in TRACKED:
        row = [by_name.get(name, {}).get(metric) for name in facts.names]
        if any(value is not None for value in row):
            values[metric] = _runs(row)
    return {"target": facts.targets.index(target), "values": values}


def _chart_cell(facts: _Facts, key: CellKey) -> dict[str, Any]:
    """Return the values of a build, and the text that each point shows.

    The text is why the build changed, or why there is no value.
    """
    cells = facts.rows[key]
    values = {}
    for metric in facts.metrics_of(key):
        row = [cell.value(metric) if cell.measured else None for cell in cells]
        values[metric] = _runs(row)
    texts = [
        clip(_point_text(facts, *point), _CHART_WHY) for point in facts.points(key)
    ]
    return {
        "target": facts.targets.index(key.target),
        "address": cell_address(key),
        "values": values,
        "told": _runs(texts),
    }


def _point_text(facts: _Facts, name: str, cell: Cell, move: Move | None) -> str:
    if not cell.measured:
        return _gap(cell)
    reasons = (*facts.why(name, move), _varies(cell))
    return "; ".join(clean(reason) for reason in reasons if reason)


def _runs(values: Iterable[object]) -> list[object]:
    """Return the number and the value of each run of equal values, in one list.

    It is short, as most numbers stay as they are for many releases.
    """
    runs = list[object]()
    for value, run in groupby(values):
        runs += [sum(1 for _ in run), value]
    return runs
