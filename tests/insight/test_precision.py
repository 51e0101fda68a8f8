"""A stored baseline beside a fresh side: what short digests can prove, what is said where they cannot, what shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from collisions import colliding_code, colliding_sources, source_of
from hypothesis import given
from matched_cells import KEY, PHASES, Row, cells, made, match, whole, without_program
from places import FIXTURES
from replacing import replace
from strategies import plain_snapshot

from bot.compiler.cell_cache import TextStore
from bot.core.delta import CellDelta
from bot.core.explanation import Explanation
from bot.core.program import Program, Source
from bot.core.snapshot import Cell, name_of
from bot.explain.explanations import explain
from bot.explain.matching import index_both
from bot.explain.texts import Texts, alike, kept_program, no_texts, uncut
from bot.show.facts import rest
from bot.store.entries import pack, unpack
from bot.study.cell import read_program

STRANGE = Row("strange", kind="pack", code="strange")
"""One that only head has: programs that differ are not recognised by their names."""


def stored(cell: Cell) -> Cell:
    """The cell as it comes back from a baseline."""
    side = plain_snapshot(cells=(cell,), models={KEY.model: "m"}, targets={KEY.target: "llvm-cpu"})
    (found,) = unpack(pack(side), "x").cells
    return found


def told(base: Cell, head: Cell, texts: Texts = no_texts) -> Explanation:
    return explain(
        CellDelta(KEY, "changed", {}, base, replace(head, artifact_digest="b" * 64), False), True, True, texts
    )


def coded(cell: Cell, *codes: str | None) -> Cell:
    rows = (replace(row, code=code) for row, code in zip(cell.dispatches, codes, strict=True))
    return replace(cell, dispatches=tuple(rows))


def sourced(cell: Cell, *sources: Source) -> Cell:
    """The cell with other IR."""
    assert cell.program is not None
    pairs = zip(cell.program.sources, sources, strict=True)
    rows = tuple(replace(source, executable=row.executable) for row, source in pairs)
    return replace(cell, program=replace(cell.program, sources=rows))


def at_hand(*texts: str, programs: tuple[Program | None, ...] = ()) -> Callable[[str], str | None]:
    """What was kept of fresh sides."""
    known = {source_of(text).source: f"shown {text}" for text in texts}
    return {**known, **dict(kept_program(program) for program in programs if program)}.get


# Two fresh sides: whole digests decide


def test_of_two_fresh_sides_whole_digests_decide() -> None:
    left, right = colliding_sources()  # which share 30 bits
    base, head = (sourced(made(Row("s", code=None)), source_of(text)) for text in (left, right))
    found = told(base, head, at_hand(left, right))
    assert (found.cause, found.unchanged, found.short_digests) == ("fusion", 0, False)
    (one,) = found.dispatches
    assert one.diff[3:] == (f"-shown {left}", f"+shown {right}")
    base, head = (coded(made(Row("s")), code) for code in colliding_code())  # which share 24
    found = told(base, head)
    assert (found.cause, found.phase, found.unchanged, found.short_digests) == ("codegen", "code", 0, False)
    assert found.why == "1 of 1 dispatches have the same configuration and different code"
    assert [one.matched for one in found.dispatches] == ["same-source"]


# A baseline, and a fresh side with the same program: its name says that its IR is the same


def test_the_same_program_is_recognised_by_its_whole_name_and_other_code_of_it_is_told_without_doubt() -> None:
    base, head = stored(made(Row("s"), Row("t"))), made(Row("s"), Row("t"))
    left, right = index_both(base, head)
    assert left.program is right.program is head.program
    assert (left.short_ir, left.short_code) == (right.short_ir, right.short_code) == (False, True)
    rows = (Row("s", code="s"), Row("t", code="t"))
    found = told(stored(made(*rows)), made(replace(rows[0], code="T", code_bytes=120), rows[1]))
    assert (found.cause, found.unchanged) == ("codegen", 1)
    assert found.why == "1 of 2 dispatches have the same configuration and different code"
    assert [one.matched for one in found.dispatches] == ["same-source"]
    assert rest(found) == "1 other dispatch did not change, as far as short digests tell."


def test_a_name_that_the_program_contradicts_is_no_evidence() -> None:
    base, head = stored(made(Row("s"))), made(Row("t"))
    assert base.program is not None and head.program is not None
    forged = replace(base, program=replace(base.program, whole=name_of(head.program)))
    left, right = index_both(forged, head)
    assert left.short_ir and right.short_ir
    assert told(forged, head).unchanged == 0
    other = made(Row("q", kind="conv"), phases={**PHASES, "input": whole("j")})
    assert told(base, other).why == "the same model text is read differently by the compiler", "proved, so no doubt"


# A baseline, and a fresh side with another program: beginnings are compared, and the words say so


def test_code_that_shares_24_bits_is_never_called_the_same() -> None:
    left, right = colliding_code()
    base, head = stored(coded(made(Row("s")), left)), coded(made(Row("s")), right)
    why = "the code of every dispatch has the same size, up to names, and short digest, its layout differs"
    for found in (told(base, head), told(head, base)):
        assert (found.cause, found.why) == ("packaging", why)
        assert (found.unchanged, found.short_digests) == (1, True)
        assert rest(found) == "1 other dispatch did not change, as far as short digests tell."
    others: list[dict[str, Any]] = [{"code_bytes": 101}, {"stack_bytes": 99}, {"vgprs": 7}, {"strategy": "Other"}]
    for changed in (*others, {"sites": 2}):  # everything that was measured beside it must be equal
        assert told(base, replace(head, dispatches=(replace(head.dispatches[0], **changed),))).unchanged == 0
    row = Row("s", code_bytes=None)  # without a size it says nothing
    assert "could not be compared" in told(stored(made(row)), made(replace(row, stack_bytes=9))).why
    assert told(stored(made(row, STRANGE)), made(row, Row("r", kind="conv", code="r"))).cause == "fusion"


def test_ir_that_shares_30_bits_is_never_called_the_same_and_no_ir_is_shown() -> None:
    left, right = (source_of(text) for text in colliding_sources())
    base, head = (sourced(made(Row("s")), one) for one in (left, replace(right, structure=left.structure)))
    found = told(stored(base), coded(head, whole("other")), at_hand(*colliding_sources()))
    assert (found.cause, found.short_digests) == ("codegen", True)
    assert found.why == "by short digests of IR, 1 of 1 dispatches have the same configuration and different code"
    (one,) = found.dispatches
    assert (one.matched, one.diff) == ("same-short-source", ())
    # nor is it believed where its structure differs
    uncoded = (sourced(made(Row("s", code=None)), one) for one in (left, replace(right, structure=whole("other"))))
    base, head = uncoded
    found = told(stored(base), head)
    assert (found.cause, found.unchanged) == ("fusion", 0)
    assert [(one.matched, one.cause) for one in found.dispatches] == [("same-kind-and-component", "fusion")]


def test_two_of_head_that_were_one_on_the_baseline_are_shown_by_heads_own_names() -> None:
    folded = Row("p1", "p", places=("e.0", "e.1"), code="p1")
    unfolded = tuple(Row(f"p{i}", "p", places=(f"e.{i}",), code=f"p{i}") for i in range(1, 3))
    texts = {whole(f"p{i}"): f"op p{i}\n" for i in range(3)}
    found = told(stored(made(folded)), made(*unfolded), texts.get)
    assert found.cause == "dedup-lost"
    assert found.why == "by short digests of IR, the same regions are folded into 1 → 2 executables"
    (added,) = [one for one in found.dispatches if one.matched == "added"]
    assert added.diff[3:] == ("-op p1", "+op p2")
    elsewhere = "which on base is main_dispatch_0_matmul_8x16_f32"
    assert added.note == f"by short digests of IR, one of 2 executables of the same region, {elsewhere}"


WORDS = [
    (Row("p2", "p", code="d"), PHASES, "the same regions with different constants, shapes or offsets"),
    (Row("q", kind="conv", code="d"), PHASES, "regions are formed differently: 1 of 2 dispatch sites became 1"),
    (
        Row("p1", "p", code="P", strategy="Other"),
        {**PHASES, "global-optimization": whole("h")},
        "1 of 2 dispatches of the same source have a different configuration",
    ),
]


@pytest.mark.parametrize(("row", "phases", "words"), WORDS)
def test_every_sentence_that_rests_on_equal_ir_says_how_it_was_compared(
    row: Row, phases: dict[str, str], words: str
) -> None:
    base, head = made(Row("p1", "p", code="p"), Row("k", code="k")), made(row, Row("k", code="k"), phases=phases)
    assert told(base, head).why == words
    assert told(stored(base), head).why == f"by short digests of IR, {words}"
    assert told(base, stored(head)).why == f"by short digests of IR, {words}"


def test_without_ir_short_code_pairs_only_beside_numbers_and_words() -> None:
    left, right = colliding_code()
    rows = (Row("s", words="4x4_f32"), Row("t", words="8x8_f32"))
    base, head = without_program(made(*rows)), without_program(made(*reversed(rows)))
    fresh = match(coded(base, left, whole("b")), coded(head, right, whole("h")))
    short = match(stored(coded(base, left, whole("b"))), coded(head, right, whole("h")))
    assert {found.passed for found in (*fresh, *short)} == {"same-description"}
    again = match(stored(coded(base, left, whole("b"))), coded(head, whole("h"), left))
    assert {found.passed for found in again} == {"same-description", "same-numbers-and-short-code"}


# What was kept brings whole digests back


def test_a_program_kept_with_its_texts_gives_a_baseline_its_whole_digests_back() -> None:
    left, right = colliding_sources()
    base, head = (sourced(made(Row("s", code=None)), source_of(text)) for text in (left, right))
    found = told(stored(base), head, at_hand(left, right, programs=(base.program,)))
    assert (found.cause, found.short_digests) == ("fusion", False)
    assert found.dispatches[0].diff[3:] == (f"-shown {left}", f"+shown {right}")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"phases":{}}', '{"sources":[{}]}', "[" * 100_000])
def test_what_was_kept_is_believed_only_if_it_is_what_the_name_says(text: str) -> None:
    program = stored(made(Row("s"))).program
    other = made(Row("t")).program
    assert program is not None and other is not None
    assert uncut(program, lambda _: text) is program
    assert uncut(program, lambda _: kept_program(other)[1]) is program


def test_what_measuring_keeps_is_enough_for_that(tmp_path: Path) -> None:
    """From the IR worker's real answer, through files of the cache, to the digests that the baseline had lost."""
    answer = (FIXTURES / "ir" / "named.answers.json").read_text(encoding="utf-8")
    store = TextStore(tmp_path)
    measured = read_program(json.dumps(json.loads(answer)["program"]), store).program
    assert measured is not None and measured.sources
    short = stored(replace(made(Row("s")), program=measured)).program
    assert short is not None and short.sources != measured.sources
    assert uncut(short, store.load) == replace(measured, arguments=())
    assert all(store.load(row.source) for row in measured.sources)
    assert not any(store.load(row.source) for row in short.sources)


def test_whole_programs_and_those_of_earlier_versions_ask_for_nothing() -> None:
    def texts(digest: str) -> str | None:
        raise AssertionError(digest)

    fresh = made(Row("s")).program
    assert fresh is not None
    assert uncut(fresh, texts) is fresh
    earlier = stored(made(Row("s"))).program
    assert earlier is not None
    assert uncut(replace(earlier, whole=""), texts).whole == ""
    assert uncut(replace(earlier, whole="../" * 21 + "x"), texts).sources == earlier.sources


# Whatever the cells


@given(cells(), cells())
def test_a_baseline_never_takes_more_for_the_same_and_no_text_is_asked_by_a_short_name(base: Cell, head: Cell) -> None:
    """Digests of these cells differ in their first characters, so that cutting them loses no difference."""
    asked: list[str] = []
    fresh, short = told(base, head), told(stored(base), head, lambda digest: asked.append(digest))
    assert (short.unchanged or 0) <= (fresh.unchanged or 0) and len(short.dispatches) >= len(fresh.dispatches)
    assert short.cause in (fresh.cause, "strategy", None)
    assert all(len(digest) in (43, 64) for digest in asked)
    own = told(stored(base), base)
    assert (own.dispatches, own.unchanged) == ((), len(base.dispatches))


def test_both_sides_of_a_comparison_are_cut_alike() -> None:
    left, right = made(Row("s")).program, stored(made(Row("t"))).program
    assert left is not None and right is not None
    for one, other in (alike(left, right), alike(right, left)):
        assert {len(row.source) for row in (*one.sources, *other.sources)} == {5 + 4}
    assert alike(left, left) == (left, left)


def test_a_longer_name_beside_a_short_digest_is_no_other_code_if_it_explains_the_size() -> None:
    """The tenth dispatch: names are a character longer, and the text of a kernel has its own some times."""
    base = stored(made(Row("s", code="s"), Row("t", code="t"), first=8))

    def moved(*sizes: int) -> Cell:
        rows = (Row(name, code=name, code_bytes=size) for name, size in zip("st", sizes, strict=True))
        return made(*rows, first=9)

    found = told(base, moved(100, 102))
    assert (found.dispatches, found.unchanged, found.renamed_bytes) == ((), 2, 2)
    assert rest(found) == "2 other dispatches did not change, as far as short digests tell."
    for sizes in ((102, 100), (100, 98), (100, 100 + 60)):  # no longer name, a smaller text, more often than it fits
        assert len(told(base, moved(*sizes)).dispatches) == 1
    other = made(Row("s", code="s"), Row("t", code="x", code_bytes=102), first=9)
    assert len(told(base, other).dispatches) == 1
