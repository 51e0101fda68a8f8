"""Compare the code and the configuration of two entry points.

The digest of code ignores names, but its size does not. PTX and Metal source have the
kernel's name in the text, which is a character longer from the tenth dispatch on. So
code with the same digest is the same, whatever its size.
"""

from __future__ import annotations

from bot.core.explanation import DispatchDelta, code_differs
from bot.core.snapshot import Dispatch
from bot.explain.matching import MEMORY_NUMBERS, numbers
from bot.explain.strategies import (
    same_configuration,
)


def same_numbers(base: Dispatch, head: Dispatch) -> bool:
    """Return whether all that was measured of both but their sites is the same.

    The size of the same code does not count. Registers and spills that one side did not
    measure are not compared: older snapshots lack some of them.
    """
    base_bytes, *base_numbers = numbers(base)
    head_bytes, *head_numbers = numbers(head)
    if base_bytes != head_bytes:
        is_sized = base_bytes is not None and head_bytes is not None
        if not is_sized or code_differs(base, head) is not False:
            return False
    pairs = zip(base_numbers, head_numbers, strict=True)
    for place, pair in enumerate(pairs):
        is_missing = None in pair
        if pair[0] != pair[1] and not (is_missing and place >= MEMORY_NUMBERS):
            return False
    return True


def strategy_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """Return whether the configuration differs; None if it was not read on a side."""
    if base.strategy is None or head.strategy is None:
        return None
    return not same_configuration(base.strategy, head.strategy)


def configured_differently(delta: DispatchDelta) -> bool:
    """Return whether the sides are known to configure a dispatch differently."""
    return (
        delta.base is not None
        and delta.head is not None
        and strategy_differs(delta.base, delta.head) is True
    )


def unconfigured(base: Dispatch, head: Dispatch) -> str:
    """Return the side on which the configuration was not read."""
    sides = "base and head"
    if base.strategy is not None:
        sides = "head"
    elif head.strategy is not None:
        sides = "base"
    return f"the configuration was not read on {sides}"
