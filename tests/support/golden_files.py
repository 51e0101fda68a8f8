"""Golden files beside the fixtures of `bot.show`; `UPDATE_GOLDENS=1` writes them anew."""

from __future__ import annotations

import os

from places import FIXTURES

FOLDER = FIXTURES / "render"


def check_golden(name: str, text: str) -> None:
    """The text is the one in the golden file."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), (
        f"{name} changed: look at it, then UPDATE_GOLDENS=1"
    )
