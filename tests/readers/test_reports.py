"""What the compiler reports of a compile: real lines, missing keys, and anything else refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FIXTURES

from bot.errors import MalformedBinary
from bot.readers.reports import Frame, read_stack_usage, read_statistics

USAGE = (FIXTURES / "ir" / "tiny.stack-usage.txt").read_text()
NAMES = st.text(st.characters(exclude_characters="\t\n", exclude_categories=["Cs"]), min_size=1)


def test_the_real_frames() -> None:
    frames = read_stack_usage(USAGE)
    assert len(frames) == len(USAGE.splitlines()) == 49
    assert frames["tiny$net_dispatch_1_softmax_16x48xf32_dispatch_tensor_store"] == Frame(152, "static")
    assert frames["tiny$net_dispatch_4_conv_7x7x8x3x3_f32"] == Frame(8, "static")
    assert frames["iree_hal_executable_library_query"] == Frame(0, "static")


@pytest.mark.parametrize(
    ("place_and_name", "name"),
    [
        ("-:1:a:b_dispatch_0_matmul_64x64x64_f32", "a:b_dispatch_0_matmul_64x64x64_f32"),
        ("model.mlir:12:main$async_dispatch_0", "main$async_dispatch_0"),
        ("C:/models/m.mlir:3:main_dispatch_0", "main_dispatch_0"),
        ("a:b_linked:iree_h2f_ieee", "iree_h2f_ieee"),
        ("-:1:f:2:g", "f:2:g"),
        ("-:1:two words", "two words"),
    ],
)
def test_names_may_hold_colons(place_and_name: str, name: str) -> None:
    assert read_stack_usage(f"{place_and_name}\t24\tstatic\n") == {name: Frame(24, "static")}


def test_of_two_functions_of_one_name_the_larger_frame_counts() -> None:
    lines = ["a:f\t8\tstatic", "b:f\t32\tdynamic", "c:f\t16\tstatic"]
    assert read_stack_usage("\n".join(lines)) == {"f": Frame(32, "dynamic")}


def test_nothing_in_an_empty_file() -> None:
    assert read_stack_usage("") == {}


@pytest.mark.parametrize(
    "line",
    [
        "f\t8\tstatic",
        "-:1:\t8\tstatic",
        "-:1:f\t8",
        "-:1:f\t8\tstatic\t",
        "-:1:f\t-8\tstatic",
        "-:1:f\t8.5\tstatic",
        "-:1:f\t\u0664\tstatic",
        "-:1:f\t8\tsometimes",
        "-:1:f 8 static",
        f"-:1:f\t{'9' * 5000}\tstatic",
        f"-:1:f\t{2**53 + 1}\tstatic",
    ],
)
def test_a_line_that_is_not_of_the_format_is_named_by_its_number(line: str) -> None:
    with pytest.raises(MalformedBinary, match="line 3"):
        read_stack_usage(f"-:1:e\t8\tstatic\n\n{line}\n")


def test_a_file_cut_inside_a_line_is_refused() -> None:
    line = USAGE.splitlines()[0]
    for cut in range(1, len(line)):
        with pytest.raises(MalformedBinary, match="line 1"):
            read_stack_usage(line[:cut])


@given(st.dictionaries(NAMES, st.tuples(st.integers(0, 2**40), st.sampled_from(["static", "dynamic"]))))
def test_what_was_written_is_read(frames: dict[str, tuple[int, str]]) -> None:
    text = "".join(f"-:1:{name}\t{size}\t{kind}\n" for name, (size, kind) in frames.items())
    assert read_stack_usage(text) == {name: Frame(size, kind) for name, (size, kind) in frames.items()}


@given(st.text())
def test_any_text_gives_frames_or_malformed_binary(text: str) -> None:
    try:
        frames = read_stack_usage(text)
    except MalformedBinary as error:
        assert "line" in error.line
    else:
        assert all(name and frame.stack_bytes >= 0 for name, frame in frames.items())


STATISTICS = (FIXTURES / "ir" / "tiny.statistics.json").read_text()


def test_the_real_statistics() -> None:
    assert read_statistics(STATISTICS) == {
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
    document = json.loads(STATISTICS.replace(f'"{missing}"', '"renamed"'))
    found = read_statistics(json.dumps(document))
    assert found["dispatch_sites"] is None or missing == "executable"
    assert found["executables"] is None or missing in ("execution", "dispatch-count")
    assert 0 not in (found["dispatch_sites"], found["executables"])


@pytest.mark.parametrize("value", ["5", 5.0, True, -1, [], {}, 2**53 + 1])
def test_a_count_that_is_no_count_is_refused(value: Any) -> None:
    document = json.loads(STATISTICS)
    document["stream-aggregate"]["execution"]["dispatch-count"] = value
    with pytest.raises(MalformedBinary, match=r"execution\.dispatch-count: expected"):
        read_statistics(json.dumps(document))


def test_what_is_not_json_is_refused() -> None:
    for text in ("", STATISTICS[: len(STATISTICS) // 2]):
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
