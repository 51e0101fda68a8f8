"""Show the passes of a dispatch: on the page, on a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bot.core.delta import CellDelta
from bot.core.explanation import OTHER_TYPES, Explanation, code_change
from bot.core.ladder import LLVM_OPTIMIZER, attribution, is_large_part
from bot.core.parting import NOT_TRACED, parting
from bot.core.planned import SIDES
from bot.core.snapshot import Cell, CellKey, Dispatch
from bot.core.trace import (
    DispatchTrace,
    Parting,
    PassState,
    TraceRow,
    operation_words,
)
from bot.core.traced import TRACE_SCHEMA, Traced
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Kind,
    Marked,
    Picture,
    Row,
    Sentence,
    Span,
    Table,
    code,
    listed,
    phrase,
    section,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import Facts
from bot.show.filters import percent, plural, share
from bot.show.ladders import ladder_blocks, ladder_json
from bot.show.machine_passes import machine_pass_blocks, machine_pass_json
from bot.show.pass_proofs import pass_proof_blocks, pass_proof_json
from bot.show.program_proofs import program_blocks, program_json
from bot.show.proofs import proof_json, proof_line

TRACES = 40
TRACE_ROWS = 120
"""The most dispatches of a page whose passes are shown, and the most passes of each."""
_NAME = 120
_PASS = 64
_OPERATIONS = 160
_NAMED = 3
_PASS_COLUMNS = 32
_ALIKE = "whose dispatches all have the same IR on both sides"
_LEVELS = {
    "program": "program",
    "mlir": "MLIR",
    "llvm": "LLVM IR",
    "machine": "machine code",
}
_PASSES = (
    "after the pass",
    "of",
    "base",
    "head",
    "difference",
    "what differs, largest first",
)
_MEANING = (
    "Operations of the function after each pass; – where it does not run on that side,"
    " or changes nothing. Difference: the share of the larger side's operations that"
    " the other side does not have."
)

TracedDispatch = tuple[CellKey, str]  # A cell and the name of a dispatch of it


def largest_traced(facts: Facts) -> frozenset[TracedDispatch]:
    """Return the traced dispatches with a named pass whose code changed most."""
    sizes = []
    for key, explanation in facts.report.explanations.items():
        for dispatch in explanation.dispatches:
            if dispatch.passed:
                size = abs(code_change(dispatch) or 0)
                sizes.append((-size, key, dispatch.name))
    sizes.sort()
    return frozenset((key, name) for _, key, name in sizes[:TRACES])


def trace_folds(
    delta: CellDelta, explanation: Explanation, chosen: Collection[TracedDispatch]
) -> Iterator[Fold]:
    """Yield the chosen dispatches of a build through the passes of both compilers.

    Their order is that of the explanation.
    """
    for dispatch in explanation.dispatches:
        if (delta.key, dispatch.name) in chosen and delta.base and delta.head:
            traces = (
                _trace_of(delta.base, dispatch.base),
                _trace_of(delta.head, dispatch.head),
            )
            parted = parting(*traces)
            if parted.row is not None:
                targets = [trace.printed_for for trace in traces if trace]
                printed_for = next(filter(None, targets), "")
                yield _trace_fold(clip(dispatch.name, _NAME), parted, printed_for)


def _trace_of(cell: Cell, dispatch: Dispatch | None) -> DispatchTrace | None:
    if dispatch is None:
        return None
    return cell.traces.get(dispatch.name)


def _trace_fold(name: str, parted: Parting, printed_for: str) -> Fold:
    diverging = parted.at or 0
    begin = max(0, min(diverging - TRACE_ROWS // 3, len(parted.rows) - TRACE_ROWS))
    places = range(begin, min(begin + TRACE_ROWS, len(parted.rows)))
    marks = {diverging: "the sides diverge"}
    rows = []
    for place in parted.shown:
        if place in places:
            rows.append(_trace_row(parted.rows[place], marks.get(place, "")))
    equal_count = len(places) - len(rows)
    far = len(parted.rows) - len(places)
    meaning = _MEANING
    if equal_count:
        meaning += (
            f" Not in the table: {plural(equal_count, 'pass')} that did not change the"
            " difference."
        )
    if far:
        meaning += (
            f" The table leaves out {plural(far, 'pass')} before or after these rows."
        )
    program = ""
    if printed_for:
        target = clean(printed_for)
        program = f"The passes over the program were printed for {target}, {_ALIKE}. "
    commands = phrase(
        program,
        code("code-size-bot trace"),
        " shows the commands that print the IR after each pass.",
    )
    return Fold(
        phrase(
            "Passes of ",
            code(name),
            ": the sides diverge after ",
            code(_pass(parted.rows[diverging].name)),
        ),
        (
            Picture((("", json.dumps(_picture(parted, places, marks))),)),
            Table(_PASSES, listed(rows, "pass"), 2, sentences=5, css="passes"),
            Sentence(meaning, small=True),
            Sentence(commands, small=True),
        ),
        css="trace",
    )


def _trace_row(row: TraceRow, mark: str) -> Marked:
    difference = "0 %"
    if row.share:
        difference = percent(row.share).removeprefix("+")
    name = _pass(row.name)
    css = ""
    if mark:
        name = f"{name} ◀ {mark}"
        css = "parts"
    texts = (
        name,
        _LEVELS.get(row.level, ""),
        _count(row.base),
        _count(row.head),
        difference,
        clip(clean(operation_words(row.apart, _NAMED)), _OPERATIONS),
    )
    return Marked(texts, css=css)


def _count(state: PassState | None) -> str:
    """Return the number of operations; a dash if the pass has no state on a side."""
    if state is None:
        return "–"
    return f"{state.total:,}"


def _picture(
    parted: Parting, places: range, marks: Mapping[int, str]
) -> Mapping[str, str]:
    """Return the numbers of the passes, as texts with `|` between the passes.

    They are the name of a pass, the operations on both sides, and its mark. A pass
    without a name stands between levels. A side on which a pass changes nothing is as
    it was after the pass before.
    """
    lines: list[tuple[str, int | None, int | None, str]] = []
    level = ""
    base: int | None = None
    head: int | None = None
    for place in places:
        row = parted.rows[place]
        if level not in ("", row.level):
            base = head = None
            lines.append(("", None, None, ""))
        level = row.level
        if row.base:
            base = row.base.total
        if row.head:
            head = row.head.total
        lines.append((_pass(row.name), base, head, marks.get(place, "")))
    texts = [_column_text(column) for column in zip(*lines, strict=True)]
    return dict(zip(("passes", "base", "head", "marks"), texts, strict=True))


def _column_text(column: Sequence[str | int | None]) -> str:
    texts = []
    for value in column:
        text = ""
        if value is not None:
            text = str(value).replace("|", "/")
        texts.append(text)
    return "|".join(texts)


def _pass(name: str) -> str:
    return clip(clean(name), _PASS)


def trace_blocks(traced: Traced) -> Iterator[Block]:
    """Yield the passes after which the difference is another one, and how to see all.

    The pass after which the sides diverge is marked. Experiments stand before the
    passes.
    """
    yield Sentence((strong(_sizes_line(traced)),))
    yield from _experiment_blocks(traced)
    yield from _pass_blocks(traced)
    yield Sentence((strong(clean(_diverging_line(traced.parting))),))
    for name, side in traced.traces.items():
        if side.same_code is not None:
            result = "other code than the artifact"
            if side.same_code:
                result = "the same code as the artifact"
            yield Sentence(f"{name}: the traced compile gives {result}")
    for name, commands in traced.commands.items():
        yield section(
            f"Shown by, {name}",
            Code("\n".join(clean(command, 4_000) for command in commands)),
        )


def _sizes_line(traced: Traced) -> str:
    """Return the name of the dispatch, and its code bytes on both sides."""
    base = traced.rows.get("base")
    head = traced.rows.get("head")
    name = next(row.name for row in (head, base) if row)
    sizes = []
    for row in (base, head):
        if row is None or row.code_bytes is None:
            sizes.append("n/a")
        else:
            sizes.append(f"{row.code_bytes:,}")
    return f"{clean(name)} of {traced.key}: {' → '.join(sizes)} B"


def _experiment_blocks(traced: Traced) -> Iterator[Block]:
    """Yield the results of the ladder, the proofs and the other experiments."""
    yield from ladder_blocks(traced.ladder, traced.no_ladder)
    if traced.proof is not None:
        yield Sentence((strong(proof_line(traced.proof)),))
    if traced.pass_proof is not None:
        yield from pass_proof_blocks(traced.pass_proof)
    if traced.ladder is not None:
        parts = attribution(traced.ladder)
        if is_large_part(parts, LLVM_OPTIMIZER):
            yield Sentence(
                "LLVM optimizer: not divided: there is no experiment for its passes"
            )
    if traced.machine is not None:
        yield from machine_pass_blocks(traced.machine)
    yield from program_blocks(traced.formed)


def _pass_blocks(traced: Traced) -> Iterator[Block]:
    """Yield the table of passes after which the difference is another one."""
    parted = traced.parting
    rows = list[Row]()
    for place in parted.shown:
        row = parted.rows[place]
        texts = (
            clip(row.name, _PASS_COLUMNS),
            _count(row.base),
            _count(row.head),
            share(row.share).replace(" ", ""),
            operation_words(row.apart, 1),
        )
        kind: Kind = "text"
        if row is parted.row:
            kind = "strong"
        rows.append(tuple((Span(text, kind),) for text in texts))
    # A terminal is narrow, so the columns leave out the date of a nightly release.
    compilers = [clean(traced.compilers[side].partition("rc")[0]) for side in SIDES]
    if compilers[0] == compilers[1]:
        compilers = list(SIDES)
    yield Table(
        ("after", *compilers, "difference", "what differs"),
        listed(rows, "pass"),
        wanted=(1, 2, 4, 3),
        unnumbered=(4,),
    )
    meaning = ""
    if rows:
        hidden = len(parted.rows) - len(rows)
        meaning = "operations of the function after each pass"
        if hidden:
            passes = plural(hidden, "more pass")
            meaning += f"; {passes} without a change of the difference"
    yield Sentence(meaning, small=True)


def _diverging_line(parted: Parting) -> str:
    """Return the pass after which the sides diverge, or why none is named."""
    if parted.row is not None:
        operations = operation_words(parted.operations, _NAMED) or OTHER_TYPES
        return f"the sides diverge after {parted.row.name}: {operations}"
    if parted.formed is not None:  # an experiment names the pass, and no row shows it
        return f"the sides diverge {parted.why}"
    if parted.rows:
        return f"no pass is named: {parted.why}"
    if parted.why.startswith(NOT_TRACED):
        return parted.why
    return f"{NOT_TRACED}: {parted.why}"


def trace_json(traced: Traced) -> Mapping[str, Any]:
    """Return the JSON of a trace.

    `passes[]` has `{name, level, base, head, share, apart}` of each pass, and
    `parts_at` the pass after which the sides diverge.
    """
    passes = []
    for row in traced.parting.rows:
        passes.append(
            {
                "name": row.name,
                "level": row.level,
                "base": row.base.total if row.base else None,
                "head": row.head.total if row.head else None,
                "share": row.share,
                "apart": row.apart,
            }
        )
    return {
        "schema": TRACE_SCHEMA,
        "model": traced.key.model,
        "target": traced.key.target,
        "dispatch": {name: row.name for name, row in traced.rows.items()},
        "code_bytes": {name: row.code_bytes for name, row in traced.rows.items()},
        "same_code": {name: side.same_code for name, side in traced.traces.items()},
        "compilers": traced.compilers,
        "passes": passes,
        "parts_at": traced.parting.row.name if traced.parting.row else None,
        "parts_at_place": traced.parting.at,
        "operations": traced.parting.operations,
        "why": traced.parting.why,
        "commands": traced.commands,
        **ladder_json(traced.ladder, traced.no_ladder),
        "proof": None if traced.proof is None else proof_json(traced.proof),
        "pass_proof": pass_proof_json(traced.pass_proof),
        "machine_passes": machine_pass_json(traced.machine),
        "program": program_json(traced.formed),
    }
