"""How many bytes came or went with one dispatch, and whether its machine code is another one."""

from __future__ import annotations

from typing import Protocol

from bot.core.explanation import DispatchDelta
from bot.core.snapshot import Dispatch
from bot.core.snapshot_json import differ, is_whole


class Both(Protocol):
    """A dispatch on both sides; None where a side has none."""

    @property
    def base(self) -> Dispatch | None:
        """On base."""

    @property
    def head(self) -> Dispatch | None:
        """On head."""


def code_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """Whether the machine code differs; None where that cannot be told.

    That a short digest does not differ counts only of code whose size, up to names, was read and does not either.
    """
    left, right = base.code, head.code
    known = left is not None and right is not None
    if left is not None and right is not None:
        if differ(left, right):
            return True
        if is_whole(left) and is_whole(right):
            return False
    if base.code_bytes is None or head.code_bytes is None:
        return None
    if known and _names_only(base, head):
        return False
    return True if base.code_bytes != head.code_bytes else False if known else None


def _names_only(base: Dispatch, head: Dispatch) -> bool:
    """Whether the sizes differ as they would if the text had its entry point's name in it some number of times."""
    longer, more = len(head.name) - len(base.name), (head.code_bytes or 0) - (base.code_bytes or 0)
    if not longer or not more or more % longer:
        return False
    return 0 < more // longer <= (base.code_bytes or 0) // max(len(base.name), 1)


def named_bytes(match: Both) -> int:
    """Code that is head's more only because its names are longer: 0 where the code is not known to be the same."""
    base, head = match.base, match.head
    if base is None or head is None or base.code_bytes is None or head.code_bytes is None:
        return 0
    return 0 if code_differs(base, head) is not False else head.code_bytes - base.code_bytes


def moved_bytes(delta: DispatchDelta) -> int | None:
    """Bytes that came or went with a dispatch; None where its code is not known on a side that has it.

    Of one that a side alone has, the whole executable where it has one of its own.
    """
    if delta.base is None or delta.head is None:
        sizes = [whole_bytes(delta.base), whole_bytes(delta.head)]
    elif code_differs(delta.base, delta.head) is False:
        return 0  # its names alone may be longer
    else:
        sizes = [delta.base.code_bytes, delta.head.code_bytes]
    return None if sizes[0] is None or sizes[1] is None else sizes[1] - sizes[0]


def whole_bytes(row: Dispatch | None) -> int | None:
    """The executable where the dispatch has one of its own, its code elsewhere; 0 for no dispatch."""
    if row is None:
        return 0
    return row.code_bytes if row.executable_bytes is None else row.executable_bytes


def code_change(one: DispatchDelta) -> int | None:
    """Head − base; all of it where a side does not have the dispatch at all."""
    left, right = (0 if found is None else found.code_bytes for found in (one.base, one.head))
    return None if left is None or right is None else right - left
