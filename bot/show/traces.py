"""The passes of dispatches: table and picture for the page; a trace on a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from bot.core.delta import CellDelta
from bot.core.explanation import OTHER_TYPES, Explanation, code_change
from bot.core.ladder import LLVM_OPTIMIZER, attribution, is_large_part
from bot.core.parting import TRACE_SCHEMA, Traced, parting
from bot.core.planned import SIDES
from bot.core.snapshot import CellKey
from bot.core.trace import Parting, operation_words
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

TRACES, TRACE_ROWS = 40, 120
"""The most dispatches of a page whose passes are shown, those whose code changed most, and passes of each."""
_NAME, _PASS, _OPERATIONS, _NAMED, _PASS_COLUMNS = 120, 64, 160, 3, 32
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
    """The traced dispatches with a pass whose code changed most."""
    sizes = sorted(
        (-abs(code_change(dispatch) or 0), key, dispatch.name)
        for key, explanation in facts.report.explanations.items()
        for dispatch in explanation.dispatches
        if dispatch.passed
    )
    return frozenset((key, name) for _, key, name in sizes[:TRACES])


def trace_folds(
    delta: CellDelta, explanation: Explanation, chosen: Collection[TracedDispatch]
) -> Iterator[Fold]:
    """The chosen dispatches of a cell through the passes of both compilers, in the order in which it tells of them."""
    for dispatch in explanation.dispatches:
        if (delta.key, dispatch.name) in chosen and delta.base and delta.head:
            pairs = ((delta.base, dispatch.base), (delta.head, dispatch.head))
            traces = [cell.traces.get(row.name) if row else None for cell, row in pairs]
            parted = parting(*traces)
            if parted.row is not None:
                printed_for = next(
                    (
                        trace.printed_for
                        for trace in traces
                        if trace and trace.printed_for
                    ),
                    "",
                )
                yield _trace_fold(clip(dispatch.name, _NAME), parted, printed_for)


def _trace_fold(name: str, parting: Parting, printed_for: str) -> Fold:
    at = parting.at or 0
    begin = max(0, min(at - TRACE_ROWS // 3, len(parting.rows) - TRACE_ROWS))
    places = range(begin, min(begin + TRACE_ROWS, len(parting.rows)))
    marks, rows = {at: "the sides diverge"}, list[Marked]()
    for place in (place for place in parting.shown if place in places):
        row, mark = parting.rows[place], marks.get(place, "")
        base, head = (
            "–" if state is None else f"{state.total:,}"
            for state in (row.base, row.head)
        )
        share = percent(row.share).removeprefix("+") if row.share else "0 %"
        operations = clip(clean(operation_words(row.apart, _NAMED)), _OPERATIONS)
        named = f"{_pass(row.name)} ◀ {mark}" if mark else _pass(row.name)
        rows.append(
            Marked(
                (named, _LEVELS.get(row.level, ""), base, head, share, operations),
                css="parts" if mark else "",
            )
        )
    equal_count, far = len(places) - len(rows), len(parting.rows) - len(places)
    hidden = (
        f" Not in the table: {plural(equal_count, 'pass')} that did not change the"
        " difference."
        if equal_count
        else ""
    )
    no_room = (
        f" The table leaves out {plural(far, 'pass')} before or after these rows."
        if far
        else ""
    )
    program = (
        f"The passes over the program were printed for {clean(printed_for)}, {_ALIKE}. "
        if printed_for
        else ""
    )
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
            code(_pass(parting.rows[at].name)),
        ),
        (
            Picture((("", json.dumps(_picture(parting, places, marks))),)),
            Table(_PASSES, listed(rows, "pass"), 2, sentences=5, css="passes"),
            Sentence(f"{_MEANING}{hidden}{no_room}", small=True),
            Sentence(commands, small=True),
        ),
        css="trace",
    )


def _picture(
    parting: Parting, places: range, marks: Mapping[int, str]
) -> Mapping[str, str]:
    """What each pass has, parted by `|`: its name, the operations on both sides, and how it is marked.

    One without a name stands between levels. A side on which a pass changes nothing is
    as it was after the one before.
    """
    lines: list[tuple[str, int | None, int | None, str]] = []
    level, base, head = "", None, None
    for place in places:
        row = parting.rows[place]
        if level not in ("", row.level):
            base = head = None
            lines.append(("", None, None, ""))
        level, base, head = (
            row.level,
            row.base.total if row.base else base,
            row.head.total if row.head else head,
        )
        lines.append((_pass(row.name), base, head, marks.get(place, "")))
    columns = zip(*lines, strict=True)
    texts = (
        "|".join(
            "" if value is None else str(value).replace("|", "/") for value in column
        )
        for column in columns
    )
    return dict(zip(("passes", "base", "head", "marks"), texts, strict=True))


def _pass(name: str) -> str:
    return clip(clean(name), _PASS)


def trace_blocks(traced: Traced) -> Iterator[Block]:
    """The passes after which another difference stands, the one that parts the sides marked, and how to see all."""
    traces = {name: traced.rows.get(name) for name in SIDES}
    sizes = (
        "n/a" if row is None or row.code_bytes is None else f"{row.code_bytes:,}"
        for row in traces.values()
    )
    name = next(row.name for row in (traces["head"], traces["base"]) if row)
    yield Sentence((strong(f"{clean(name)} of {traced.key}: {' → '.join(sizes)} B"),))
    yield from ladder_blocks(traced.ladder, traced.no_ladder)
    if traced.proof is not None:
        yield Sentence((strong(proof_line(traced.proof)),))
    if traced.pass_proof is not None:
        yield from pass_proof_blocks(traced.pass_proof)
    if traced.ladder is not None and is_large_part(
        attribution(traced.ladder), LLVM_OPTIMIZER
    ):
        yield Sentence(
            "LLVM optimizer: not divided: there is no experiment for its passes"
        )
    if traced.machine is not None:
        yield from machine_pass_blocks(traced.machine)
    yield from program_blocks(traced.formed)
    parting, rows = traced.parting, list[Row]()
    for row in (parting.rows[place] for place in parting.shown):
        base, head = (
            "–" if state is None else f"{state.total:,}"
            for state in (row.base, row.head)
        )
        apart_by = share(row.share).replace(" ", "")
        text = (
            clip(row.name, _PASS_COLUMNS),
            base,
            head,
            apart_by,
            operation_words(row.apart, 1),
        )
        kind: Kind = "strong" if row is parting.row else "text"
        rows.append(tuple((Span(word, kind),) for word in text))
    compilers = (clean(traced.compilers[name].partition("rc")[0]) for name in traces)
    yield Table(
        ("after", *compilers, "difference", "what differs"),
        listed(rows, "pass"),
        wanted=(1, 2, 4, 3),
        unnumbered=(4,),
    )
    hidden = len(parting.rows) - len(rows)
    meaning = (
        f"operations of the function after each pass; {hidden} more passes do not change"
        " the difference"
    )
    yield Sentence(meaning if rows else "", small=True)
    lead = f"{'no pass is named' if parting.rows else 'not traced'}: {parting.why}"
    if parting.row is not None:
        lead = (
            f"the sides diverge after {parting.row.name}:"
            f" {operation_words(parting.operations, _NAMED) or OTHER_TYPES}"
        )
    yield Sentence((strong(clean(lead)),))
    for name, side in traced.traces.items():
        if side.same_code is not None:
            is_same = (
                "the same code as the artifact"
                if side.same_code
                else "other code than the artifact"
            )
            yield Sentence(f"{name}: the traced compile gives {is_same}")
    for name, commands in traced.commands.items():
        yield section(
            f"Shown by, {name}",
            Code("\n".join(clean(command, 4_000) for command in commands)),
        )


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
        **ladder_json(traced.ladder, traced.no_ladder),
        "proof": None if traced.proof is None else proof_json(traced.proof),
        "pass_proof": pass_proof_json(traced.pass_proof),
        "machine_passes": machine_pass_json(traced.machine),
        "program": program_json(traced.formed),
    }
