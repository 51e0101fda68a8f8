"""The passes of dispatches: the IR around one; table and picture for the page; a trace on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from bot.core.delta import CellDelta
from bot.core.explanation import Explanation, code_change
from bot.core.parting import TRACE_SCHEMA, Traced, parting, texts_around
from bot.core.planned import SIDES
from bot.core.snapshot import CellKey
from bot.core.trace import PROGRAM, SHOWN_LINES, IrAround, IrLines, Parting, operation_words
from bot.show.environment import Addressed
from bot.show.escape import clean, clean_block, clip
from bot.show.facts import Facts
from bot.show.filters import percent
from bot.show.renderers import text_of
from bot.show.why import suspect_words

_COLUMNS, _NAMES = 200, 120


def around_texts(around: Sequence[IrAround]) -> Iterator[tuple[str, str]]:
    """Before it on base and head, then after it: a title each, and numbered lines or why there are none."""
    for when in ("before", "after") if around else ():
        for side, one in zip(("base", "head"), around, strict=True):
            lines = one.before if when == "before" else one.after
            idle = ", which changes no operation there" if one.idle and lines and when == "after" else ""
            title = f"{side}, {when} {clip(clean(one.name), _COLUMNS)}{idle}"
            if not lines:
                yield title, f"n/a: {clean(one.why, _COLUMNS)}"
                continue
            held = f"the first of {lines.total:,} lines; none has these operations"
            if lines.holding:
                names = clip(clean(", ".join(lines.operations)), _NAMES)
                held = f"{lines.holding:,} of {lines.total:,} lines have {names}"
            yield f"{title}: {held}", _numbered(lines)


def _numbered(one: IrLines) -> str:
    """A gap in the numbers is a line of its own."""
    texts, last = list[str](), 0
    width = len(str(max((number for number, _ in one.lines), default=0)))
    for number, line in one.lines[: SHOWN_LINES + 1]:
        texts += ["…"] * (number > last + 1)
        texts.append(f"{number:>{width}}  {clip(clean_block(line).replace(chr(10), ' '), _COLUMNS)}")
        last = number
    return "\n".join([*texts, *(["…"] * (last < one.total))])


TRACES, TRACE_ROWS = 40, 120
"""The most dispatches of a page whose passes are shown, those whose code changed most, and passes of each."""
_NAME, _PASS, _OPERATIONS, _NAMED = 120, 64, 160, 3
_SMALLER = "printed for the largest dispatch of each cause alone"
_EARLY = "the pass works on the whole program, in which this dispatch is not alone"
_ALIKE = "where every dispatch of the model has the same IR on both sides"
_LEVELS = {"program": "program", "mlir": "MLIR", "llvm": "LLVM IR", "machine": "machine code"}

TracedDispatch = tuple[CellKey, str]  # A cell and the name of a dispatch of it


@dataclass(frozen=True, slots=True)
class TraceCard:
    """One dispatch through the passes of both compilers."""

    name: str  # of the dispatch
    # parts_at, most_at: the pass after which the sides part, and the one that takes them apart by most if another
    parts_at: str
    most_at: str
    rows: tuple[Addressed, ...]  # pass, level, operations on both sides, how far apart they are, and what differs
    # what each pass has, parted by `|`: its name, the operations on both sides, and how it is marked; one without a
    # name stands between levels
    picture: Mapping[str, str]
    # alike, far: how many passes leave the difference as it was, and how many are too far from the one that parts the
    # sides
    alike: int
    far: int
    # the IR before and after it on both sides, titles and texts; none where `no_ir` says why
    around: tuple[tuple[str, str], ...]
    no_ir: str


def largest_traced(facts: Facts) -> frozenset[TracedDispatch]:
    """Those with a pass, by how much their code changed."""
    sizes = sorted(
        (-abs(code_change(one) or 0), key, one.name)
        for key, told in facts.report.explanations.items()
        for one in told.dispatches
        if one.passed
    )
    return frozenset((key, name) for _, key, name in sizes[:TRACES])


def trace_cards(delta: CellDelta, explanation: Explanation, chosen: Collection[TracedDispatch]) -> Iterator[TraceCard]:
    """Of the chosen dispatches of a cell, in the order in which it tells of them."""
    for one in explanation.dispatches:
        if (delta.key, one.name) in chosen and delta.base and delta.head:
            pairs = ((delta.base, one.base), (delta.head, one.head))
            traces = [cell.traces.get(row.name) if row else None for cell, row in pairs]
            apart = parting(*traces)
            if (place := apart.named(one.cause)) is not None:
                printed_for = next((trace.printed_for for trace in traces if trace and trace.printed_for), "")
                early = _EARLY + (f"; its passes were printed for {printed_for}, {_ALIKE}" if printed_for else "")
                no_ir = early if apart.rows[apart.at or 0].level == PROGRAM else _SMALLER
                yield _card(clip(one.name, _NAME), apart, texts_around(apart, place, *traces), no_ir)


def _card(name: str, apart: Parting, around: tuple[IrAround, ...], no_ir: str) -> TraceCard:
    at, most = apart.at or 0, apart.most or 0
    begin = max(0, min(at - TRACE_ROWS // 3, len(apart.rows) - TRACE_ROWS))
    places = range(begin, min(begin + TRACE_ROWS, len(apart.rows)))
    marks = {most: "takes them apart by most", at: "the sides part"}
    rows = tuple(_row(apart, place, marks.get(place, "")) for place in apart.shown if place in places)
    parts_at, most_at = (_name(apart.rows[place].name) for place in (at, most))
    most_at = "" if most == at else most_at
    return TraceCard(
        name,
        parts_at,
        most_at,
        rows,
        _picture(apart, places, marks),
        len(places) - len(rows),
        len(apart.rows) - len(places),
        tuple(around_texts(around)) if any(one.before for one in around) else (),
        clean(around[0].why) if around else no_ir,
    )


def _row(apart: Parting, place: int, mark: str) -> Addressed:
    row = apart.rows[place]
    base, head = ("–" if state is None else f"{state.total:,}" for state in (row.base, row.head))
    name = f"{_name(row.name)} ◀ {mark}" if mark else _name(row.name)
    what = clip(clean(operation_words(row.apart, _NAMED)), _OPERATIONS)
    texts = (
        name,
        _LEVELS.get(row.level, ""),
        base,
        head,
        percent(row.share).removeprefix("+") if row.share else "0 %",
        what,
    )
    return Addressed("", texts, css="parts" if mark else "")


def _picture(apart: Parting, places: range, marks: Mapping[int, str]) -> Mapping[str, str]:
    """A side on which a pass changes nothing is as it was after the one before."""
    lines: list[tuple[str, int | None, int | None, str]] = []
    level, base, head = "", None, None
    for place in places:
        row = apart.rows[place]
        if level not in ("", row.level):
            base = head = None
            lines.append(("", None, None, ""))
        level, base, head = row.level, row.base.total if row.base else base, row.head.total if row.head else head
        lines.append((_name(row.name), base, head, marks.get(place, "")))
    columns = zip(*lines, strict=True)
    texts = ("|".join("" if value is None else str(value).replace("|", "/") for value in column) for column in columns)
    return dict(zip(("passes", "base", "head", "marks"), texts, strict=True))


def _name(name: str) -> str:
    return clip(clean(name), _PASS)


_PASS_COLUMNS = 44  # Characters of a pass's name


def print_trace(traced: Traced, console: Console) -> None:
    """The passes after which another difference stands, the one that parts the sides marked, and how to see all."""
    sides = {name: traced.rows.get(name) for name in SIDES}
    sizes = " → ".join(
        "n/a" if row is None or row.code_bytes is None else f"{row.code_bytes:,}" for row in sides.values()
    )
    name = next(row.name for row in (sides["head"], sides["base"]) if row)
    console.print(Text(clean(f"{name} of {traced.key}: {sizes} B"), "bold"), soft_wrap=True)
    shown = [traced.parting.rows[place] for place in traced.parting.shown]
    if shown:
        base, head = (clean(traced.compilers[name].partition("rc")[0]) for name in sides)
        console.print(_line(console.width, "\nafter", base, head, "apart", ""), style="dim")
        for row in shown:
            base, head = ("–" if state is None else f"{state.total:,}" for state in (row.base, row.head))
            line = _line(console.width, row.name, base, head, f"{row.share:.0%}", operation_words(row.apart, 1))
            console.print(line, style="bold" if row is traced.parting.row else "")
        more = len(traced.parting.rows) - len(shown)
        console.print(f"operations of the function after each pass; the difference is as before after {more} more\n")
    parts_at, parting = traced.parting.row, f"no pass parts them: {traced.parting.why}"
    if parts_at is not None:
        alone = "head" if parts_at.base is None else "base" if parts_at.head is None else ""
        only = f" (which changes operations on {alone} only)" if alone else ""
        parting = f"they part after {parts_at.name}{only}: {operation_words(traced.parting.operations, _NAMED)}"
    console.print(Text(clean(parting), "bold"), soft_wrap=True)
    for title, text in around_texts(traced.around):
        console.print(Text(f"\n{title}", "bold"), soft_wrap=True)
        console.print(Text(text), soft_wrap=True)
    if traced.looked_up:
        console.print(text_of(suspect_words(traced.looked_up, traced.suspects)), soft_wrap=True)
        for one in traced.suspects:
            console.print(Text(clean(f"  {one.date} {one.url or one.commit} {one.title} ({one.why})")), soft_wrap=True)
    for name, side in traced.traces.items():
        if side.same_code is not None:
            is_same = "the code that is in the artifact" if side.same_code else "other code than is in the artifact"
            console.print(f"{name}: the traced compile gives {is_same}")
    for name, commands in traced.commands.items():
        console.print(f"shown by, {name}:")
        for command in commands:
            console.print(Text(f"  {clean(command, 4_000)}"), soft_wrap=True)


def _line(width: int, name: str, base: str, head: str, share: str, what: str) -> Text:
    """Of at most `width` characters."""
    name = clean(name)
    clipped = name if len(name) <= _PASS_COLUMNS else f"{name[: _PASS_COLUMNS - 1]}…"
    return Text(f"{clipped:{_PASS_COLUMNS}} {base:>8} {head:>8} {share:>5}  {clean(what)}"[:width], no_wrap=True)


def trace_json(traced: Traced) -> Mapping[str, Any]:
    """`passes[]` each `{name, base, head, apart}` and `parts_at`, as the contract has them."""
    return {
        "schema": TRACE_SCHEMA,
        "model": traced.key.model,
        "target": traced.key.target,
        "dispatch": {name: row.name for name, row in traced.rows.items()},
        "code_bytes": {name: row.code_bytes for name, row in traced.rows.items()},
        "same_code": {name: side.same_code for name, side in traced.traces.items()},
        "compilers": traced.compilers,
        "passes": [
            {
                "name": row.name,
                "level": row.level,
                "base": row.base.total if row.base else None,
                "head": row.head.total if row.head else None,
                "share": row.share,
                "apart": row.apart,
            }
            for row in traced.parting.rows
        ],
        "parts_at": traced.parting.row.name if traced.parting.row else None,
        "parts_at_place": traced.parting.at,
        "operations": traced.parting.operations,
        "why": traced.parting.why,
        "commands": traced.commands,
        "around": {
            name: {"pass": one.name, "idle": one.idle, "before": one.before, "after": one.after, "why": one.why}
            for name, one in zip(SIDES, traced.around, strict=False)
        },
        **({"suspects": traced.suspects, "looked_up": traced.looked_up} if traced.looked_up else {}),
    }
