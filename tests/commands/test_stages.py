"""A comparison says on standard error what runs after all builds are measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, install, install_native, write_model

from bot.cli.main import main

CONFIG = "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx]\n"


def test_builds_that_are_compiled_again_are_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path, "alpha")
    (tmp_path / "code-size.yml").write_text(CONFIG, encoding="utf-8")
    for name, do in (("old", "grow"), ("new", "grow grow")):
        rules = [{"do": do, "kind": "direct", "model": "model alpha"}]
        fake = install(
            tmp_path / f"fake-{name}", rules, version=name, templates=TEMPLATES
        )
        install_native(tmp_path / name / "iree-compile", fake)
    arguments = ["compare", "old/iree-compile", "new/iree-compile", "--cache", "cache"]
    assert main(arguments) in (0, 1)
    lines = capsys.readouterr().err.splitlines()
    measured = next(
        index for index, line in enumerate(lines) if line.startswith("compiled: ")
    )
    assert any(
        line.startswith("compiling again: 2 compiles") for line in lines[measured:]
    )
