"""What is given in place of what is wanted: one line that names the file, what it is, and how to go on."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import report_factory as make
from json_texts import report_to_json, to_json
from strategies import plain_snapshot

from bot.cli.main import main

FILES = {
    "base.json": to_json(plain_snapshot(("a", "vmvx", "ok"))),
    "report.json": report_to_json(make.explained_small()),
    "plan.json": '{"include":[{"cells":1,"shard":"1/1"}]}\n',
    "cut.json": report_to_json(make.explained_small())[:3000],
    "notes.txt": "nothing of ours\n",
}
NO_SNAPSHOT = "is not a snapshot that this version reads: its schema is"
AGAIN = "(measure it again with this version of code-size-bot)"


@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        (
            ("report", "--head", "base.json", "--base"),
            "report.json",
            f"{NO_SNAPSHOT} 'code-size-report/1', not",
        ),
        (
            ("report", "--base", "base.json", "--head"),
            "plan.json",
            f"{NO_SNAPSHOT} missing, not",
        ),
        (
            ("merge", "--out", "x.json"),
            "notes.txt",
            "is not a snapshot: it is not JSON, or was cut off: ",
        ),
        (
            ("explain",),
            "base.json",
            (
                "is not a report that this version reads: its schema is"
                " 'code-size-snapshot/1', "
            ),
        ),
        (
            ("explain",),
            "cut.json",
            "is not a report: it is not JSON, or was cut off: Input data was truncated",
        ),
        (
            ("plan", "--shards", "2", "--config"),
            "base.json",
            "cells: unknown key (known: after_merge, baseline, ",
        ),
    ],
)
def test_another_file_in_place_of_what_is_wanted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    name: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODE_SIZE_CACHE", str(tmp_path / "cache"))
    for file, text in FILES.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    selectors = ("--model", "a", "--target", "vmvx") if command[0] == "explain" else ()
    assert main((*command, name, *selectors)) == 2
    out, err = capsys.readouterr()
    (line,) = (
        line for line in err.splitlines() if not line.startswith("configuration: ")
    )
    assert out == "" and line.startswith(f"code-size-bot: {name}:") and message in line
    assert AGAIN in line or "snapshot" not in message.partition(":")[0]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "compare 3.11.0 nope",
            "nope: is not a compiler: no such file, directory or release",
        ),
        (
            "compare 3.11.0 3.13.0 --cache base.json",
            "--cache: 'base.json' is a file (name a directory)",
        ),
        (
            "bisect --model bertt --target vmvx 3.11.0 3.13.0",
            "--model bertt: matches no model",
        ),
        (
            (
                "trace --model bert* --target vmvx --dispatch d --base 3.11.0 --head"
                " 3.13.0"
            ),
            "2 builds match: bert_l4_f32_dyn on vmvx, ",
        ),
    ],
)
def test_what_can_be_refused_before_a_release_is_fetched_is_refused_before(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODE_SIZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    (tmp_path / "base.json").write_text(FILES["base.json"], encoding="utf-8")
    with contextlib.suppress(SystemExit):
        assert main(command.split()) == (4 if "nope" in command else 2)
    err = capsys.readouterr().err
    assert message in err and "fetch" not in err and "listed" not in err
