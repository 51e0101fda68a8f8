"""bot.core.json_text: JSON of anybody, and types that threads read at once."""

from __future__ import annotations

import subprocess
import sys

import pytest
from places import ROOT

from bot.core.json_text import parse_json

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
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "wrong: 0\n", "")


@pytest.mark.parametrize(
    "text",
    [
        *("{", "", "nul", '{"a" 1}', '"\x01"', b"\xff", '{"a":1}'.encode("utf-16")),
        *(
            b"[" * 1_000_000,
            b'{"":' * 300_000,
            b'["\\"",' * 300_000,
            b"[" * 1_000_000 + b"]" * 1_000_000,
        ),
    ],
    ids=range(11),
)
def test_what_is_no_json_or_nested_without_end_is_a_value_error(
    text: str | bytes,
) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_json(text)
    assert (
        parse_json('{"a": [1, "[[["]}')
        == parse_json(b'{"a": [1, "[[["]}')
        == {"a": [1, "[[["]}
    )
