"""Digests: whole ones tell everything apart; short ones prove only that something differs, and never name a text."""

from __future__ import annotations

from pathlib import Path

import pytest
from collisions import colliding_code, colliding_sources, source_of
from hypothesis import given
from hypothesis import strategies as st
from json_texts import to_json
from matched_cells import KEY, Row, made, whole
from measured import measured
from replacing import replace

from bot.compiler.cell_cache import TextStore
from bot.core.baseline import kept
from bot.core.program import Program
from bot.core.reading import ProgramFacts, SourceText
from bot.core.snapshot import (
    Cell,
    cut_program,
    differ,
    from_json,
    is_whole,
    key_of,
    name_of,
    short_code,
    short_program,
    written,
)
from bot.explain.texts import describe, shown_texts

LARGE = measured()


@given(st.binary(min_size=32, max_size=32))
def test_a_whole_digest_is_43_characters_and_its_beginning_is_none(sha256: bytes) -> None:
    text = written(sha256)
    assert is_whole(text) and is_whole(sha256.hex())
    assert not any(is_whole(short) for short in ("", text[:4], text[:42], text + "A", f"{text}\n", sha256.hex()[:16]))


@pytest.mark.parametrize(
    ("left", "right", "proved"),
    [
        (whole("a"), whole("a"), False),
        (whole("a"), whole("b"), True),
        (whole("abcd"), "abcd", False),
        ("abcde", "abcd", False),
        (whole("abcd"), "abce", True),
        ("", whole("a"), True),
        ("ab", "abc", True),
    ],
)
def test_two_digests_are_compared_by_what_both_have(left: str, right: str, proved: bool) -> None:
    assert differ(left, right) is differ(right, left) is proved


def test_texts_that_share_a_short_digest_are_told_apart() -> None:
    """Today's names of 30 and 24 bits were one for both."""
    left, right = map(source_of, colliding_sources())
    assert left.source != right.source and left.source[:5] == right.source[:5]
    assert differ(left.source, right.source)
    first, second = colliding_code()
    assert first[:4] == second[:4] and differ(first, second)


def test_the_text_that_is_shown_is_the_one_that_was_kept(tmp_path: Path) -> None:
    store, found = TextStore(tmp_path), []
    for text in colliding_sources():
        facts = ProgramFacts(1, 1, 1, (), sources=(SourceText("e", text, f"shown {text}"),))
        program = describe(facts)
        for digest, shown in shown_texts(facts, program).items():
            store.keep(digest, shown)
        found.append(store.load(program.sources[0].source))
    assert found == [f"shown {text}" for text in colliding_sources()]


def test_within_one_program_both_are_kept() -> None:
    texts = tuple(SourceText(f"e{i}", text, f"shown {text}") for i, text in enumerate(colliding_sources()))
    facts = ProgramFacts(2, 2, 2, (), sources=texts)
    assert len(shown_texts(facts, describe(facts))) == 2


def test_no_text_has_a_short_name(tmp_path: Path) -> None:
    """Even one that lies there is not found."""
    store, short = TextStore(tmp_path), source_of("op")
    with pytest.raises(ValueError, match="no whole digest"):
        store.keep(short.source[:5], "text")
    store.keep(short.source, "text")
    (path,) = (tmp_path / "ir").rglob("*.mlir")
    for name in (short.source[:5], "../../etc/passwd", ""):
        stray = tmp_path / "ir" / name.encode().hex()[:2] / f"{name.encode().hex()}.mlir"
        stray.parent.mkdir(exist_ok=True)
        stray.write_text("of whom?")
        assert store.load(name) is None
    assert store.load(short.source) == path.read_text() == "text"


# What is cut


def test_a_cell_with_one_cut_digest_is_known() -> None:
    cell = made(Row("s"), Row("t"))
    assert cell.program is not None
    assert not short_code(cell) and not short_program(cell.program)
    first, second = cell.dispatches
    assert short_code(replace(cell, dispatches=(first, replace(second, code="abcd"))))
    assert not short_code(replace(cell, dispatches=(replace(first, code=None),)))
    for changes in ({"source": "abcde"}, {"structure": "abcd"}, {"bound": "abcd"}, {"bound_parts": ("abcd",) * 3}):
        row = replace(cell.program.sources[1], **changes)
        assert short_program(replace(cell.program, sources=(cell.program.sources[0], row)))
    assert short_program(replace(cell.program, phases={"input": "0" * 16}))


def test_a_cut_program_remembers_which_it_was() -> None:
    program = LARGE.cells[0].program
    assert program is not None
    cut = cut_program(program)
    assert short_program(cut) and cut.whole == name_of(program) and is_whole(cut.whole)
    assert cut_program(cut) == cut
    assert name_of(program) == name_of(replace(program, arguments=()))
    earlier = replace(cut, whole="")  # as earlier versions wrote it: what it was is not known any more
    assert cut_program(earlier) == earlier
    assert {len(row.source) for row in cut.sources} == {5}
    assert {row.operations % 2**32 for row in program.sources} == {row.operations for row in cut.sources}


def test_files_have_whole_digests_and_baselines_have_short_ones() -> None:
    again = from_json(to_json(LARGE))
    assert again == LARGE
    for cell in again.cells:
        assert not short_code(cell) and cell.program is not None and not short_program(cell.program)
    for cell in kept(LARGE).cells:
        assert short_code(cell) and cell.program is not None and short_program(cell.program)


def test_snapshots_of_earlier_versions_are_read() -> None:
    """Their programs are named by 16 digits; any other beginning is refused."""
    cell = made(Row("s"))
    assert cell.program is not None
    text = to_json(replace(LARGE, cells=(cell,), models={KEY.model: "m"}))
    name = key_of(cell.program)
    assert text.count(name) == 2
    assert from_json(text.replace(name, name[:16])) == from_json(text)
    for wrong in (name[:15], name[:17], name[:8], name[:63], name[::-1]):
        with pytest.raises(Exception, match="not the digest of what it says"):
            from_json(text.replace(name, wrong))


def test_what_a_program_was_is_part_of_what_it_says() -> None:
    cell = made(Row("s"))
    assert cell.program is not None
    cut = replace(cell, program=cut_program(cell.program))
    text = to_json(replace(LARGE, cells=(cut,), models={KEY.model: "m"}))
    assert _program(from_json(text).cells[0]) == cut.program
    forged = text.replace(name_of(cell.program), "0" * 64)
    with pytest.raises(Exception, match="not the digest of what it says"):
        from_json(forged)


def _program(cell: Cell) -> Program | None:
    return cell.program
