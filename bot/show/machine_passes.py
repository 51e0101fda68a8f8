"""Show the instructions after machine passes of both code generators.

They go to the terminal and into JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.core.machine_passes import MachinePasses
from bot.core.trace import operation_words
from bot.show.blocks import Block, Sentence, Table, listed, strong
from bot.show.escape import clean, clip
from bot.show.filters import signed

_REASON = 200
_NAMED = 3


def machine_pass_blocks(measured: MachinePasses) -> Iterator[Block]:
    """Draw the counts after each pass, and the first one with other instructions."""
    if measured.why:
        yield Sentence(f"machine passes: n/a, {clip(clean(measured.why), _REASON)}")
        return
    rows = []
    for stage in measured.stages:
        rows.append(
            (
                stage.name,
                f"{stage.base:,}",
                f"{stage.head:,}",
                signed(stage.head - stage.base, "count"),
                clean(operation_words(stage.changes, _NAMED)),
            )
        )
    yield Table(
        ("after", "base", "head", "difference", "what differs"), listed(rows, "pass")
    )
    yield Sentence(
        f"instructions of the function with {measured.bitcode}'s bitcode in both code"
        " generators",
        small=True,
    )
    first = measured.first_apart
    text = "after each of these passes both code generators have the same instructions"
    if first is not None:
        text = f"measured, not proved: the instructions first differ after {first.name}"
    yield Sentence((strong(text),))


def machine_pass_json(measured: MachinePasses | None) -> Mapping[str, Any] | None:
    """Return the counts; None if they were not measured."""
    if measured is None:
        return None
    stages = []
    for stage in measured.stages:
        stages.append(
            {
                "name": stage.name,
                "base": stage.base,
                "head": stage.head,
                "changes": stage.changes,
            }
        )
    return {
        "bitcode": measured.bitcode or None,
        "stages": stages,
        "first_apart": measured.first_apart.name if measured.first_apart else None,
        "why": measured.why,
    }
