"""What is said of each step between two releases: how much changed, and what held most of it."""

from __future__ import annotations

from bot.core.explanation import Step
from bot.show.escape import clean
from bot.show.facts import Facts
from bot.show.filters import change, plural, signed
from bot.show.phrase import Phrase, joined, phrase, strong
from bot.show.selection import Limits, Listing, fair_in_order, listing
from bot.show.text_tables import Line

_WHAT = 120


def step_lines(facts: Facts, limits: Limits) -> Listing[Line]:
    """The steps with something to tell first where there is no room for all; those shown in order."""
    steps = facts.report.steps
    ranked = sorted(steps, key=lambda step: -(step.larger + step.smaller + step.broken))
    kept = set(fair_in_order([step.name for step in ranked], lambda _: None, 3 * limits.causes))
    return listing((_line(step) for step in steps if step.name in kept), len(steps), "step")


def _line(step: Step) -> Line:
    skipped = f" (with {plural(step.skipped, 'release')} between that nobody measured)" if step.skipped else ""
    causes = [phrase(f"{clean(what, _WHAT)} ({signed(net_bytes)})") for what, net_bytes in step.causes]
    return Line(phrase(strong(step.name), f"{skipped}: {_moved(step)}"), _most(causes))


def _most(causes: list[Phrase]) -> Phrase:
    return phrase("most of it: ", joined(causes, "; ")) if causes else ()


def _moved(step: Step) -> str:
    if step.base_bytes is None:
        told = ["no cell was measured on both sides"]
    elif not step.larger and not step.smaller:
        told = ["no artifact of another size"]
    else:
        told = [change(step.base_bytes, step.head_bytes), f"{step.larger:,} larger, {step.smaller:,} smaller"]
    if step.broken:
        told.append(f"{plural(step.broken, 'cell')} newly broken")
    return " · ".join(told)
