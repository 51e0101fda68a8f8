"""The compiler's scheduling statistics: the real file, missing keys, and anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FIXTURES

from bot.errors import MalformedBinary
from bot.readers.reports import read_statistics

REAL = (FIXTURES / "ir" / "tiny.statistics.json").read_text()


def test_the_real_file() -> None:
    assert read_statistics(REAL) == {
        "dispatch_sites": 5,
        "executables": 4,
        "fills": 0,
        "copies": 0,
        "awaits": 1,
        "submissions": 1,
        "transient_memory_bytes": 10_816,
        "constant_bytes": 0,
    }


@pytest.mark.parametrize("missing", ["stream-aggregate", "execution", "executable", "dispatch-count"])
def test_a_missing_key_is_none_and_never_zero(missing: str) -> None:
    document = json.loads(REAL.replace(f'"{missing}"', '"renamed"'))
    found = read_statistics(json.dumps(document))
    assert found["dispatch_sites"] is None or missing == "executable"
    assert found["executables"] is None or missing in ("execution", "dispatch-count")
    assert 0 not in (found["dispatch_sites"], found["executables"])


@pytest.mark.parametrize("value", ["5", 5.0, True, -1, [], {}, 2**53 + 1])
def test_a_count_that_is_no_count_is_refused(value: Any) -> None:
    document = json.loads(REAL)
    document["stream-aggregate"]["execution"]["dispatch-count"] = value
    with pytest.raises(MalformedBinary, match=r"execution\.dispatch-count: expected"):
        read_statistics(json.dumps(document))


def test_what_is_not_json_is_refused() -> None:
    for text in ("", REAL[: len(REAL) // 2]):
        with pytest.raises(MalformedBinary, match="scheduling statistics: is not JSON"):
            read_statistics(text)
    with pytest.raises(MalformedBinary):
        read_statistics("[" * 100_000)


@given(st.text() | st.integers().map(str) | st.lists(st.integers()).map(json.dumps))
def test_any_text_gives_statistics_or_malformed_binary(text: str) -> None:
    try:
        assert set(read_statistics(text).values()) == {None}
    except MalformedBinary as error:
        assert "\n" not in error.line
