"""Show how many bytes of a dispatch's change each phase of the compiler carries.

The figures come from a ladder. They go to the terminal and into JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.core.ladder import (
    PHASE_WORDS,
    Ladder,
    attribution,
    failed_rungs,
    interactions,
    reverse_attribution,
)
from bot.show.blocks import Block, Sentence, Table, listed, strong
from bot.show.escape import clean, clip
from bot.show.filters import amount, signed

_REASON = 200
_RUNG_WORDS = {
    "head": "head compiled alone",
    "source": "base's source in head's compiler",
    "configured": "base's configured IR in head's compiler",
    "translated": "base's translated MLIR in head's back end",
    "optimized": "base's optimized LLVM IR in head's code generator",
    "control": "base's optimized LLVM IR in base's own code generator",
    "base": "base compiled alone",
}


def ladder_blocks(ladder: Ladder | None, no_ladder: str) -> Iterator[Block]:
    """Draw the parts of the change, and what failed.

    The parts are drawn in both orders if both were measured.
    """
    if ladder is None:
        yield Sentence(f"bytes by phase: n/a, {clean(no_ladder or 'not measured')}")
        return
    yield _phase_table(ladder)
    yield Sentence(_meaning(ladder), small=True)
    for phase, orders in interactions(ladder).items():
        forward, backward = (signed(part) for part in orders)
        text = (
            f"{PHASE_WORDS[phase]} interacts with other phases: {forward} with base"
            f" first, {backward} with head first"
        )
        yield Sentence((strong(text),))
    if ladder.back_why:
        yield Sentence(f"head first: n/a, {clip(clean(ladder.back_why), _REASON)}")
    for rung, reason in failed_rungs(ladder).items():
        yield Sentence(f"n/a: {_RUNG_WORDS[rung]}: {clip(clean(reason), _REASON)}")
    for side, is_same in (("base", ladder.base_same), ("head", ladder.head_same)):
        if is_same is False:
            yield Sentence(
                f"{side}: compiled alone, the dispatch has other code than in the"
                " artifact"
            )


def _phase_table(ladder: Ladder) -> Table:
    """Return a row for each phase with its part of the change."""
    headers = ["phase", "base first"]
    backward = reverse_attribution(ladder)
    if backward is not None:
        headers.append("head first")
    rows = []
    for phase, part in attribution(ladder).items():
        cells = [PHASE_WORDS[phase], signed(part)]
        if backward is not None:
            cells.append(signed(backward[phase]))
        rows.append(tuple(cells))
    return Table(tuple(headers), listed(rows, "phase"))


def _meaning(ladder: Ladder) -> str:
    """Return the meaning of the numbers, and the error of the experiment with LLVM."""
    text = (
        "bytes of the change that each phase carries; base first: base's IR up to a"
        " phase, head's compiler after it"
    )
    control = ladder.climb.control
    base = ladder.base
    if control is None or control.code_bytes is None or base.code_bytes is None:
        return text
    error = control.code_bytes - base.code_bytes
    if not error:
        return f"{text}; control: base's linker gives base's {amount(base.code_bytes)}"
    sizes = f"{amount(control.code_bytes)} in place of base's {amount(base.code_bytes)}"
    return f"{text}; control: base's linker gives {sizes}, an error that is in no part"


def ladder_json(ladder: Ladder | None, reason: str) -> Mapping[str, Any]:
    """Return the attribution and the rungs behind it, or why there are none."""
    if ladder is None:
        return {
            "attribution": None,
            "ladder": None,
            "no_ladder": reason or "not measured",
        }
    both_orders = {}
    for phase, orders in interactions(ladder).items():
        both_orders[phase] = list(orders)
    return {
        "attribution": attribution(ladder),
        "reverse_attribution": reverse_attribution(ladder),
        "interactions": both_orders,
        "ladder": {
            "head": ladder.head,
            "base": ladder.base,
            "base_first": ladder.climb,
            "head_first": ladder.back,
            "no_head_first": ladder.back_why,
            "head_same": ladder.head_same,
            "base_same": ladder.base_same,
        },
        "no_ladder": "",
    }
