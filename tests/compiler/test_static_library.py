"""bot.compiler.static_library: which flags make the compiler write an object file beside the artifact."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.compiler.static_library import library_path

STATIC = "--iree-llvmcpu-link-static"
PATH = "--iree-llvmcpu-static-library-output-path=lib.o"


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ([], None),
        ([PATH], None),
        ([STATIC], ".o"),
        ([f"{STATIC}=true", PATH], "lib.o"),
        ([f"{STATIC}=false", PATH], None),
        ([STATIC, f"{STATIC}=0"], None),
        ([f"{STATIC}=false", STATIC], ".o"),
    ],
)
def test_the_last_value_of_the_flag_decides(flags: list[str], name: str | None) -> None:
    expected = None if name is None else Path("/x") / name
    assert library_path(flags, Path("/x")) == expected
