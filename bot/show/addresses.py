"""Give each thing on a page its address, which links to it use, too."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from bot.core.snapshot import Cell, CellKey

_LONGEST = 160
_KEPT = 80
_DIGITS = 16
EntryPoint = tuple[str, str]  # Names of executable and entry point


@lru_cache(maxsize=1 << 14)
def segment(name: str) -> str:
    """Return the name as a part of an address; the end of a very long one is a digest.

    The results are remembered, as the address of each dispatch has its model's name.
    """
    text = quote(name, safe="", errors="surrogatepass")
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:_KEPT]}={digest[:_DIGITS]}"


def cell_address(key: CellKey) -> str:
    """Return the address of a build on the page: `MODEL/TARGET`."""
    return f"{segment(key.model)}/{segment(key.target)}"


def dispatch_address(key: CellKey, executable: str) -> str:
    """Return the address of an executable's first entry point.

    Nearly all executables have only one.
    """
    return f"{cell_address(key)}/{segment(executable)}"


def component_address(key: CellKey, name: str) -> str:
    """Return the address of a component of the model in a build."""
    return f"{cell_address(key)}/component={segment(name)}"


def cause_address(number: int) -> str:
    """Return the address of a root cause, by its number in the report (from 1)."""
    return f"cause-{number}"


def entry_points(base: Cell | None, head: Cell | None) -> dict[EntryPoint, None]:
    """Return the entry points of both sides: head's, then those of base only."""
    points = dict[EntryPoint, None]()
    for cell in (head, base):
        if cell:
            for dispatch in cell.dispatches:
                points[dispatch.executable, dispatch.name] = None
    return points


def dispatch_addresses(
    key: CellKey, points: Iterable[EntryPoint]
) -> dict[EntryPoint, str]:
    """Return entry point → its address, which is that of the executable.

    The second entry point of an executable and those after it have their name behind
    it.
    """
    cell = cell_address(key)
    counts = Counter[str]()
    addresses = dict[EntryPoint, str]()
    for executable, name in points:
        address = f"{cell}/{segment(executable)}"
        if counts[executable]:
            address = f"{address}/{segment(name)}"
        addresses[executable, name] = address
        counts[executable] += 1
    return addresses
