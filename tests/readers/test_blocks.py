"""Blocks of source text."""

from __future__ import annotations

import contextlib

import pytest
from growth import LINEAR, cpu_growth
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import MalformedBinary
from bot.readers.blocks import blocks, header_pattern, outside, without_comments

HEADER = header_pattern(rb"(?P<kind>fn|type)\s+(?P<name>\w+)")


def found(text: bytes) -> list[tuple[str, str, bytes]]:
    return [(block.kind, block.name, block.body.of(text)) for block in blocks(text, HEADER, "test")]


def test_blocks_have_their_header_and_body() -> None:
    text = b"x = {1}; fn a() {one {two} three} type b {}"
    assert found(text) == [("fn", "a", b"one {two} three"), ("type", "b", b"")]
    assert [block.span.of(text) for block in blocks(text, HEADER, "test")] == [
        b"fn a() {one {two} three}",
        b"type b {}",
    ]


def test_braces_in_comments_and_strings_do_not_count() -> None:
    text = b'fn a { // }\n /* } */ "}\\"}" }'
    assert found(text) == [("fn", "a", text[6:-1])]


def test_a_declaration_is_no_block() -> None:
    assert found(b"fn a(); {not a} fn b {}") == [("fn", "b", b"")]


def test_outside_is_all_the_rest() -> None:
    text = b"one fn a {x} two type b {y} three"
    assert outside(text, list(blocks(text, HEADER, "test"))) == b"one \n two \n three"


def test_comments_become_blanks() -> None:
    assert without_comments(b'a // b\nc /* d\n*/ e "f" /* open') == b"a  \nc   e    "


@pytest.mark.parametrize(("text", "message"), [(b"fn a {", "never closed"), (b"}", "closes nothing")])
def test_unbalanced_braces_are_refused(text: bytes, message: str) -> None:
    with pytest.raises(MalformedBinary, match=message):
        found(text)


@given(st.text(alphabet='{}"/*;\\\n fnab', max_size=60))
def test_any_text(text: str) -> None:
    try:
        found(text.encode())
    except MalformedBinary:
        return


@pytest.mark.parametrize("piece", [b"fn a {/*", b'"\\'])
def test_time_is_linear_in_the_length(piece: bytes) -> None:
    def read(text: bytes) -> None:
        with contextlib.suppress(MalformedBinary):
            found(text)

    assert cpu_growth(lambda size: piece * (size // len(piece)), read, 50_000) < LINEAR
