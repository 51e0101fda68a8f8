"""A history as blocks, and its three files: totals, steps with their root causes, each cell with where it moved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from bot.core.delta import seen_values, value_of
from bot.core.history import TRACKED, History, Move, history_lines
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
    Room,
    Row,
    Sentence,
    Span,
    Table,
    by,
    code,
    fair_in_order,
    joined,
    listed,
    listing,
    name_cell,
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
from bot.show.why import cause_words

HISTORY_LIMIT_BYTES = (
    512 * 1024
)  # Half of what GitHub takes as the summary of one step, in UTF-8
_ARTIFACT = "artifact_bytes"
_GAP = "–"  # What stands in the place of a value where there is no artifact
_OVER, _REFUSED = (
    "over-stack-limit",
    "above the compiler's stack limit, measured with the limit lifted",
)
_UNITS = {"bytes": ", bytes", "count": ""}
_CAUSES, _WHAT, _NOTE, _WHY, _CHART_WHY, _COMMAND = 3, 160, 400, 400, 240, 4_000
# So many releases have a row each in a cell's table: of more, those in which nothing
# changed have none
_ALL_ROWS = 30
_CELL_BYTES, _ROW_BYTES, _CELLS_BYTES = 1_300, 420, 4_200_000
"""What a cell takes on the page without its rows, what a row takes, and what there is for all of them."""
_LEGEND = (
    "– is a gap: no artifact, with the reason in the footnote. n/a: unknown for this"
    " release. Regions folded: the share of dispatch regions that deduplication folds,"
    " in the first and the last known release. Changed most: the release with the"
    " largest change since the last measured release, and its cause. A gap has no"
    " change. A number with several values has no change either."
)


def write_history(history: History, templates: Path | None, out: Path) -> list[Path]:
    """`history.json`, `history.md` (at most `HISTORY_LIMIT_BYTES` in UTF-8) and `history.html`.

    `templates`: the user's templates, searched before the default ones.
    """
    styles, scripts, json = (
        ("history/history.css",),
        ("history/history.js",),
        history_lines(history),
    )
    limit, blocks = HISTORY_LIMIT_BYTES, partial(history_blocks, history)
    return write_answer(
        "history",
        json=json,
        blocks=blocks,
        limit_bytes=limit,
        templates_dir=templates,
        out=out,
        styles=styles,
        scripts=scripts,
    )


def history_blocks(history: History, room: Room) -> tuple[Block, ...]:
    """The whole answer: cells are rows of tables, and on a page a fold each, with charts of all."""
    facts = _Facts(history)
    names = facts.names
    columns = (
        names
        if len(names) <= room.columns
        else (names[0], *names[len(names) - room.columns + 1 :])
    )
    notes = list(_notes(history))
    charted = _shown_models(facts) if room.place == "page" else {}
    charts = (
        (("page:history", data_element("page:history", _chart_data(facts, charted))),)
        if charted
        else ()
    )
    return (
        Sentence(_headline(facts)),
        Sentence(_counted(facts, columns), small=room.place == "page"),
        section(
            "What to know",
            List(listing(notes, len(notes), "note")),
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
            _steps(facts, room),
            name="steps",
            address="page:steps",
        ),
        *(
            _models(facts, charted)
            if room.place == "page"
            else _cells(facts, columns, room)
        ),
    )


class _Facts:
    """A history, indexed."""

    def __init__(self, history: History) -> None:
        self.history, self.rows = (
            history,
            history.rows,
        )  # each cell that was tried, in the order of the releases
        self.totals = by(
            history.totals, lambda total: total.target
        )  # of a target, or None for all, by release
        self.names = tuple(
            variant.name for variant in history.study.variants
        )  # of all releases, gaps too
        self.shown = tuple(
            variant.name for variant in history.study.measured
        )  # of those that measured anything
        self.models = by(
            self.rows, lambda key: key.model
        )  # with the cells that have a row
        self.targets = tuple(sorted({key.target for key in self.rows}))

    def metrics_of(self, key: CellKey) -> tuple[str, ...]:
        """Tracked metrics that some release knows of the cell."""
        return tuple(
            id_
            for id_ in TRACKED
            if any(value_of(cell, id_) is not None for cell in self.rows[key])
        )

    def folded(self, key: CellKey) -> str:
        """`68 % → 61 %`: the share of regions that deduplication folds, in the first and the last release to know it.

        `n/a` where no release knows it.
        """
        shares = [text for text in folded_shares(self.rows[key]) if text != UNKNOWN]
        ends = dict.fromkeys((*shares[:1], *shares[-1:]))
        return " → ".join(ends) or UNKNOWN

    def since(self, release: str, since: str) -> str:
        """`since 3.10.0` where that is not the neighbour; empty elsewhere."""
        place = self.names.index(release)
        return (
            ""
            if place and self.names[place - 1] == since
            else f"since {clean(since, NAME_LIMIT)}"
        )

    def points(self, key: CellKey) -> list[tuple[str, Cell, Move | None]]:
        """A cell in each release, with what moved there."""
        row = zip(self.names, self.rows[key], strict=True)
        return [(name, cell, self.history.moves.get((name, key))) for name, cell in row]

    def why(self, release: str, move: Move | None) -> list[str]:
        """Since when, for what cause and why a cell moved in a release; empty where it did not."""
        return (
            [
                self.since(release, move.since),
                ": ".join(
                    filter(None, (move.cause and cause_words(move.cause), move.why))
                ),
            ]
            if move
            else []
        )

    def moved(self, key: CellKey) -> list[tuple[str, Cell, Move]]:
        """The releases in which the artifact of a cell moved."""
        return [
            (name, cell, move)
            for name, cell, move in self.points(key)
            if move and _ARTIFACT in move.changes
        ]

    def moved_most(self, key: CellKey) -> str:
        """`3.11.0: +26,464 (+55.3 %), strategy`; empty where the artifact never moved."""
        if not (moved := self.moved(key)):
            return ""
        release, cell, move = max(
            moved, key=lambda point: abs(point[2].changes[_ARTIFACT])
        )
        since, cause = (
            self.since(release, move.since),
            (f", {cause_words(move.cause)}" if move.cause else ""),
        )
        change_text = _change(move.changes[_ARTIFACT], cell.value(_ARTIFACT))
        return f"{_name(release)}{since and f' ({since})'}: {change_text}{clean(cause)}"


# Words.


def _label(metric: str) -> str:
    return f"{METRIC_BY_ID[metric].label}{_UNITS[METRIC_BY_ID[metric].unit]}"


def _change(moved: int, value: int | None) -> str:
    """`+26,464 (+55.3 %)`; `value`: after it."""
    base = (value or 0) - moved
    return signed(moved, "count") + (f" ({percent(moved / base)})" if base else "")


def _gap(cell: Cell) -> str:
    reason = clip(clean(cell.reason), NOTE_LIMIT) or "no reason is known"
    return reason if cell.status == UNMEASURED else f"{cell.status}: {reason}"


def _varies(cell: Cell) -> str:
    """The note that a cell's command gives artifacts of several sizes; empty where it does not."""
    sizes = " or ".join(map(amount, seen_values(cell).get(_ARTIFACT, ())))
    return f"non-deterministic: the same command gives {sizes}" if sizes else ""


def _name(text: str) -> str:
    return clean(text, NAME_LIMIT)


# Sentences.


def _headline(facts: _Facts) -> Phrase:
    """`Code size from 3.8.0 to 3.13.0: artifacts +12,345 B (+3.1 %)`."""
    first, *later = facts.shown or ("no release",)
    to = (" to ", strong(_name(later[-1]))) if later else ()
    ends = phrase("from " if later else "of ", strong(_name(first)), *to)
    sizes = [total.metrics[_ARTIFACT] for total in facts.totals.get(None, ())]
    if len(sizes) < 2 or sizes[0] is None or sizes[-1] is None:
        return phrase("Code size ", ends)
    grown = f": artifacts {change(sizes[0], sizes[-1])} over {_over(facts, _ARTIFACT)}"
    return phrase("Code size ", ends, grown)


def _over(facts: _Facts, metric: str, target: str | None = None) -> str:
    """`15 of 33 builds`: how many a total is over."""
    totals = facts.totals.get(target, ())
    of = sum(target in (None, key.target) for key in facts.rows)
    return (
        f"{totals[0].cells.get(metric, 0) if totals else 0:,} of {plural(of, 'build')}"
    )


def _counted(facts: _Facts, columns: Sequence[str]) -> Phrase:
    models, targets = (
        plural(len(facts.models), "model"),
        plural(len(facts.targets), "target"),
    )
    measured = sum(cell.measured for row in facts.rows.values() for cell in row)
    gaps = len(facts.rows) * len(facts.names) - measured
    points = plural(measured, "point") + (
        f", and {plural(gaps, 'gap')} with reasons" if gaps else ""
    )
    releases, left_out = (
        plural(len(facts.names), "release"),
        len(facts.names) - len(columns),
    )
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
    """Releases that are gaps or have notes."""
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
    """The artifacts of each target, and all metrics of all targets."""
    last = len(columns) + 2
    headers, column_order = (
        ("builds", *map(_name, columns), "change"),
        (
            last,
            2,
            *range(last - 1, 2, -1),
            1,
        ),
    )
    rows, sums = list[Row](), list[Row]()
    for target in facts.totals if facts.shown else ():
        name = (
            phrase(strong("all"))
            if target is None
            else name_cell(clip(target, NAME_LIMIT))
        )
        rows.append(
            _total_row(
                facts, metric=_ARTIFACT, target=target, columns=columns, name=name
            )
        )
    for metric in TRACKED if facts.totals.get(None) else ():
        if facts.totals[None][0].cells.get(metric):
            over = (
                "the largest"
                if METRIC_BY_ID[metric].over == "largest"
                else "all together"
            )
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
    grown = (
        relative(by_name[facts.shown[0]], by_name[facts.shown[-1]])
        if len(facts.shown) > 1
        else UNKNOWN
    )
    return (name, _over(facts, metric, target).partition(" build")[0], *values, grown)


def _steps(facts: _Facts, room: Room) -> Table:
    """A row for each step that changed anything; with too few rows for all, the last ones."""
    cause_limit = 1 if room.place == "terminal" else _CAUSES
    steps = [
        step
        for step in facts.history.steps
        if step.causes or step.larger or step.smaller or step.broken or step.fixed
    ]
    rows = []
    for step in steps[-max(1, room.rows // 4) :]:
        causes = (
            f"{clip(clean(cause.what), _WHAT)} ({signed(cause.net_bytes)})"
            for cause in step.causes[:cause_limit]
        )
        moved = (
            UNKNOWN
            if step.base_bytes is None
            else change(step.base_bytes, step.head_bytes)
        )
        counts = (
            f"{n:,}" for n in (step.larger, step.smaller, step.broken, step.fixed)
        )
        name = f"{_name(step.base)} → {_name(step.head)}"
        rows.append(
            (name, joined(causes, "; ") or _GAP, str(step.cells), moved, *counts)
        )
    quiet = len(facts.history.steps) - len(steps)
    quiet_note = (
        f"; {plural(quiet, 'step')} without a change of size"
        f" {'has' if quiet == 1 else 'have'} no row"
    )
    return Table(
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
            f" both{quiet_note if quiet else ''}"
        ),
        sentences=1,
        wanted=(3, 6, 4, 5, 7, 2),
    )


def _cells(facts: _Facts, columns: Sequence[str], room: Room) -> Iterator[Block]:
    """The artifacts of all cells, and why there are gaps in them."""
    footnotes, last = Footnotes(room.lines), len(columns) + 2
    keys = fair_in_order([*facts.rows], lambda key: key.model, room.rows)
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
    """The row of a cell: its artifacts in each column's release, and where they moved most."""
    cells = dict(zip(facts.names, facts.rows[key], strict=True))
    values = []
    for cell in (cells[column] for column in columns):
        if cell.measured:
            values.append(
                f"{amount(value_of(cell, _ARTIFACT), 'count')}{footnotes.mark(_varies(cell))}"
            )
        else:
            values.append(f"{_GAP}{footnotes.mark(_gap(cell))}")
    names = (name_cell(clip(name, NAME_LIMIT)) for name in (key.model, key.target))
    return (
        *names,
        *map(phrase, (*values, facts.folded(key), facts.moved_most(key) or _GAP)),
    )


# The page.


def _shown_models(facts: _Facts) -> Mapping[str, Sequence[dict[str, Any]]]:
    """Model → its chart lines, in order.

    Where there is no room for all models, those that moved most.
    """
    charts, room = dict[str, list[dict[str, Any]]](), _CELLS_BYTES
    moved = {
        model: sum(
            abs(move.changes[_ARTIFACT])
            for key in keys
            for *_, move in facts.moved(key)
        )
        for model, keys in facts.models.items()
    }
    for model in sorted(moved, key=lambda name: -moved[name]):
        lines = [_chart_cell(facts, key) for key in facts.models[model]]
        rows = sum(len(_told_rows(facts, key)) for key in facts.models[model])
        room -= (
            len(lines) * _CELL_BYTES
            + rows * _ROW_BYTES
            + len(canonical({"lines": lines}))
        )
        if room < 0 and charts:
            break
        charts[model] = lines
    return {model: charts[model] for model in moved if model in charts}


def _models(facts: _Facts, models: Collection[str]) -> Iterator[Block]:
    """A section for each model, in which each cell is folded."""
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
    """The releases that have a row in a cell's table."""
    cells, metrics = facts.rows[key], facts.metrics_of(key)
    states = [
        (cell.status, cell.reason, *(value_of(cell, id_) for id_ in metrics))
        for cell in cells
    ]
    ends = 0, len(cells) - 1
    return [
        place
        for place in range(len(cells))
        if len(cells) <= _ALL_ROWS
        or place in ends
        or states[place] != states[place - 1]
    ]


def _opened(facts: _Facts, key: CellKey) -> Fold:
    """One cell: a row for each release, or for those in which anything happened where there are many."""
    metrics, cells, address = facts.metrics_of(key), facts.rows[key], cell_address(key)
    points = facts.points(key)
    rows = [_release(facts, metrics, *points[row]) for row in _told_rows(facts, key)]
    hidden = len(points) - len(rows)
    quiet = (
        f"{plural(hidden, 'release')} in which nothing changed"
        f" {'has' if hidden == 1 else 'have'} no row."
    )
    command = next((cell.command for cell in reversed(cells) if cell.command), "")
    largest_move = facts.moved_most(key)
    caption = phrase(
        code(clip(key.model, NAME_LIMIT)), " on ", code(clip(key.target, NAME_LIMIT))
    )
    folded = ("regions folded",) if facts.folded(key) != UNKNOWN else ()
    headers = ("release", *map(_label, metrics), *folded, "why it changed")
    return Fold(
        phrase(
            code(key.target),
            f" {_ends(cells)}",
            Span(f" · changed most in {largest_move}" if largest_move else "", "small"),
        ),
        (
            Sentence((Span("Address of this build", to=address),), small=True),
            Table(
                headers,
                listed(rows, "release"),
                caption=caption,
                sentences=len(headers) - 1,
            ),
            Sentence(quiet if hidden else "", small=True),
            Code(command if len(command) <= _COMMAND else ""),
        ),
        address=address,
    )


def _ends(cells: Sequence[Cell]) -> str:
    """`47,704 → 64,920 B (+36.1 %)`, of the first and the last release that measured it."""
    sizes = [size for cell in cells if (size := value_of(cell, _ARTIFACT)) is not None]
    if not sizes:
        return "no artifact in any release"
    gaps = sum(not cell.measured for cell in cells)
    moved = f" ({relative(sizes[0], sizes[-1])})" if sizes[0] != sizes[-1] else ""
    return (
        sides(sizes[0], sizes[-1])
        + moved
        + (f", {gaps} of {len(cells)} without an artifact" if gaps else "")
    )


def _release(
    facts: _Facts, metrics: Sequence[str], name: str, cell: Cell, move: Move | None
) -> Row:
    """Values, each with its change, and why they moved; of a gap its reason alone."""
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
    """Releases, metrics, and for each chart the values of each target.

    Nothing in it can end a script element.
    """
    short = short_names(
        facts.targets,
        {name: facts.history.study.targets.get(name, "") for name in facts.targets},
    )
    marks, before = list[dict[str, Any]](), ""
    for place, release in enumerate(
        facts.history.study.variants
    ):  # where another compiler begins, and what it is
        if release.compiler and release.compiler.digest not in ("", before):
            text = (
                ""
                if release.compiler.version.startswith(release.name)
                else release.spec
            )
            marks.append({"at": place, "text": clean(text, 24)})
            before = release.compiler.digest
    data = {
        "releases": [_name(name) for name in facts.names],
        "marks": marks,
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


def _chart_total(facts: _Facts, target: str) -> dict[str, Any]:
    by_name = {total.compiler: total.metrics for total in facts.totals[target]}
    rows = {
        id_: [by_name.get(name, {}).get(id_) for name in facts.names] for id_ in TRACKED
    }
    values = {
        id_: _runs(row)
        for id_, row in rows.items()
        if any(value is not None for value in row)
    }
    return {"target": facts.targets.index(target), "values": values}


def _chart_cell(facts: _Facts, key: CellKey) -> dict[str, Any]:
    """Values, and what is said of a point when it is pointed at: why it changed, or why there is none."""
    texts = [
        (
            "; ".join(
                clean(reason)
                for reason in (*facts.why(name, move), _varies(cell))
                if reason
            )
            if cell.measured
            else _gap(cell)
        )
        for name, cell, move in facts.points(key)
    ]
    return {
        "target": facts.targets.index(key.target),
        "address": cell_address(key),
        "values": {
            id_: _runs(
                cell.value(id_) if cell.measured else None for cell in facts.rows[key]
            )
            for id_ in facts.metrics_of(key)
        },
        "told": _runs(clip(text, _CHART_WHY) for text in texts),
    }


def _runs(values: Iterable[object]) -> list[object]:
    """How often, and what, one after the other: most numbers stay as they are for many releases."""
    return [
        item for value, run in groupby(values) for item in (sum(1 for _ in run), value)
    ]
