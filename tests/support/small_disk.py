"""A disk of 256 KiB, to be filled."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """Mounts one at `directory`; skips the test where that is not allowed."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(directory)]
    try:
        allowed = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        allowed = False
    if not allowed:
        pytest.skip("mounting needs root")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)
