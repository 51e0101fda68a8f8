"""What a comment remembers: it comes back as it was, stays short, and nothing foreign is taken for it."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.publication import LINE_LIMIT, Acceptance, CommentState, Seen, decode, encode

MARKER = "<!-- code-size-bot:default -->"
SEEN = Seen("bert", "vmvx", "artifact_bytes", "change", 10_000, "")
STATE = CommentState(
    "a" * 40, 7, True, (SEEN,), (Acceptance("octocat", "better --> fusion", "comment", 3, (SEEN, SEEN)),)
)

ints = st.integers(-(1 << 53), 1 << 53)
text = st.text(max_size=12)
seens = st.builds(Seen, text, text, text, text, st.none() | ints, text)
acceptances = st.builds(Acceptance, text, text, text, ints, st.lists(seens, max_size=3).map(tuple))
states = st.builds(
    CommentState,
    text,
    ints,
    st.booleans(),
    st.lists(seens, max_size=4).map(tuple),
    st.lists(acceptances).map(tuple),
    text,
)


def comment(line: str, marker: str = MARKER) -> str:
    return f"{marker}\n{line}\n✅ **Code size: pass** — fine.\n"


def line_of(plain: Any) -> str:
    data = base64.b64encode(zlib.compress(json.dumps(plain).encode())).decode()
    return f"<!-- code-size-bot-state:1:{data} -->"


@given(states)
def test_it_comes_back_as_it_was(state: CommentState) -> None:
    line = encode(state)
    assert decode(comment(line)) == state
    assert len(line) <= LINE_LIMIT and line.isascii() and line.isprintable()


@given(states)
def test_nothing_in_it_ends_the_html_comment(state: CommentState) -> None:
    inside = encode(state).removeprefix("<!-- ").removesuffix(" -->")
    assert "--" not in inside and ">" not in inside and "<" not in inside


def test_the_same_state_gives_the_same_line() -> None:
    assert encode(STATE) == encode(replace(STATE))


def test_line_ends_of_an_editor_do_no_harm() -> None:
    assert decode(comment(encode(STATE)).replace("\n", "\r\n")) == STATE


def many(count: int, length: int = 20) -> tuple[Seen, ...]:
    rows = (
        Seen(f"model_{i}_{hash_of(i, length)}", "vmvx", "artifact_bytes", "change", i * i, "") for i in range(count)
    )
    return tuple(sorted(rows, key=lambda one: one.model))


def hash_of(number: int, length: int) -> str:
    return "".join(format(zlib.crc32(f"{number}.{part}".encode()), "08x") for part in range(length // 8 + 1))


def test_too_many_findings_are_forgotten_before_any_acceptance() -> None:
    state = replace(STATE, findings=many(2_000))
    line = encode(state)
    found = decode(comment(line))
    assert found is not None and LINE_LIMIT // 3 < len(line) <= LINE_LIMIT
    assert found.acceptances == state.acceptances
    assert found.findings and found.findings == state.findings[: len(found.findings)]


def test_too_many_acceptances_are_forgotten_the_oldest_first() -> None:
    given = tuple(replace(STATE.acceptances[0], event_id=i, seen=many(150 + i)) for i in range(9))
    far = tuple(
        replace(one, seen=tuple(replace(s, limit=hash_of(one.event_id, 99)) for s in one.seen)) for one in given
    )
    loud = tuple(
        replace(one, seen=tuple(replace(s, kind=hash_of(one.event_id * 1_000 + n, 30)) for n, s in enumerate(one.seen)))
        for one in far
    )
    found = decode(comment(encode(replace(STATE, acceptances=loud))))
    assert found is not None and not found.findings
    assert 0 < len(found.acceptances) < 9 and found.acceptances == loud[-len(found.acceptances) :]


def test_one_finding_can_be_too_long_for_it() -> None:
    huge = "".join(map(chr, range(0x4E00, 0x9000)))
    state = CommentState("a" * 40, 7, True, (replace(SEEN, model=huge),))
    assert decode(comment(encode(state))) == replace(state, findings=())


PLAIN = ["a" * 40, 7, True, [["m", "t", "", "state", None, "new"]], [0], [["who", "why", "label", 3, [0]]]]


def changed(index: int, value: Any) -> list[Any]:
    return [value if at == index else old for at, old in enumerate(PLAIN)]


def test_the_plain_form_is_read() -> None:
    found = decode(comment(line_of(PLAIN)))
    assert found is not None and found.acceptances[0].seen == found.findings == (
        Seen("m", "t", "", "state", None, "new"),
    )


@pytest.mark.parametrize(
    "plain",
    [
        None,
        {},
        [],
        [*PLAIN, 1],
        changed(0, 5),
        changed(1, True),
        changed(1, 1.5),
        changed(1, 1 << 54),
        changed(2, 1),
        changed(3, [["m", "t", "", "state", True, "new"]]),
        changed(3, [["m", "t", 5, "state", None, "new"]]),
        changed(3, {"m": 1}),
        changed(4, [1]),
        changed(4, [-1]),
        changed(4, [False]),
        changed(4, [[0]]),
        changed(5, [["who", "why", "label", "3", [0]]]),
        changed(5, [["who", "why", "label", 3, [7]]]),
        changed(5, [None]),
    ],
)
def test_other_forms_are_not_read(plain: Any) -> None:
    assert decode(comment(line_of(plain))) is None


@pytest.mark.parametrize(
    "body",
    [
        "",
        MARKER,
        encode(STATE),
        comment("hello"),
        f"{MARKER}\n\n{encode(STATE)}",
        f"{MARKER} {encode(STATE)}",
        comment(encode(STATE), "somebody's words"),
        comment(f"x{encode(STATE)}"),
        comment(encode(STATE).replace(":1:", ":2:")),
        comment(encode(STATE)[:-12] + " -->"),
        comment("<!-- code-size-bot-state:1:AAAA -->"),
        comment("<!-- code-size-bot-state:1:A -->"),
        comment(f"<!-- code-size-bot-state:1:{'A' * 20_000} -->"),
    ],
)
def test_only_the_second_line_of_a_comment_of_ours_is_read(body: str) -> None:
    assert decode(body) is None


def test_a_bomb_and_deep_nesting_are_not_read() -> None:
    bomb = base64.b64encode(zlib.compress(b'["' + b"a" * (1 << 21) + b'"]', 9)).decode()
    deep = base64.b64encode(zlib.compress(b"[" * 200_000, 9)).decode()
    long_number = base64.b64encode(zlib.compress(b"[" + b"1" * 10_000 + b"]", 9)).decode()
    assert len(bomb) < 16_000
    for data in (bomb, deep, long_number):
        assert decode(comment(f"<!-- code-size-bot-state:1:{data} -->")) is None


def test_what_follows_the_data_is_not_read() -> None:
    data = base64.b64encode(zlib.compress(json.dumps(PLAIN).encode()) + b"more").decode()
    assert decode(comment(f"<!-- code-size-bot-state:1:{data} -->")) is None


@given(st.binary(max_size=60) | st.binary(max_size=60).map(zlib.compress))
def test_any_bytes_are_survived(data: bytes) -> None:
    decode(comment(f"<!-- code-size-bot-state:1:{base64.b64encode(data).decode()} -->"))


@given(st.text())
def test_any_text_is_survived(body: str) -> None:
    assert decode(body) is None


def test_a_line_from_before_it_knew_its_base_is_read() -> None:
    found = decode(comment(line_of(["a" * 40, 7, True, [], [], []])))
    assert found == CommentState("a" * 40, 7, True) and found.base_ref == ""
