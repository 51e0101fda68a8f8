"""Each wrong input ends with one line: what is wrong, where, and how to fix it.

Nothing was fetched or written before.

`fixtures/cli/wrong_inputs.txt` has the inputs. `$` begins the words of a command, `:` a
line of a configuration that `plan` reads; below it are the exit code and the line.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from json_texts import to_json
from places import ROOT
from strategies import plain_snapshot

from bot.cli.main import main

CASES_FILE = ROOT / "tests/fixtures/cli/wrong_inputs.txt"
CONFIG = "c.yml"
FILES = {
    "base.json": to_json(plain_snapshot(("a", "vmvx", "ok"))),
    "empty.json": "",
    "notes.txt": "nothing of ours\n",
    "m/a.mlir": "module {}",
    "blank/b.mlir": " \n",
    "dist/README": "no wheel\n",
}


class Case(NamedTuple):
    """An input, and what it gives."""

    written: str
    code: int
    line: str


def cases() -> Iterator[Case]:
    lines = CASES_FILE.read_text(encoding="utf-8").splitlines()
    for written, answer in zip(lines[::2], lines[1::2], strict=True):
        code, _, line = answer.partition(" ")
        yield Case(written, int(code), line)


CASES = list(cases())


def test_there_are_as_many_as_promised() -> None:
    assert len(CASES) >= 60
    assert len({case.written for case in CASES}) == len(CASES)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODE_SIZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("CODE_SIZE_CACHE_LIMIT", raising=False)
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=[case.written for case in CASES])
def test_a_wrong_input_is_one_clear_line(
    folder: Path, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = shlex.split(case.written[2:])
    if case.written.startswith(": "):
        text = f"schema: code-size-config/1\n{case.written[2:]}\n"
        (folder / CONFIG).write_text(text, encoding="utf-8")
        arguments = ["plan", "--shards", "1", "--config", CONFIG]
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    lines = [
        line for line in err.splitlines() if not line.startswith("configuration: ")
    ]
    if os.environ.get("UPDATE_GOLDENS"):
        text = CASES_FILE.read_text(encoding="utf-8")
        old = f"{case.written}\n{case.code} {case.line}\n"
        CASES_FILE.write_text(
            text.replace(old, f"{case.written}\n{code} {' | '.join(lines)}\n"),
            encoding="utf-8",
        )
        return
    assert (out, lines, code) == ("", [case.line], case.code)
    assert not list((folder / "out").glob("*"))
