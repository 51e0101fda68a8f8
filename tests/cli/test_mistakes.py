"""What is given in place of what is wanted: one line that names the file, what it is, and how to go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fold_factory as folds
import pytest
import report_factory as make
from json_texts import report_to_json, to_json
from strategies import plain_snapshot

from bot.cli.main import main
from bot.compiler.toolchain import SPEC_HINT
from bot.core.fold import fold_lines
from bot.core.json_text import kind_of

SNAPSHOT = to_json(plain_snapshot(("a", "vmvx", "ok")))
FILES = {
    "base.json": SNAPSHOT,
    "report.json": report_to_json(make.explained_small()),
    "fold.json": b"".join(fold_lines(folds.small())).decode(),
    "plan.json": '{"include":[{"cells":1,"shard":"1/1"}]}\n',
    "comment.md": "<!-- code-size-bot:default -->\n<!-- code-size-bot-state:1:eJyLBgABFQC5 -->\n",
    "code-size.yml": "# ours\nschema: code-size-config/1\ntargets: [vmvx]\n",
    "suite.yml": "schema: code-size-suite/1\npairs: []\n",
    "notes.txt": "nothing of ours\n",
}
KINDS = {
    "base.json": "snapshot",
    "report.json": "report",
    "fold.json": "fold audit",
    "plan.json": "plan",
    "comment.md": "comment",
    "code-size.yml": "configuration",
    "suite.yml": "manifest of models",
    "notes.txt": "",
}
GIVE_SNAPSHOT = "give base.json or head.json, or measure one: code-size-bot measure --compiler SPEC --out FILE"
GIVE_CONFIGURATION = "give a YAML file: `code-size-bot init` writes one"
Said = Callable[..., str]


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    """The one line that a command ends with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODE_SIZE_CACHE", str(tmp_path / "cache"))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def run(*arguments: str, code: int = 2) -> str:
        assert main(arguments) == code
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines() if not line.startswith("configuration: ")]
        assert (out, len(lines)) == ("", 1)
        return lines[0].removeprefix("code-size-bot: ")

    return run


def test_every_file_of_ours_is_known_by_what_is_in_it_and_nothing_else_is() -> None:
    for name, kind in KINDS.items():
        assert kind_of(FILES[name]) == kind_of(FILES[name].encode()) == kind
    for text in ("", "{", "[]", "null", "[" * 100_000, '"\ud800"', '{"schema": 1}', "schema: x/1"):
        assert kind_of(text) == ""


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (("report", "--head", "base.json", "--base"), f"a snapshot is wanted ({GIVE_SNAPSHOT})"),
        (("report", "--base", "base.json", "--head"), f"a snapshot is wanted ({GIVE_SNAPSHOT})"),
        (("compare", "--head", "base.json", "--base"), f"a snapshot is wanted ({GIVE_SNAPSHOT})"),
        (("merge", "--out", "x.json"), f"a snapshot is wanted ({GIVE_SNAPSHOT})"),
        (("explain", "--model", "a", "--target", "vmvx"), "a report is wanted (give the report.json of a compare)"),
        (("plan", "--shards", "2", "--config"), f"a configuration is wanted ({GIVE_CONFIGURATION})"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_another_file_in_place_of_what_is_wanted(said: Said, command: tuple[str, ...], wanted: str) -> None:
    names = ["report.json"] if command[0] == "compare" else ["base.json", "report.json", "plan.json", "code-size.yml"]
    for name in names:
        if f"a {KINDS[name]} is wanted" not in wanted:
            assert said(*command, name) == f"{name}: is a {KINDS[name]}, {wanted}"


def test_a_snapshot_too_large_for_a_configuration_is_still_a_snapshot(said: Said, tmp_path: Path) -> None:
    long = to_json(plain_snapshot(("a", "vmvx", "ok"), notes=("x" * (1 << 20),)))
    (tmp_path / "long.json").write_text(long, encoding="utf-8")
    line = said("plan", "--shards", "2", "--config", "long.json")
    assert line == f"long.json: is a snapshot, a configuration is wanted ({GIVE_CONFIGURATION})"


def test_another_file_in_place_of_a_compiler(said: Said) -> None:
    for name in ("base.json", "report.json", "code-size.yml"):
        line = said("measure", "--compiler", name, "--out", "x.json", "--model", "mobilenet_v1_f32*", code=4)
        assert line == f"{name}: is a {KINDS[name]}, a compiler is wanted ({SPEC_HINT})"


def test_a_report_that_was_cut_off(said: Said, tmp_path: Path) -> None:
    text = FILES["report.json"].encode()[:3000]
    (tmp_path / "cut.json").write_bytes(text)
    line = said("explain", "cut.json", "--model", "a", "--target", "vmvx")
    ends = "it ends after 3,000 bytes: truncated? (name the report.json of a compare)"
    assert line == f"cut.json: is not a report: {ends}"
