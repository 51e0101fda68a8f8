"""A display option is one argument: its name is that of a field of each view."""

from __future__ import annotations

import re
from pathlib import Path

import everyday
import pytest

from bot.cli import report
from bot.cli.grammar import Parser
from bot.cli.main import main
from bot.show.report_files import write_snapshot

TOP = 2
_add_arguments = report.arguments


def add_top(parser: Parser) -> None:
    """Add the option that a contributor would add."""
    _add_arguments(parser)
    parser.add_argument(
        "--top", type=int, dest="whys", help="builds that are explained"
    )


def summary_of(folder: Path, *options: str) -> str:
    sample = everyday.report("two_releases")
    for name, side in (("base", sample.base), ("head", sample.head)):
        write_snapshot(folder / f"{name}.json", side)
    files = [str(folder / "base.json"), str(folder / "head.json")]
    main(["report", *files, "--out", str(folder / "out"), "--quiet", *options])
    return (folder / "out" / "summary.md").read_text(encoding="utf-8")


def test_an_argument_with_the_name_of_a_view_s_field_shows_that_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "arguments", add_top)
    whole = summary_of(tmp_path)
    builds = whole.count("the sides first differ in ")
    assert builds > TOP and "more explained build" not in whole
    short = summary_of(tmp_path, "--top", str(TOP))
    assert short.count("the sides first differ in ") == TOP
    counted = re.search(r"…and ([\d,]+) more explained builds?\.", short)
    assert counted and int(counted[1]) == builds - TOP
    assert summary_of(tmp_path) == whole, "the next command has its own options"
