"""Where each thing is on a page: a link to it is its address, in all pages alike."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from bot.core.snapshot import Cell, CellKey

_LONGEST, _KEPT, _DIGITS = 160, 80, 16
EntryPoint = tuple[str, str]  # Names of executable and entry point


@lru_cache(
    maxsize=1 << 14
)  # a model's name stands in the address of each of its dispatches
def segment(name: str) -> str:
    """The name as a part of an address; the end of a very long one is a digest."""
    text = quote(name, safe="", errors="surrogatepass")
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:_KEPT]}={digest[:_DIGITS]}"


def cell_address(key: CellKey) -> str:
    """The address of a cell on the page: `MODEL/TARGET`."""
    return f"{segment(key.model)}/{segment(key.target)}"


def dispatch_address(key: CellKey, executable: str) -> str:
    """The address of the first entry point of an executable: nearly all have one alone."""
    return f"{cell_address(key)}/{segment(executable)}"


def component_address(key: CellKey, name: str) -> str:
    """The address of a component of the model in a cell."""
    return f"{cell_address(key)}/component={segment(name)}"


def cause_address(number: int) -> str:
    """The address of a root cause, by the number that the report gives it (from 1)."""
    return f"cause-{number}"


def entry_points(base: Cell | None, head: Cell | None) -> dict[EntryPoint, None]:
    """The entry points of both sides: head's in order, then what only base has."""
    found = (
        (dispatch.executable, dispatch.name)
        for cell in (head, base)
        if cell
        for dispatch in cell.dispatches
    )
    return dict.fromkeys(found)


def dispatch_addresses(
    key: CellKey, points: Iterable[EntryPoint]
) -> dict[EntryPoint, str]:
    """Entry point → its address: that of the executable, and after it the name of a second one in it."""
    cell, seen, made = cell_address(key), Counter[str](), dict[EntryPoint, str]()
    for executable, name in points:
        short = f"{cell}/{segment(executable)}"
        made[executable, name] = (
            f"{short}/{segment(name)}" if seen[executable] else short
        )
        seen[executable] += 1
    return made
