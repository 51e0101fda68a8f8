"""Why a cell changed: cause, phase and words of pairs whose answer is known.

What is listed, its note and its diff.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matched_cells import Row, cells, made, ordinal, whole, without_program
from reader_checks import fixture
from replacing import replace

from bot.core.explanation import (
    CAUSES,
    UNATTRIBUTED,
    DispatchDelta,
    Explanation,
    code_differs,
    named_bytes,
)
from bot.core.explanation import PHASES as ALL_PHASES
from bot.core.program import Family
from bot.core.reading import EntryPoint, Reader
from bot.core.snapshot import Cell, Dispatch
from bot.explain.compared import keeps_apart
from bot.explain.dispatch_deltas import MOST_DIFFS
from bot.explain.explanations import explain
from bot.explain.sameness import same_numbers
from bot.readers.metal import METAL
from bot.readers.ptx import PTX

OTHER_INPUT = {"input": whole("j"), "global-optimization": whole("h")}
OTHER_OPTIMIZATION = {"input": whole("i"), "global-optimization": whole("h")}
UNOPTIMIZED = {"input": whole("i")}
FOLDED = Row("p1", "p", places=("e.0", "e.1", "e.2"), code="p1")
UNFOLDED = tuple(Row(f"p{i}", "p", places=(f"e.{i}",), code=f"p{i}") for i in range(3))
FAMILY = Family(
    "constants",
    ("main_dispatch_0", "main_dispatch_1", "main_dispatch_2"),
    ("i32: 3, 5, 7", "more"),
)
TEXTS = {
    whole(f"{letter}{number}"): f"func\n  op {letter}{number}\n"
    for letter in "pqsk"
    for number in range(9)
}
S, T, U = (Row(name, code=name) for name in "stu")


def _told(
    base: Cell, head: Cell, same_model: bool = True, same_command: bool = True
) -> Explanation:
    return explain(
        base,
        head=replace(head, artifact_digest="b"),
        same_model=same_model,
        same_command=same_command,
        texts=TEXTS.get,
    )


def _listed(deltas: Iterable[DispatchDelta]) -> str:
    """Base's and head's ordinal and the cause of what is listed."""
    return ", ".join(
        f"{ordinal(dispatch.base) or ''}>{ordinal(dispatch.head) or ''} {dispatch.cause}"
        for dispatch in deltas
    )


def _changed(row: Row, **changes: Any) -> Row:
    return replace(row, **{"code": row.code and row.code.upper(), **changes})


CONFIGURED = "the same source and a different configuration"
SAME_WITH_OTHER_VALUES = "the same regions with different constants, shapes or offsets"
MERGED = "regions are formed differently: 2 of 3 dispatch sites became 1"
APART = (Row("m"), Row("r", kind="elementwise"), Row("k", code="k"))
TOGETHER = (Row("mr", code="n"), Row("k", code="k"))
Q_FOLDED = Row("q1", "q", kind="conv", places=("c.0", "c.1"), code="q")
Q_UNFOLDED = tuple(
    Row(f"q{i}", "q", kind="conv", places=(f"c.{i}",), code=f"q{i}") for i in range(2)
)
PAIRED = (Row("p1", "p", places=("e.0", "e.1")), Row("p2", "p", places=("e.2",)))
CASES: dict[str, tuple[Cell, Cell, str | None, str | None, str, str | None]] = {
    "input": (
        made(Row("s")),
        made(Row("t", kind="conv", code="d"), phases=OTHER_INPUT),
        "input",
        "input",
        "the compiler reads the same model text differently",
        ">0 input, 0> input",
    ),
    "read differently, and another configuration": (
        made(Row("s")),
        made(Row("s", strategy="Tiling | [4, 0]", code="d"), phases=OTHER_INPUT),
        "strategy",
        "configuration",
        f"1 of 1 dispatch has {CONFIGURED}",
        "0>0 strategy",
    ),
    "read differently, and the same in the end": (
        made(Row("s")),
        made(Row("s"), phases=OTHER_INPUT),
        "packaging",
        "layout",
        "the code of every dispatch is the same, but its layout differs",
        "",
    ),
    "an inserted dispatch without shift noise": (
        made(*(Row(f"s{i}", code=f"c{i}", places=(f"e.{i}",)) for i in range(5))),
        made(
            Row("new", kind="elementwise"),
            *(Row(f"s{i}", code=f"c{i}", places=(f"e.{i}",)) for i in range(5)),
            phases=OTHER_INPUT,
        ),
        "input",
        "input",
        "the compiler reads the same model text differently",
        ">0 input",
    ),
    "merged": (
        made(*APART),
        made(*TOGETHER),
        "fusion",
        "dispatch-creation",
        MERGED,
        None,
    ),
    "merged, the phase not known": (
        made(*APART),
        made(*TOGETHER, phases=UNOPTIMIZED),
        "fusion",
        None,
        MERGED,
        None,
    ),
    # a release may spell operations otherwise, and call dispatches by other names
    "as many sites of the same kinds": (
        made(*(Row(f"m{i}", words="matmul", code=f"m{i}") for i in range(4))),
        made(*(Row(f"n{i}", words="matmul_like", code=f"n{i}") for i in range(4))),
        "fusion",
        "dispatch-creation",
        "other IR at 4 of 4 dispatch sites, in the same number of regions of the same kinds",
        None,
    ),
    "other names alone": (
        made(Row("m", words="matmul")),
        made(Row("m", words="matmul_like"), first=9),
        "packaging",
        "layout",
        "the code of every dispatch is the same, but its layout differs",
        "",
    ),
    "folded on base": (
        made(FOLDED),
        made(*UNFOLDED, families=[FAMILY]),
        "dedup-lost",
        "deduplication",
        "the same regions are folded into 1 → 3 executables; kept apart by constants (i32: 3, 5, 7)",
        ">0 dedup-lost, 0>1 dedup-lost, >2 dedup-lost",
    ),
    "folded on head": (
        made(*UNFOLDED, families=[FAMILY]),
        made(FOLDED),
        "dedup-won",
        "deduplication",
        "the same regions are folded into 3 → 1 executables; were kept apart by constants (i32: 3, 5, 7)",
        "0> dedup-won, 1>0 dedup-won, 2> dedup-won",
    ),
    "of lost and won the net decides": (
        made(FOLDED, *Q_UNFOLDED),
        made(*UNFOLDED, Q_FOLDED),
        "dedup-lost",
        "deduplication",
        "the same regions are folded into 3 → 4 executables",
        None,
    ),
    "a tie of lost and won": (
        made(*PAIRED, Q_FOLDED),
        made(FOLDED, *Q_UNFOLDED),
        "fusion",
        "executable-source",
        SAME_WITH_OTHER_VALUES,
        None,
    ),
    "each dispatch has the cause of its own structure": (
        made(FOLDED, Row("k", code="k")),
        made(*UNFOLDED, Row("k", code="K", code_bytes=101)),
        "dedup-lost",
        "deduplication",
        "the same regions are folded into 1 → 3 executables",
        ">0 dedup-lost, 0>1 dedup-lost, >2 dedup-lost, 1>3 codegen",
    ),
    "other constants": (
        made(Row("p1", "p")),
        made(Row("p2", "p", code="d")),
        "fusion",
        "executable-source",
        SAME_WITH_OTHER_VALUES,
        "0>0 fusion",
    ),
    "other constants after another optimization": (
        made(Row("p1", "p")),
        made(Row("p2", "p", code="d"), phases=OTHER_OPTIMIZATION),
        "fusion",
        "global-optimization",
        SAME_WITH_OTHER_VALUES,
        "0>0 fusion",
    ),
    "strategy before codegen": (
        made(S, T, U),
        made(_changed(S, strategy="Tiling | [4, 0]"), _changed(T), U),
        "strategy",
        "configuration",
        f"1 of 3 dispatches has {CONFIGURED}",
        "0>0 strategy, 1>1 codegen",
    ),
    "a configuration that changed no code": (
        made(S, T),
        made(*(replace(row, strategy="Renamed") for row in (S, T))),
        "strategy",
        "configuration",
        f"2 of 2 dispatches have {CONFIGURED}, but the same code",
        "",
    ),
    "and is not to blame for other code": (
        made(S, T),
        made(replace(S, strategy="Renamed"), _changed(T)),
        "codegen",
        "code",
        "1 of 2 dispatches has the same configuration and different code",
        "1>1 codegen",
    ),
    "another configuration of unknown code": (
        made(replace(S, code=None)),
        made(replace(S, code=None, strategy="Renamed")),
        "strategy",
        "configuration",
        f"1 of 1 dispatch has {CONFIGURED}",
        None,
    ),
    "codegen": (
        made(S, T),
        made(S, _changed(T)),
        "codegen",
        "code",
        "1 of 2 dispatches has the same configuration and different code",
        "1>1 codegen",
    ),
    "other size of unknown code": (
        made(Row("s", code=None)),
        made(Row("s", code=None, code_bytes=101)),
        "codegen",
        "code",
        "1 of 1 dispatch has the same configuration and different code",
        "0>0 codegen",
    ),
    "other numbers of the same code": (
        made(S),
        made(replace(S, stack_bytes=32)),
        "packaging",
        "layout",
        "the code of every dispatch is the same, but its layout differs",
        "0>0 packaging",
    ),
    "code that cannot be compared": (
        made(Row("s", code=None)),
        made(Row("s", code="c")),
        None,
        None,
        "1 of 1 dispatch has code that could not be compared",
        None,
    ),
    "other sites alone": (
        made(Row("s"), Row("x", kind="conv", code="x", places=("e.0", "e.1"))),
        made(Row("s"), Row("x", kind="conv", code="x")),
        "fusion",
        "dispatch-creation",
        "regions are formed differently: 1 of 3 dispatch sites became 0",
        "1>1 fusion",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cause_phase_words_and_dispatches(name: str) -> None:
    base, head, cause, phase, reason, listed = CASES[name]
    explanation = _told(base, head)
    assert (explanation.cause, explanation.phase, explanation.why) == (
        cause,
        phase,
        reason,
    )
    if listed is not None:
        assert sorted(_listed(explanation.dispatches).split(", ")) == sorted(
            listed.split(", ")
        )


def test_another_text_of_the_model_is_the_cause_before_all_others() -> None:
    for name in ("input", "read differently, and another configuration"):
        explanation = _told(*CASES[name][:2], same_model=False)
        assert (explanation.cause, explanation.phase, explanation.why) == (
            "input",
            "input",
            "the model itself changed",
        )


def test_the_same_artifact_has_no_cause() -> None:
    assert (
        explain(made(S), made(S), True, True).why == "both artifacts are the same bytes"
    )


@pytest.mark.parametrize("side", ["base", "head"])
def test_what_was_not_read_gives_no_cause_but_the_reason(side: str) -> None:
    def both(lacking: Cell, whole_cell: Cell) -> tuple[Cell, Cell]:
        return (lacking, whole_cell) if side == "base" else (whole_cell, lacking)

    complete = made(Row("t", code="d"))
    unlisted = made(Row("s"), Row("r"))
    assert unlisted.program is not None
    partial = replace(
        unlisted,
        program=replace(unlisted.program, sources=unlisted.program.sources[:1]),
    )
    unconfigured = replace(
        made(Row("s", code="d", strategy=None)), reasons={"strategies": "no dump"}
    )
    for cells_, reason in (
        (
            both(without_program(complete, "it ended"), complete),
            "the program's IR was not read on {}: it ended",
        ),
        (
            both(made(Row("s"), phases={}), complete),
            "the input phase was not read on {}",
        ),
        (
            both(partial, complete),
            "the IR of 1 of the dispatch sites was not read on {}",
        ),
        (
            both(unconfigured, made(Row("s"))),
            "the configuration was not read on {}: no dump",
        ),
    ):
        explanation = _told(*cells_)
        assert (explanation.cause, explanation.phase, explanation.why) == (
            None,
            None,
            reason.format(side),
        )
    assert (
        _listed(_told(*both(without_program(made(Row("t")), "…"), complete)).dispatches)
        == "0>0 None"
    )


# Buffers that the program binds.


def _bound(cell: Cell, bound_text: str) -> Cell:
    """What is bound to its entry points."""
    assert cell.program is not None
    sources = (
        replace(source, bound=whole(bound_text)) for source in cell.program.sources
    )
    return replace(cell, program=replace(cell.program, sources=tuple(sources)))


def test_what_is_bound_otherwise_is_a_consequence_of_another_program_by_one_compiler() -> (
    None
):
    rows = (S, replace(T, code_bytes=100))
    moved = [_changed(row, code_bytes=104) for row in rows]
    base = _bound(made(*rows), "o")
    new = _bound(made(Row("new", code="n"), *moved, phases=OTHER_INPUT), "O")
    assert _listed(_told(base, new).dispatches) == ">0 input, 0>1 input, 1>2 input"
    by_another_compiler = _told(base, new, same_command=False)
    assert (
        _listed(by_another_compiler.dispatches) == ">0 input, 0>1 codegen, 1>2 codegen"
    )
    assert _told(base, _bound(made(*moved), "o")).phase == "code"


def test_what_is_bound_otherwise_is_said() -> None:
    remark = "but the program binds other buffers"
    base = _bound(made(S), "o")
    explanation = _told(base, _bound(made(_changed(S, code_bytes=104)), "O"))
    assert [dispatch.note for dispatch in explanation.dispatches] == [
        f"the same configuration, different code, {remark}"
    ]
    assert (
        explanation.why
        == f"1 of 1 dispatch has the same configuration and different code, {remark}"
    )
    assert explanation.phase == "executable-source"
    elsewhere = _told(
        base, _bound(made(_changed(S)), "O")
    )  # code of the same size is counted and not listed
    assert (elsewhere.dispatches, elsewhere.unchanged, elsewhere.rebased) == ((), 0, 1)
    assert _told(base, _bound(made(_changed(S)), "o")).rebased == 0


# What is listed, with its note and its diff.


def test_the_largest_change_comes_first_and_only_the_largest_have_diffs() -> None:
    rows = [Row(f"s{i}", code=f"s{i}") for i in range(4)]
    sizes = zip(rows, (100, 90, 150, 101), strict=True)
    head = made(
        *(
            replace(row, code_bytes=size, code=row.code if size == 100 else "x")
            for row, size in sizes
        )
    )
    explanation = _told(made(*rows), head)
    assert (_listed(explanation.dispatches), explanation.unchanged) == (
        "2>2 codegen, 1>1 codegen, 3>3 codegen",
        1,
    )
    assert {
        (dispatch.matched, dispatch.note) for dispatch in explanation.dispatches
    } == {("same-source", "the same configuration, different code")}
    assert (explanation.components, explanation.tree) == ((), ())
    many = [Row(f"x{i}", code=f"x{i}") for i in range(MOST_DIFFS + 20)]
    shrunk = [
        replace(r, code="y", strategy="Distribute | [8, 0]", code_bytes=900 - i)
        for i, r in enumerate(many)
    ]
    dispatches = _told(made(*many), made(*shrunk)).dispatches
    assert [bool(dispatch.diff) for dispatch in dispatches] == [True] * MOST_DIFFS + [
        False
    ] * 20


NOTES: list[tuple[Cell, Cell, str, str, tuple[str, ...]]] = [
    (
        made(Row("s0", strategy="Tiling tile = [8, 0]")),
        made(Row("s0", code="d", strategy="Tiling tile = [4, 0]")),
        "0>0",
        "Tiling … tile 8 → 4",
        (" pipeline = Tiling", "-tile = [8, 0]", "+tile = [4, 0]"),
    ),
    (
        made(Row("p1", "p")),
        made(Row("p2", "p", code="d")),
        "0>0",
        "the same region with different constants, shapes or offsets",
        (" func", "-  op p1", "+  op p2"),
    ),
    (
        made(FOLDED),
        made(*UNFOLDED, families=[FAMILY]),
        ">0",  # two of head that were one on base
        "",
        (" func", "-  op p1", "+  op p0"),
    ),
    (
        made(FOLDED),
        made(*UNFOLDED, families=[FAMILY]),
        "0>1",
        "3 → 1 dispatch sites",
        (),
    ),
    (
        made(*UNFOLDED, families=[FAMILY]),
        made(FOLDED),
        "2>",
        "",
        (" func", "-  op p2", "+  op p1"),
    ),
    (made(Row("s0", kind="conv"), Row("k0")), made(Row("s1"), Row("k0")), ">0", "", ()),
    (
        without_program(made(Row("s0")), "the worker ended"),
        made(Row("s0", code="d")),
        "0>0",
        "the program's IR was not read on base: the worker ended",
        (),
    ),
    (
        made(Row("s0", strategy=None)),
        made(Row("s0", code="d", strategy=None)),
        "0>0",
        "the configuration was not read on base and head",
        (),
    ),
    (
        made(Row("s0", code=None)),
        made(Row("s0", stack_bytes=99)),
        "0>0",
        "its code could not be compared",
        (),
    ),
]


@pytest.mark.parametrize(("base", "head", "listing", "note", "diff"), NOTES)
def test_a_dispatch_has_its_note_and_its_diff(
    base: Cell, head: Cell, listing: str, note: str, diff: tuple[str, ...]
) -> None:
    (named_dispatch,) = (
        dispatch
        for dispatch in _told(base, head).dispatches
        if _listed([dispatch]).startswith(f"{listing} ")
    )
    assert (named_dispatch.note, named_dispatch.diff[3:]) == (note, diff)


def test_the_component_is_asked_of_the_side_that_has_it() -> None:
    base = made(Row("s0", kind="conv"))
    head = made(Row("s1"), artifact="h")
    conv, matmul = (f"main_dispatch_0_{kind}_8x16_f32" for kind in ("conv", "matmul"))
    explanation = explain(
        base,
        head,
        True,
        True,
        places=({conv: "stem", matmul: "no"}, {matmul: "head", conv: "no"}),
    )
    assert [dispatch.component for dispatch in explanation.dispatches] == [
        "head",
        "stem",
    ]
    assert {
        dispatch.component for dispatch in explain(base, head, True, True).dispatches
    } == {UNATTRIBUTED}


def test_another_file_that_the_build_reads_is_not_an_edit_of_the_model() -> None:
    base = made(Row("s0"))
    head = replace(made(Row("s1")), artifact_digest="b")
    head = replace(head, program=replace(head.program, phases=OTHER_INPUT))
    explanation = explain(base, head, True, True, same_inputs=False)
    assert explanation.cause == "input"
    assert explanation.why == (
        "the model is the same, but another file that the build reads changed"
    )
    edited = explain(base, head, False, True, same_inputs=False)
    assert edited.why == "the model itself changed"


def test_of_unknown_code_nothing_is_said_where_all_else_is_the_same() -> None:
    row = Row("s0", code=None)
    assert _told(made(row), made(row)).unchanged == 1
    assert len(_told(made(row), made(replace(row, strategy="other"))).dispatches) == 1


def test_a_family_is_named_only_if_it_holds_two_of_them() -> None:
    cell = made(
        *UNFOLDED,
        families=[replace(FAMILY, members=("main_dispatch_0", "main_dispatch_2"))],
    )
    assert keeps_apart(cell, ("main_dispatch_0", "main_dispatch_1")) == ""
    assert (
        keeps_apart(
            replace(cell, families=(replace(FAMILY, varying=()),)), FAMILY.members
        )
        == "constants"
    )


# Code is the same by its whole digest, whatever its text's length.


def _change(delta: DispatchDelta) -> int:
    return ((delta.head and delta.head.code_bytes) or 0) - (
        (delta.base and delta.base.code_bytes) or 0
    )


def test_a_longer_name_in_the_text_of_the_same_code_is_no_change_of_it() -> None:
    rows = [Row(f"s{i}", code=f"s{i}", places=(f"e.{i}",)) for i in range(3)]
    head = made(*(replace(row, code_bytes=104) for row in rows), first=9)
    explanation = _told(made(*rows, first=7), head)
    back = _told(head, made(*rows, first=7))
    assert (
        explanation.dispatches,
        explanation.unchanged,
        explanation.renamed_bytes,
        explanation.cause,
    ) == (
        (),
        3,
        12,
        "packaging",
    )
    assert (back.dispatches, back.renamed_bytes) == ((), -12)
    explanation = _told(
        made(*rows),
        made(replace(rows[0], code_bytes=104, places=("e.0", "e.0")), *rows[1:]),
    )
    assert (
        [_change(dispatch) for dispatch in explanation.dispatches],
        explanation.renamed_bytes,
    ) == ([4], 0)


def _row(entry: EntryPoint) -> Dispatch:
    return Dispatch(
        "e",
        entry.name,
        code_bytes=entry.code_bytes,
        stack_bytes=entry.stack_bytes,
        code=entry.code,
    )


@pytest.mark.parametrize(
    ("reader", "name"), [(PTX, "dense.cuda.ptx"), (METAL, "dense.metal-spirv.1.metal")]
)
def test_the_tenth_dispatch_of_a_real_kernel_has_a_longer_name_and_the_same_code(
    reader: Reader, name: str
) -> None:
    data = fixture(name)
    longer = re.sub(rb"(?<=_dispatch_)(?=\d)", b"1", data)
    for before, after in zip(
        reader.read(data).entry_points, reader.read(longer).entry_points, strict=True
    ):
        base = _row(before)
        head = _row(after)
        bytes_more = (head.code_bytes or 0) - (base.code_bytes or 0)
        assert code_differs(base, head) is False and same_numbers(base, head)
        assert named_bytes(base, head) == bytes_more > 0, (
            "the exact figure of each is measured"
        )


def test_of_other_or_unknown_code_no_bytes_are_of_names() -> None:
    base = Dispatch("e", "n", code_bytes=10, code="a" * 43)
    for head in (
        replace(base, code="b" * 43, code_bytes=12),
        replace(base, code=None, code_bytes=12),
    ):
        assert named_bytes(base, head) == 0
        assert code_differs(base, head) is True and not same_numbers(base, head)
    unsized = replace(base, code_bytes=None)
    assert named_bytes(base, unsized) == named_bytes(base, None) == 0
    assert code_differs(base, unsized) is False and not same_numbers(base, unsized)


# Whatever the cells.

_FIRST_PHASES = {
    "input": ("input",),
    "fusion": ("global-optimization", "dispatch-creation", "executable-source"),
    "dedup-lost": ("deduplication",),
    "dedup-won": ("deduplication",),
    "strategy": ("configuration",),
    "codegen": ("executable-source", "code"),
    "packaging": ("layout",),
}
_MIRROR = {"dedup-won": "dedup-lost"}


@given(cells(), cells(), st.booleans())
def test_what_is_listed_sums_to_the_cell_and_swapping_negates(
    base: Cell, head: Cell, same_model: bool
) -> None:
    explanation = explain(
        base, head=head, same_model=same_model, same_command=True, texts=TEXTS.get
    )
    back = explain(
        head, head=base, same_model=same_model, same_command=True, texts=TEXTS.get
    )
    assert (
        explanation.why
        and explanation.why.isprintable()
        and explanation.phase in (*ALL_PHASES, None)
    )
    assert explanation.cause is None or explanation.phase in (
        *_FIRST_PHASES[explanation.cause],
        None,
    )
    assert {dispatch.cause for dispatch in explanation.dispatches} <= {*CAUSES, None}
    assert _MIRROR.get(str(explanation.cause), explanation.cause) == _MIRROR.get(
        str(back.cause), back.cause
    )
    assert (
        explanation.phase == back.phase
        and not explanation.cause == back.cause == "dedup-won"
    )
    total = sum(row.code_bytes or 0 for row in head.dispatches) - sum(
        row.code_bytes or 0 for row in base.dispatches
    )
    assert (
        sum(map(_change, explanation.dispatches)) + explanation.renamed_bytes == total
    )
    assert (explanation.renamed_bytes, explanation.unchanged, explanation.rebased) == (
        -back.renamed_bytes,
        back.unchanged,
        back.rebased,
    )
    sites = [sum(row.sites or 0 for row in cell.dispatches) for cell in (base, head)]
    moved = [
        (dispatch.head.sites or 0 if dispatch.head else 0)
        - (dispatch.base.sites or 0 if dispatch.base else 0)
        for dispatch in explanation.dispatches
    ]
    assert sum(moved) == sites[1] - sites[0]
    pairs, back_pairs = (
        {
            (str(dispatch.base), str(dispatch.head))
            for dispatch in side_explanation.dispatches
        }
        for side_explanation in (explanation, back)
    )
    assert pairs == {(base_row, head_row) for head_row, base_row in back_pairs}


@given(cells())
def test_a_cell_against_itself_lists_nothing(cell: Cell) -> None:
    explanation = explain(cell, cell, True, True)
    assert (explanation.cause, explanation.dispatches, explanation.unchanged) == (
        None,
        (),
        len(cell.dispatches),
    )
    assert _told(cell, cell).cause in (
        "packaging",
        None,
    ), "of another artifact the layout alone differs"
