"""What a difference in the buffers that a program binds is called: never more than the digests prove."""

from __future__ import annotations

from collections.abc import Iterable

from bot.core.values.program import BOUND_PARTS
from bot.core.values.snapshot import Dispatch
from bot.insight.causes.regions import Compared

OTHER_OFFSETS = "for buffers that the program binds at different offsets"
OTHER_ASSUMPTIONS = "under different assumptions about what the program passes"
OTHERWISE_BOUND = "and what the program binds there differs"
_TOLD = {
    ("offsets",): OTHER_OFFSETS,
    ("assumptions",): OTHER_ASSUMPTIONS,
    ("offsets", "assumptions"): f"{OTHER_OFFSETS}, and {OTHER_ASSUMPTIONS}",
}


def rebound(compared: Compared, base: Dispatch, head: Dispatch) -> bool:
    """True where the entry points have the same IR, but for what the program binds to it."""
    left, right = compared.base.source(base), compared.head.source(head)
    if left is None or right is None or left.source != right.source:
        return False
    return bool(left.bound and right.bound) and left.bound != right.bound


def bound_otherwise(compared: Compared, base: Dispatch, head: Dispatch) -> str:
    """How what is bound differs: by offsets only where nothing else does; empty where nothing is known to differ."""
    left, right = compared.base.source(base), compared.head.source(head)
    if left is None or right is None or not rebound(compared, base, head):
        return ""
    if not len(left.bound_parts) == len(right.bound_parts) == len(BOUND_PARTS):
        return OTHERWISE_BOUND
    parts = zip(BOUND_PARTS, left.bound_parts, right.bound_parts, strict=True)
    return _TOLD.get(tuple(name for name, before, after in parts if before != after), OTHERWISE_BOUND)


def all_bound_otherwise(compared: Compared, pairs: Iterable[tuple[Dispatch, Dispatch]]) -> str:
    """The words that are true of all pairs; empty where one of them is bound as before."""
    answers = {bound_otherwise(compared, *pair) for pair in pairs}
    return "" if "" in answers else answers.pop() if len(answers) == 1 else OTHERWISE_BOUND
