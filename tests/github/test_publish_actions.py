"""The files and commands of GitHub Actions, read back the way the runner reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from github_runner import outputs
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import OutputError
from bot.github.runner import (
    MAX_SUMMARY_BYTES,
    TOO_LONG,
    log_safe,
    write_outputs,
    write_summary,
)

KEYS = st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True)
NASTY_PARTS = [*"ab=<>{}$`\n\r\t :%#[]\u2028\0é", "EOF", "end-", "key<<EOF\n"]
NASTY = st.lists(st.sampled_from(NASTY_PARTS)).map("".join)


@given(
    st.dictionaries(
        KEYS, st.one_of(NASTY, st.text(st.characters(exclude_categories=["Cs"])))
    )
)
def test_outputs_arrive_as_they_are_and_no_others(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]
) -> None:
    path = tmp_path_factory.mktemp("outputs") / "out"
    path.write_text("earlier=1\n")
    write_outputs(path, values)
    assert outputs(path) == {"earlier": "1", **values}


def test_delimiters_are_not_to_be_guessed(tmp_path: Path) -> None:
    write_outputs(tmp_path / "out", {"a": "x", "b": "x"})
    write_outputs(tmp_path / "out", {"c": "x"})
    delimiters = set(re.findall(r"<<(\S+)", (tmp_path / "out").read_text()))
    assert len(delimiters) == 3 and all(
        len(delimiter) >= 32 for delimiter in delimiters
    )


def test_a_key_is_a_plain_name_and_a_surrogate_stops_nothing(tmp_path: Path) -> None:
    for key in ("", "a=b", "a\nb", "a<<b", "1a", "a b", "a\n"):
        with pytest.raises(ValueError, match="not names of outputs"):
            write_outputs(tmp_path / "out", {"fine": "1", key: "x"})
    assert not (tmp_path / "out").exists()
    write_outputs(tmp_path / "out", {"a": "x\udc80y"})
    assert outputs(tmp_path / "out") == {"a": "x?y"}


def test_a_file_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="out: cannot be written"):
        write_outputs(tmp_path / "missing" / "out", {"a": "x"})
    with pytest.raises(OutputError, match="cannot be written"):
        write_summary(tmp_path, "x")


def test_the_summary_is_appended_and_a_mebibyte_in_utf_8_at_most(
    tmp_path: Path,
) -> None:
    path = tmp_path / "summary"
    over = tmp_path / "over"
    assert write_summary(path, "# One") and write_summary(path, "# Two\n\n")
    assert path.read_text() == "# One\n# Two\n"
    assert write_summary(
        path, "ü" * ((MAX_SUMMARY_BYTES - 500) // 2)
    ) and not write_summary(path, "y" * 600)
    assert path.read_text().endswith(TOO_LONG) and "yyy" not in path.read_text()
    assert (
        not write_summary(over, "ü" * (MAX_SUMMARY_BYTES // 2))
        and over.read_text() == TOO_LONG
    )
    over.unlink()
    assert write_summary(over, "ü" * (MAX_SUMMARY_BYTES // 2 - 1) + "x")
    assert not write_summary(over, "more") and over.stat().st_size == MAX_SUMMARY_BYTES


def commands(text: str) -> list[str]:
    """The lines that the runner takes for a command: `::` after blanks, `##[` anywhere."""
    return [
        line
        for line in re.split("[\r\n\v\f\x85\u2028\u2029]", text)
        if line.strip().startswith("::") or "##[" in line
    ]


@pytest.mark.parametrize(
    "line",
    [
        "::error::x",
        "  \t::set-env name=PATH::x",
        "a\n::stop-commands::x",
        "a\r::warning::x",
        "##[error]x",
        "a ##[group]x",
        ":::notice::x",
        "\u00a0::notice::x",
        "\x1b[31m::error::x",
        "a\u2028::add-mask::x",
        "###[command]x",
    ],
)
def test_no_line_of_a_stranger_is_a_command(line: str) -> None:
    assert commands(re.sub(r"\x1b\[\d+m", "", line))
    safe = log_safe(line)
    assert not commands(re.sub(r"\x1b\[\d+m", "", safe))
    assert safe.replace(": :", "::", 1).replace("## [", "##[") == line


@given(
    NASTY
    | st.text()
    | st.lists(st.sampled_from(["::", ":", "##[", "#", "[", " ", "\n", "\r", "x"])).map(
        "".join
    )
)
def test_no_text_is_a_command_and_plain_text_stays(text: str) -> None:
    assert not commands(log_safe(text))
    plain = (
        "error: mlir::linalg::LinalgOp has no ::mlir::Type\n  at a.cpp:3\n\n#map ="
        " [1]\n"
    )
    assert log_safe(plain) == plain


def test_a_long_text_takes_no_long_time() -> None:
    assert log_safe("\n " * 200_000 + "\x1b[" * 100_000).count("\n") == 200_000
