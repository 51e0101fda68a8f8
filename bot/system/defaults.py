"""What this machine offers where nobody says otherwise: its processors, and the place of the cache."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache() -> Path:
    """Where cells and compilers are kept: CODE_SIZE_CACHE, else below the user's cache directory."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("CODE_SIZE_CACHE") or f"{home}/code-size-bot").expanduser()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
