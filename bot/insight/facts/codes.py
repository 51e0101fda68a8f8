"""Whether two entry points have the same code and configuration, and what of their sizes only spells names.

The digest of code is up to names, its size is not: PTX and Metal source have the kernel's name in the text, which is a
character longer from the tenth dispatch on. So where whole digests agree the code is the same, whatever its size.
"""

from __future__ import annotations

from bot.core.codec.digests import differ, is_whole
from bot.core.values.explanation import DispatchDelta
from bot.core.values.snapshot import Dispatch
from bot.insight.causes.matching import Match, numbers


def code_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """Whether the machine code differs; None where that cannot be told.

    That a short digest does not differ counts only of code whose size, up to names, was read and does not either.
    """
    known = base.code is not None and head.code is not None
    if base.code is not None and head.code is not None:
        if differ(base.code, head.code):
            return True
        if is_whole(base.code) and is_whole(head.code):
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


def same_numbers(base: Dispatch, head: Dispatch) -> bool:
    """Whether all that was measured of both but their sites is the same; of the same code the size does not count."""
    left, right = numbers(base), numbers(head)
    sized = base.code_bytes is not None and head.code_bytes is not None
    return left == right or (sized and left[1:] == right[1:] and code_differs(base, head) is False)


def named_bytes(match: Match | DispatchDelta) -> int:
    """Code that is head's more only because its names are longer: 0 where the code is not known to be the same."""
    base, head = match.base, match.head
    if base is None or head is None or base.code_bytes is None or head.code_bytes is None:
        return 0
    return 0 if code_differs(base, head) is not False else head.code_bytes - base.code_bytes


def strategy_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """Whether the configuration differs; None where it was not read on a side."""
    return None if base.strategy is None or head.strategy is None else base.strategy != head.strategy


def unconfigured(base: Dispatch, head: Dispatch) -> str:
    """Say on which side the configuration was not read."""
    sides = [name for name, row in (("base", base), ("head", head)) if row.strategy is None]
    return f"the configuration was not read on {' and '.join(sides)}"
