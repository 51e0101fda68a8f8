"""How the compiler configured a dispatch, as a snapshot has it in one line, compared.

    DoubleTilingExpert {enable_loop_peeling} | linalg.fill: vector = [8] |
    linalg.generic: tile = [4], vector = [8]

Older snapshots lack the operations, and have a configuration once that several
operations share.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SEPARATOR = re.compile(r'"(?:[^"\\]|\\.)*"| (\|\|?) ')
_OPERATION = re.compile(r"[A-Za-z_][\w$]*(?:\.[\w$]+)+: ")


def configured_parts(strategy: str) -> tuple[str, ...]:
    """Return the pipeline and each configuration with its operation.

    The configurations of several variants follow each other.
    """
    parts = list[str]()
    start = 0
    for match in _SEPARATOR.finditer(strategy):
        if match[1]:
            parts.append(strategy[start : match.start()])
            start = match.end()
    return (*parts, strategy[start:])


@lru_cache(maxsize=4096)
def without_operations(base: str, head: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parts of both sides without the names of operations.

    An operation that another release calls by another name is configured as it was.
    Where one side is an older snapshot's, each configuration counts once on both sides.
    """
    sides = configured_parts(base), configured_parts(head)
    base_parts, head_parts = (tuple(map(_without_operation, side)) for side in sides)
    if all(map(_is_whole, sides)):
        return base_parts, head_parts
    return tuple(dict.fromkeys(base_parts)), tuple(dict.fromkeys(head_parts))


def _without_operation(part: str) -> str:
    return _OPERATION.sub("", part, count=1) if _names(part) else part


def _names(part: str) -> bool:
    return _OPERATION.match(part) is not None


def _is_whole(parts: tuple[str, ...]) -> bool:
    """Return whether each configuration has its operation, or there are none."""
    return len(parts) == 1 or any(map(_names, parts))


def same_configuration(base: str, head: str) -> bool:
    """Return whether the compiler chose the same for a dispatch on both sides."""
    if base == head:
        return True
    base_parts, head_parts = without_operations(base, head)
    return base_parts == head_parts
