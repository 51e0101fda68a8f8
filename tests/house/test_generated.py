"""What is made from the tables of metrics, backends and default targets is what they say."""

from __future__ import annotations

import os

import pytest
from generated import FILES
from places import ROOT


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_what_the_tables_make_of_it(name: str) -> None:
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    expected = FILES[name](text)
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(expected, encoding="utf-8")
    assert expected == text or os.environ.get("UPDATE_GOLDENS"), (
        f"{name} is made anew by UPDATE_GOLDENS=1"
    )
