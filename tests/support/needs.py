"""What some tests need of the machine: in CI a missing one is an error, elsewhere the run says it once at its end."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """End a test for want of something that CI has to have."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def program(name: str, *aliases: str) -> str:
    """Where a program is, or one that goes by another name: beside this Python, or on the path."""
    beside = (
        str(path)
        for file_name in (name, *aliases)
        if (path := Path(sys.executable).with_name(file_name)).exists()
    )
    located = next(beside, None) or next(
        filter(None, map(shutil.which, (name, *aliases))), None
    )
    return located or missing(f"{name} is not installed")
