"""ARCHITECTURE.md lists the functions that a request passes: they are called in this order."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from fake_compiler import TEMPLATES, install, install_native, write_model
from places import ROOT

from bot.cli.main import main

MOST = 25
ROWS = re.findall(
    r"^\| (\d+) \| `(\w+(?:\.\w+)+)` \| (.+) \|$",
    (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
CONFIG = "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx]\n"


def code_of(name: str) -> Any:
    """Return the code object of a function below `bot`."""
    parts = name.split(".")
    value: Any = importlib.import_module(".".join(["bot", *parts[:2]]))
    for part in parts[2:]:
        value = getattr(value, part)
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    return value.__code__


def test_the_list_is_short_and_in_order() -> None:
    assert [int(number) for number, _, _ in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(ROWS) <= MOST


def test_a_comparison_calls_the_functions_in_the_order_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilers = []
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        fake = install(tmp_path / side / "fake", templates=TEMPLATES)
        compilers.append(install_native(tmp_path / side / "iree-compile", fake))
    write_model(tmp_path, "alpha")
    (tmp_path / "code-size.yml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {code_of(name): name for _, name, _ in ROWS}
    called: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code in names:
            called.setdefault(names[frame.f_code])

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        main(
            (
                "compare",
                "base/iree-compile",
                "head/iree-compile",
                "--cache",
                "cache",
                "--quiet",
            )
        )
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    of_compare = [name for _, name, step in ROWS if not step.startswith("on GitHub")]
    assert list(called) == of_compare, "\n".join(called)
