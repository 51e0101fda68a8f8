"""Causes: the first phase that differs, each from a pair of which the answer is known; a missing fact is no answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matched_cells import PHASES, Row, cells, made, ordinal, whole, without_program
from replacing import replace

from bot.core.explanation import CAUSES
from bot.core.explanation import PHASES as ALL_PHASES
from bot.core.program import BOUND_PARTS, Family
from bot.core.snapshot import Cell
from bot.explain.matching import index_both, match_sides
from bot.explain.phases import Cause, cause_of, compare, dispatch_cause, keeps_apart

OTHER_INPUT = {"input": whole("j"), "global-optimization": whole("h")}
OTHER_OPTIMIZATION = {"input": whole("i"), "global-optimization": whole("h")}
FOLDED = Row("p1", "p", places=("e.0", "e.1", "e.2"), code="p1")
UNFOLDED = tuple(Row(f"p{i}", "p", places=(f"e.{i}",), code=f"p{i}") for i in range(3))
FAMILY = Family("constants", ("main_dispatch_0", "main_dispatch_2"), ("arith.constant i32 → arith.muli: 3, 5", "more"))


def _cause(base: Cell, head: Cell, same_model: bool = True, same_command: bool = True) -> Cause:
    left, right = index_both(base, head)
    return cause_of(compare(left, right, match_sides(left, right), same_model, same_command))


def _of(base: Cell, head: Cell, same_command: bool = True) -> list[tuple[str | None, str | None, str | None]]:
    """Base's and head's ordinal and the cause of every match that differs at all."""
    left, right = index_both(base, head)
    compared = compare(left, right, match_sides(left, right), True, same_command)
    cell = _cause(base, head)
    return [
        (ordinal(m.base), ordinal(m.head), dispatch_cause(m, compared, cell))
        for m in compared.matches
        if m.base is None
        or m.head is None
        or replace(m.base, executable="", name="") != replace(m.head, executable="", name="")
    ]


def _made(*rows: Row, **kwargs: Any) -> Cell:
    return made(*rows, **{"artifact": "b", **kwargs})


@pytest.mark.parametrize(
    ("same_model", "why"),
    [(True, "the same model text is read differently by the compiler"), (False, "the model itself changed")],
)
def test_input(same_model: bool, why: str) -> None:
    base, head = made(Row("s")), _made(Row("t", kind="conv", code="d"), phases=OTHER_INPUT)
    assert _cause(base, head, same_model) == Cause("input", "input", why)
    assert _of(base, head) == [(None, "0", "input"), ("0", None, "input")]


def test_a_program_that_is_read_differently_and_ends_up_the_same_is_no_cause() -> None:
    base, head = made(Row("s")), _made(Row("s", strategy="Tiling | [4, 0]", code="d"), phases=OTHER_INPUT)
    assert _cause(base, head).cause == "strategy"
    assert _cause(base, head, same_model=False).cause == "input"
    told = _cause(base, _made(Row("s"), phases=OTHER_INPUT))
    assert (told.cause, told.why.rpartition("; ")[2]) == ("packaging", "the program around them differs from input on")


def _bound(cell: Cell, bound: str, part: str = "offsets") -> Cell:
    """Its entry points have this one part of what is bound to them; the other parts are everywhere the same."""
    assert cell.program is not None
    parts = tuple(whole(bound if name == part else "same") for name in BOUND_PARTS)
    sources = tuple(replace(source, bound=whole(bound), bound_parts=parts) for source in cell.program.sources)
    return replace(cell, program=replace(cell.program, sources=sources))


def test_buffers_at_other_offsets_are_a_consequence_and_no_cause_of_their_own() -> None:
    rows = (Row("s", code="s"), Row("t", code="t", code_bytes=100))
    moved = [replace(row, code=row.code and row.code.upper(), code_bytes=104) for row in rows]
    base, head = _bound(made(*rows), "here"), _bound(_made(Row("new", code="n"), *moved, phases=OTHER_INPUT), "there")
    assert _of(base, head) == [(None, "0", "input"), ("0", "1", "input"), ("1", "2", "input")]
    by_another_compiler = _of(base, head, same_command=False)
    assert by_another_compiler == [(None, "0", "input"), ("0", "1", "codegen"), ("1", "2", "codegen")]
    alone = _cause(base, _bound(_made(*moved), "there"))
    assert (alone.cause, alone.phase) == ("codegen", "executable-source")
    assert alone.why.endswith("different code, for buffers that the program binds at different offsets")
    assert _cause(base, _bound(_made(*moved), "here")).phase == "code"


def test_other_assumptions_are_no_consequence_of_another_region() -> None:
    rows = (Row("s", code="s"), Row("t", code="t", code_bytes=100))
    moved = [replace(row, code=row.code and row.code.upper(), code_bytes=104) for row in rows]
    base = _bound(made(*rows), "before", "assumptions")
    head = _bound(_made(Row("new", code="n"), *moved, phases=OTHER_INPUT), "after", "assumptions")
    assert _of(base, head) == [(None, "0", "input"), ("0", "1", "codegen"), ("1", "2", "codegen")]


def test_an_inserted_dispatch_is_one_change_without_shift_noise() -> None:
    rows = [Row(f"s{i}", code=f"c{i}", places=(f"e.{i}",)) for i in range(5)]
    head = _made(Row("new", kind="elementwise"), *rows, phases=OTHER_INPUT)
    assert _of(made(*rows), head) == [(None, "0", "input")]


@pytest.mark.parametrize(
    ("phases", "phase", "end"),
    [
        (PHASES, "dispatch-creation", "matmul in encoder.0"),
        (OTHER_OPTIMIZATION, "global-optimization", "matmul in encoder.0"),
        ({"input": whole("i")}, None, "; the phase is not known, as global optimization was not read on both sides"),
    ],
)
def test_fusion_counts_sites_and_names_what_merged(phases: dict[str, str], phase: str | None, end: str) -> None:
    base = made(Row("m", operations=3), Row("r", kind="elementwise", operations=4), Row("k", code="k"))
    head = _made(Row("mr", operations=7, code="n"), Row("k", code="k"), phases=phases)
    found = _cause(base, head)
    assert (found.cause, found.phase) == ("fusion", phase)
    assert found.why.startswith(
        "regions are formed differently: 2 of 3 dispatch sites became 1; 1 × (matmul + elementwise) → "
    )
    assert found.why.endswith(end)
    assert {cause for _, _, cause in _of(base, head)} == {"fusion"}


def test_as_many_sites_of_the_same_kinds_are_not_said_to_be_formed_differently() -> None:
    """A release may spell the operations of a region otherwise, and call its dispatch by another name."""
    base = made(*(Row(f"m{i}", words="matmul", code=f"m{i}") for i in range(4)))
    head = _made(*(Row(f"n{i}", words="matmul_like", code=f"n{i}", operations=7) for i in range(4)))
    why = "4 of 4 dispatch sites have different IR, in as many regions of the same kinds (4 × matmul)"
    assert _cause(base, head) == Cause("fusion", "dispatch-creation", why)
    one = _made(Row("n0", code="n0"), *(Row(f"m{i}", code=f"m{i}") for i in range(1, 4)))
    assert _cause(base, one).why.startswith("1 of 4 dispatch sites has different IR, in as many regions")


def test_other_names_of_the_same_dispatches_are_nothing() -> None:
    base, head = made(Row("m", words="matmul")), _made(Row("m", words="matmul_like"), first=9)
    assert _cause(base, head).cause == "packaging"
    assert _cause(base, replace(head, artifact_digest=base.artifact_digest)).cause is None


def test_many_kinds_of_merges_are_cut() -> None:
    kinds = [f"kind{i}" for i in range(5)]
    pairs = [
        (Row(f"a{k}", kind=k, operations=10 * i), Row(f"b{k}", kind=k, operations=10 * i + 1))
        for i, k in enumerate(kinds, 1)
    ]
    base = made(*(row for pair in pairs for row in pair))
    head = _made(*(Row(f"w{k}", kind=k, operations=20 * i + 1) for i, k in enumerate(kinds, 1)))
    assert _cause(base, head).why.count(" × ") == 3
    assert _cause(base, head).why.endswith("; 2 more")


def test_dedup_lost_names_what_keeps_them_apart_and_won_is_its_mirror() -> None:
    one, three = made(FOLDED), _made(*UNFOLDED, families=[FAMILY])
    apart = "apart by constants (arith.constant i32 → arith.muli: 3, 5)"
    lost, won = _cause(one, three), _cause(three, one)
    assert lost == Cause(
        "dedup-lost", "deduplication", f"the same regions are folded into 1 → 3 executables; kept {apart}"
    )
    assert won == Cause(
        "dedup-won", "deduplication", f"the same regions are folded into 3 → 1 executables; were kept {apart}"
    )
    assert _of(one, three) == [(None, "0", "dedup-lost"), ("0", "1", "dedup-lost"), (None, "2", "dedup-lost")]
    assert {cause for _, _, cause in _of(three, one)} == {"dedup-won"}


def test_of_lost_and_won_the_net_decides_and_a_tie_is_neither() -> None:
    folded = Row("q1", "q", kind="conv", places=("c.0", "c.1"), code="q")
    unfolded = tuple(Row(f"q{i}", "q", kind="conv", places=(f"c.{i}",), code=f"q{i}") for i in range(2))
    assert _cause(made(FOLDED, *unfolded), _made(*UNFOLDED, folded)).cause == "dedup-lost"
    assert _cause(made(*UNFOLDED, folded), _made(FOLDED, *unfolded)).cause == "dedup-won"
    two = (Row("p1", "p", places=("e.0", "e.1")), Row("p2", "p", places=("e.2",)))
    for tie in (
        _cause(made(*two, folded), _made(FOLDED, *unfolded)),
        _cause(made(FOLDED, *unfolded), _made(*two, folded)),
    ):
        assert tie.why == "the same regions with different constants, shapes or offsets"


def test_each_dispatch_has_the_cause_of_its_own_structure() -> None:
    grown = Row("k", code="K", code_bytes=300)
    base, head = made(FOLDED, Row("k", code="k")), _made(*UNFOLDED, grown)
    assert _cause(base, head).cause == "dedup-lost"
    assert _of(base, head)[-1] == ("1", "3", "codegen")


@pytest.mark.parametrize(
    ("phases", "phase"),
    [(PHASES, "executable-source"), (OTHER_OPTIMIZATION, "global-optimization"), ({"input": whole("i")}, None)],
)
def test_other_constants_of_the_same_regions_are_fusion(phases: dict[str, str], phase: str | None) -> None:
    base, head = made(Row("p1", "p")), _made(Row("p2", "p", code="d"), phases=phases)
    found = _cause(base, head)
    assert (found.cause, found.phase) == ("fusion", phase)
    assert found.why.startswith("the same regions with different constants, shapes or offsets")
    assert _of(base, head) == [("0", "0", "fusion")]


def test_strategy_comes_before_codegen() -> None:
    rows = (Row("s", code="s"), Row("t", code="t"), Row("u", code="u"))
    head = _made(replace(rows[0], code="S", strategy="Tiling | [4, 0]"), replace(rows[1], code="T"), rows[2])
    assert _cause(made(*rows), head) == Cause(
        "strategy",
        "configuration",
        "1 of 3 dispatches of the same source have a different configuration",
    )
    assert [cause for _, _, cause in _of(made(*rows), head)] == ["strategy", "codegen"]


def test_a_configuration_that_changed_no_code_is_not_to_blame_for_other_code() -> None:
    rows = (Row("s", code="s"), Row("t", code="t"))
    renamed = [replace(row, strategy="Renamed") for row in rows]
    idle = _cause(made(*rows), _made(*renamed))
    why = "2 of 2 dispatches of the same source have a different configuration, but the same code"
    assert idle == Cause("strategy", "configuration", why)
    assert _cause(made(*rows), _made(renamed[0], replace(rows[1], code="T"))).cause == "codegen"
    assert _cause(made(*rows), _made(renamed[0], replace(renamed[1], code="T"))).why.startswith("1 of 2 dispatches")


def test_another_configuration_of_unknown_code_does_not_say_that_the_code_is_the_same() -> None:
    rows = (Row("s", code=None), Row("t", code="t"))
    other = [replace(row, strategy="Renamed") for row in rows]
    start = "dispatches of the same source have a different configuration"
    assert _cause(made(rows[0]), _made(other[0])).why == f"1 of 1 {start}; whether the code differs is not known"
    mixed = _cause(made(*rows), _made(other[0], replace(other[1], code="T"))).why
    assert mixed == f"2 of 2 {start}, 1 of them different code; of 1 it is not known whether the code differs"
    partly = _cause(made(*rows), _made(rows[0], other[1])).why
    assert partly == f"1 of 2 {start}, but the same code"


def test_codegen() -> None:
    rows = (Row("s", code="s"), Row("t", code="t"))
    head = _made(rows[0], replace(rows[1], code="T"))
    assert _cause(made(*rows), head) == Cause(
        "codegen", "code", "1 of 2 dispatches have the same configuration and different code"
    )
    assert _of(made(*rows), head) == [("1", "1", "codegen")]


def test_other_size_of_unknown_code_is_other_code() -> None:
    base, head = made(Row("s", code=None)), _made(Row("s", code=None, code_bytes=101))
    assert (_cause(base, head).cause, _of(base, head)) == ("codegen", [("0", "0", "codegen")])


@pytest.mark.parametrize("side", ["base", "head"])
def test_without_a_configuration_other_code_has_no_cause(side: str) -> None:
    known, unknown = (
        made(Row("s")),
        replace(_made(Row("s", code="d", strategy=None)), reasons={"strategies": "no dump"}),
    )
    base, head = (unknown, known) if side == "base" else (known, unknown)
    assert _cause(base, head) == Cause(None, None, f"the configuration was not read on {side}: no dump")
    assert _of(base, head) == [("0", "0", None)]


def test_packaging() -> None:
    row = Row("s")
    why = "the code of every dispatch is the same, its layout is not"
    assert _cause(made(row), _made(row)) == Cause("packaging", "layout", why)
    assert _cause(made(row), _made(row, phases=OTHER_OPTIMIZATION)) == Cause(
        "packaging", "layout", f"{why}; the program around them differs from global optimization on"
    )
    assert _of(made(row), _made(replace(row, stack_bytes=32))) == [("0", "0", "packaging")]


def test_code_that_cannot_be_compared_is_not_packaging() -> None:
    base, head = made(Row("s", code=None)), _made(Row("s", code="c"))
    assert _cause(base, head) == Cause(None, None, "the code of 1 of 1 dispatches could not be compared")


def test_only_sites_differ() -> None:
    fused = made(Row("s"), Row("x", kind="conv", code="x", places=("e.0", "e.1")))
    other = _made(Row("s"), Row("x", kind="conv", code="x"))
    assert _of(fused, other) == [("1", "1", "fusion")]


def test_the_same_artifact_has_no_cause() -> None:
    assert _cause(made(Row("s")), made(Row("s"))) == Cause(None, None, "both artifacts are the same bytes")


@pytest.mark.parametrize("side", ["base", "head"])
def test_what_was_not_read_gives_no_cause_but_the_reason(side: str) -> None:
    def both(lacking: Cell) -> tuple[Cell, Cell]:
        return (lacking, _made(Row("t", code="d"))) if side == "base" else (_made(Row("t", code="d")), lacking)

    base, head = both(without_program(made(Row("t")), "the worker ended"))
    assert _cause(base, head) == Cause(None, None, f"the program's IR was not read on {side}: the worker ended")
    assert _of(base, head) == [("0", "0", None)]
    assert _cause(*both(made(Row("s"), phases={}))).why == f"the input phase was not read on {side}"
    unlisted = made(Row("s"), Row("r"))
    assert unlisted.program is not None
    partial = replace(unlisted, program=replace(unlisted.program, sources=unlisted.program.sources[:1]))
    assert _cause(*both(partial)) == Cause(None, None, f"the IR of 1 of the dispatch sites was not read on {side}")


def test_a_family_is_named_only_if_it_holds_two_of_them() -> None:
    cell = made(*UNFOLDED, families=[FAMILY])
    assert keeps_apart(cell, ("main_dispatch_0", "main_dispatch_1")) == ""
    assert keeps_apart(replace(cell, families=(replace(FAMILY, varying=()),)), FAMILY.members) == "constants"


@given(cells(), cells(), st.booleans())
def test_swapping_exchanges_lost_and_won_and_keeps_the_rest(base: Cell, head: Cell, same_model: bool) -> None:
    there, back = _cause(base, head, same_model), _cause(head, base, same_model)
    mirror = {"dedup-won": "dedup-lost"}
    assert mirror.get(str(there.cause), there.cause) == mirror.get(str(back.cause), back.cause)
    assert there.phase == back.phase
    assert not there.cause == back.cause == "dedup-won"


_FIRST_PHASES = {
    "input": ("input",),
    "fusion": ("global-optimization", "dispatch-creation", "executable-source"),
    "dedup-lost": ("deduplication",),
    "dedup-won": ("deduplication",),
    "strategy": ("configuration",),
    "codegen": ("executable-source", "code"),
    "packaging": ("layout",),
}


@given(cells(), cells(), st.booleans())
def test_causes_and_phases_are_of_the_tables_and_always_with_a_reason(base: Cell, head: Cell, same: bool) -> None:
    found = _cause(base, head, same)
    assert found.why and found.why.isprintable()
    assert found.cause in (*CAUSES, None) and found.phase in (*ALL_PHASES, None)
    if found.cause is not None and found.phase is not None:
        assert found.phase in _FIRST_PHASES[found.cause]
    assert all(cause in (*CAUSES, None) for _, _, cause in _of(base, head))


@given(cells())
def test_the_same_measured_twice_differs_only_in_layout(cell: Cell) -> None:
    found = _cause(cell, replace(cell, artifact_digest="z"))
    assert found.cause in ("packaging", None)
    assert _of(cell, cell) == []
