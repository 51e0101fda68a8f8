"""The commands below the report of a terminal work in a new shell and another folder."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, install, install_native, write_model

from bot.cli.main import main

CONFIG = "schema: code-size-config/1\nmodels: ['a folder/*.mlir']\ntargets: [vmvx]\n"
WORD = "reproduce: "


def compared(folder: Path, *arguments: str) -> int:
    """Compare two fakes, of which the second gives larger artifacts."""
    models = folder / "a folder"
    models.mkdir()
    write_model(models, "alpha")
    (folder / "code-size.yml").write_text(CONFIG, encoding="utf-8")
    for name, growth in (("old", "grow"), ("new", "grow grow")):
        rules = [{"do": growth, "kind": "direct", "model": "model alpha"}]
        fake = install(
            folder / f"fake-{name}", rules, version=name, templates=TEMPLATES
        )
        install_native(folder / name / "iree-compile", fake)
    return main(
        [
            "compare",
            "old/iree-compile",
            "new/iree-compile",
            "--cache",
            "cache",
            *arguments,
        ]
    )


def test_the_printed_commands_give_the_sizes_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert compared(tmp_path) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    commands = [line.removeprefix(WORD) for line in lines if line.startswith(WORD)]
    assert len(commands) == 2
    assert lines[-1].startswith("next: ")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(elsewhere)}
    script = "\n".join(commands)
    subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=elsewhere,
        env=environment,
        check=True,
        timeout=300,
    )
    (cell,) = json.loads((tmp_path / "out/report.json").read_bytes())["cells"]
    sizes = cell["metrics"]["artifact_bytes"]
    assert sizes["base"] < sizes["head"]
    assert (elsewhere / "base.vmfb").stat().st_size == sizes["base"]
    assert (elsewhere / "head.vmfb").stat().st_size == sizes["head"]


@pytest.mark.parametrize("word", ["--quiet", "--format=json"])
def test_they_are_not_printed_where_only_the_answer_is_wanted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    word: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert compared(tmp_path, word) in (0, 1)
    assert WORD not in capsys.readouterr().out
