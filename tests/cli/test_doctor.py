"""bot.cli.doctor: a line for every check, and a hint where one is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.doctor import examine
from bot.system.processes import Cancel


def rows(text: str) -> dict[str, tuple[str, str]]:
    """What was looked at → mark and finding."""
    return {line[8:24].strip(): (line[:8].strip(), line[24:]) for line in text.splitlines()}


def test_a_sound_machine_needs_no_mending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound = examine(tmp_path / "cache", Cancel())
    found = rows(capsys.readouterr().out)
    assert list(found) == ["Python", "git", "pip", "onnx (optional)", "default suite", "cache", "cores"]
    assert sound is all(mark == "ok" for mark, _ in found.values())
    assert found["Python"][0] == found["default suite"][0] == "ok"
    assert found["cache"][1].startswith(str(tmp_path / "cache"))
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_is_missing_is_said_with_its_mend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not examine(tmp_path / "file", Cancel())
    found = rows(capsys.readouterr().out)
    assert found["git"] == ("missing", "not found -> install git: without it the report cannot name commits")
    mark, text = found["cache"]
    assert mark == "missing" and text.endswith("-> choose another one with --cache or CODE_SIZE_CACHE")
