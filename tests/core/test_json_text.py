"""bot.core.json_text: what is nested too deep is refused by a scan; and types that threads read at once."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from contextlib import suppress

import pytest
from growth import LINEAR, cpu_growth, steps
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import ROOT

from bot.core import json_text as nesting
from bot.core.json_text import MAX_DEPTH, parse_json, refuse_deep

SCRIPT = """
import sys, threading, msgspec
from bot.core.json_text import converted, decoded

sys.setswitchinterval(1e-6)
wrong = []

def read(kind, ready, text):
    ready.wait()
    one = decoded(text, kind, "here")
    other = converted({"inner": {"deep": [{"x": 1}]}}, kind, "here")
    if one != other or one.inner.deep[0].x != 1:
        wrong.append(one)

for _ in range(400):
    leaf = msgspec.defstruct("Leaf", [("x", int)])
    inner = msgspec.defstruct("Inner", [("deep", list[leaf])])
    kind = msgspec.defstruct("Outer", [("inner", inner)])
    ready = threading.Barrier(8)
    threads = [threading.Thread(target=read, args=(kind, ready, b'{"inner":{"deep":[{"x":1}]}}')) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("wrong:", len(wrong))
"""


def test_a_type_that_threads_read_for_the_first_time_at_once() -> None:
    """The library alone crashes there now and then."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "wrong: 0\n", "")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.text('[]{}"\\,:a\n\u20ac', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[]{}"\\a', max_size=4), inner, max_size=3),
    max_leaves=12,
)


def depth_of(value: object) -> int:
    """How deep a parsed value is nested."""
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(depth_of, value.values() if isinstance(value, dict) else value), default=0)


def walked(text: str) -> tuple[int, bool]:
    """The depth that a parser can reach, by a walk over the characters; False where a stray backslash ends it."""
    depth = deepest = 0
    inside = escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\":
            if not inside:
                return deepest, False
            escaped = True
        elif char == '"':
            inside = not inside
        elif not inside:
            depth += (char in "[{") - (char in "]}")
            deepest = max(deepest, depth)
    return deepest, True


def is_refused(text: str | bytes, most: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "MAX_DEPTH", most)
        try:
            refuse_deep(text)
        except ValueError as error:
            assert str(error) == f"nested more than {most} levels deep"
            return True
        return False


@given(PLAIN, st.integers(0, 4), st.booleans())
def test_of_a_document_the_depth_of_its_value_counts(value: object, most: int, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    assert is_refused(text, most) is is_refused(text.encode(), most) is (depth_of(value) > most)
    assert parse_json(text) == parse_json(text.encode()) == parse_json(b"\xef\xbb\xbf" + text.encode()) == value


@given(st.text('[]{}"\\a, \n\u20ac\ud800', max_size=40), st.integers(0, 3))
@settings(max_examples=500)
@example('["\\\\"[[', 2)
@example('["\\\\\\"[[', 1)
@example('["[[', 1)
@example("]]]][[[", 0)
def test_of_any_text_no_parser_comes_deeper_than_allowed(text: str, most: int) -> None:
    depth, is_whole = walked(text)
    assert is_refused(text, most) is (depth > most) or (not is_whole and depth <= most)


@given(st.binary(max_size=60) | st.binary(max_size=20).map(lambda data: b"[" * 120 + data))
def test_any_bytes_are_a_value_or_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        assert depth_of(parse_json(data)) <= MAX_DEPTH


def test_the_deepest_that_is_read_and_what_is_no_json() -> None:
    for opening, pair, closing in (("[", "[]", "]"), ('{"a":', "{}", "}")):
        deepest, deeper = (opening * (n - 1) + pair + closing * (n - 1) for n in (MAX_DEPTH, MAX_DEPTH + 1))
        assert depth_of(parse_json(deepest)) == MAX_DEPTH
        with pytest.raises(ValueError, match="nested more than 100 levels deep"):
            parse_json(deeper)
        beside = deepest.removeprefix(opening).removesuffix(closing)
        assert depth_of(parse_json("[" + f"{beside}," * 5 + "1]")) == MAX_DEPTH, "side by side is not deep"
        assert parse_json(json.dumps(deeper * 50)) == deeper * 50, "brackets in a text are none"
    for text in ("{", "", "nul", '{"a" 1}', '"\x01"', "1" * 10_000, b"\xff", '{"a":1}'.encode("utf-16")):
        with pytest.raises(ValueError):
            parse_json(text)


@pytest.mark.parametrize(
    "data", [b"[" * 1_000_000, b'{"":' * 300_000, b'["\\"",' * 300_000, b"[" * 1_000_000 + b"]" * 1_000_000]
)
def test_a_nesting_without_end_never_reaches_the_end_of_the_stack(data: bytes) -> None:
    """With the collector running at every chance, each time with a finalizer that needs a little stack."""
    depths: list[int] = []

    class Loop:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            frame, depth = sys._getframe(), 0
            while frame.f_back is not None:
                frame, depth = frame.f_back, depth + 1
            depths.append(depth)

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        Loop()
        with pytest.raises(ValueError, match="nested more than 100 levels deep"):
            parse_json(data)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(depths) == 1 and depths[0] < sys.getrecursionlimit() // 2


MADE = {
    "opened": lambda size: b"[" * size,
    "escapes": lambda size: b"[" * 100 + b'"' + b'\\\\\\"' * size + b'"[',
    "a text without end": lambda size: b"[" * 101 + b'"' + b"[" * size,
}


@pytest.mark.parametrize("made", MADE)
def test_the_scan_is_linear_and_none_of_it_python(made: str) -> None:
    def scan(data: bytes) -> None:
        with suppress(ValueError):
            refuse_deep(data)

    small, large = MADE[made](10_000), MADE[made](100_000)
    assert abs(steps(lambda: scan(large)) - steps(lambda: scan(small))) < 20, "a loop of Python's own"
    assert cpu_growth(MADE[made], scan, 100_000) < LINEAR
