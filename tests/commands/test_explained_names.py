"""`explain` takes what a report shows: short targets, beginnings of names, clipped names; else it says what is near."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_factory as make

from bot.cli.main import main
from bot.core.report import report_lines
from bot.core.snapshot import CellKey
from bot.show.escape import clip

REPORT = make.explained_small()
KEY = next(iter(REPORT.explanations))
DISPATCHES = [delta.name for delta in REPORT.explanations[KEY].dispatches]


@pytest.fixture
def report(tmp_path: Path) -> str:
    path = tmp_path / "report.json"
    text = b"".join(report_lines(REPORT))
    path.write_bytes(text.replace(b"main_dispatch_40_", b"main_dispatch_10_"))
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(("explain", *arguments))
    found = capsys.readouterr()
    return code, found.out, found.err


@pytest.mark.parametrize("target", ["llvm-cpu-x86_64", "x86_64", "x86*", "llvm-cpu-x86", "x86", "llvm-…_64"])
@pytest.mark.parametrize("model", ["mobilenet", "mobile", "mob*"])
def test_a_cell_by_any_of_its_names(report: str, capsys: pytest.CaptureFixture[str], model: str, target: str) -> None:
    assert CellKey("mobilenet", "llvm-cpu-x86_64") == KEY
    code, out, err = told(capsys, report, "--model", model, "--target", target)
    assert code == 0 and out.startswith("mobilenet on llvm-cpu-x86_64: "), err


def test_a_dispatch_by_any_of_its_names(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = DISPATCHES[0]
    assert first.startswith("main_dispatch_0_")
    for name in (first, "main_dispatch_0", "main_dispatch_0_*", clip(first, 24)):
        code, out, err = told(capsys, report, "--model", "mobilenet", "--target", "x86_64", "--dispatch", name)
        assert code == 0 and f"\n{first} (" in out, err


def test_the_beginning_of_one_number_is_not_that_of_another(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "main_dispatch_1_matmul" in DISPATCHES[1] and "main_dispatch_10_" in Path(report).read_text()
    code, out, err = told(capsys, report, "--model", "mobilenet", "--target", "x86_64", "--dispatch", "main_dispatch_1")
    assert code == 0 and "\nmain_dispatch_1_" in out, err
    code, _, err = told(capsys, report, "--model", "mobilenet", "--target", "x86_64", "--dispatch", "main_disp")
    assert code == 2 and "--dispatch: 'main_disp' matches several: main_dispatch_0" in err


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("x86-64", "--target: no target of the report is 'x86-64' (did you mean 'llvm-cpu-x86_64'?)"),
        ("ppc", "--target: no target of the report is 'ppc' (known: "),
    ],
)
def test_what_is_not_there_is_one_line(
    report: str, capsys: pytest.CaptureFixture[str], target: str, words: str
) -> None:
    code, _, err = told(capsys, report, "--model", "mobilenet", "--target", target)
    assert code == 2 and words in err
