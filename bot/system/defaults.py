"""Choose defaults: the number of processors, the place of the cache and its limit."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache() -> Path:
    """Return the folder in which cells and compilers are kept.

    It is CODE_SIZE_CACHE, else a folder below the user's cache directory.
    """
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(
        os.environ.get("CODE_SIZE_CACHE") or f"{home}/code-size-bot"
    ).expanduser()


def default_limit() -> str:
    """Return how large the cache may be, as it is written.

    It is CODE_SIZE_CACHE_LIMIT, else 5 GiB.
    """
    return os.environ.get("CODE_SIZE_CACHE_LIMIT") or "5GiB"


def cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
