"""Make the note of a report whose base is a stored baseline.

It says which experiments the stored IR allowed.
"""

from __future__ import annotations

from bot.core.explanation import moved_bytes
from bot.core.report import Report
from bot.show.filters import plural


def stored_ir_notes(report: Report) -> tuple[str, ...]:
    """Return the note about what base's stored IR allowed.

    There is none if no dispatch changed its size on both sides.
    """
    changed = attributed = 0
    for explanation in report.explanations.values():
        for delta in explanation.dispatches:
            if delta.base is None or delta.head is None or not moved_bytes(delta):
                continue
            changed += 1
            attributed += delta.attribution is not None
    if not changed:
        return ()
    dispatches = plural(changed, "changed dispatch")
    return (
        f"the base compiler is not available: {attributed} of {dispatches} were"
        " attributed with its stored IR, base first only; passes and defaults were not"
        " tried",
    )
