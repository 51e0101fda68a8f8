"""Put a finding into words: its metric, its values and its limit."""

from __future__ import annotations

import re

from bot.core.findings import Finding
from bot.core.policy import OPEN
from bot.show.addresses import cell_address
from bot.show.blocks import (
    Phrase,
    Span,
    Words,
    joined,
    phrase,
    plain,
    sides_phrase,
)
from bot.show.escape import clean, clip
from bot.show.facts import Facts
from bot.show.failures import failure_words
from bot.show.filters import amount, relative, sides

_LIMIT_CHARS = 48
_UNIT = re.compile(r"(?<=\d)(?=[A-Za-z%])")


def finding_words(facts: Facts, finding: Finding, *, named: bool = True) -> Phrase:
    """Return a finding as a clause: metric, build (if `named`), values and limit."""
    build: list[Words] = []
    if named:
        build.append(facts.named(finding.key, cell_address(finding.key)))
    if finding.metric is None:
        return joined([*build, *state_parts(facts, finding)], ": ")
    label = facts.label(finding.quantity, finding.key)
    values = plain(values_phrase(finding))
    return phrase(joined([label, *build], ", "), f": {values}", limit_words(finding))


def limit_words(finding: Finding, *, is_single: bool = True) -> str:
    """Return `; limit 54,534 B`, or `; limit: no growth` if it has no single figure."""
    text = limit_text(finding, is_single=is_single)
    if not text:
        return ""
    if is_figure(text):
        return f"; limit {text}"
    return f"; limit: {text}"


def is_figure(limit: str) -> bool:
    """Return whether the text of a limit is an amount."""
    return limit[0].isdigit()


def limit_text(finding: Finding, *, is_single: bool = True) -> str:
    """Return `54,534 B`.

    For several builds, or if the rule has no single figure, return the rule's words.
    """
    if finding.head is None:
        return ""
    clipped = clip(finding.limit, _LIMIT_CHARS)
    parts = [_UNIT.sub(" ", clean(part)) for part in clipped.split(" and ")]
    if finding.kind == "limit":
        return parts[0]
    has_figure = is_single and finding.seen is None
    if has_figure and finding.base is not None and finding.allowed is not None:
        limit = finding.base + finding.allowed
        return amount(limit, finding.quantity.unit)
    if parts == ["0"]:
        return "no growth"
    growth = " and ".join(f"+{part}" for part in parts)
    if len(parts) > 1:
        return f"the larger of {growth}"
    return growth


def values_phrase(finding: Finding) -> Phrase:
    """Return `50,438 → 83,990 B (+66.5 %)`; no line ends inside a figure."""
    base, head = finding.sides
    unit = finding.quantity.unit
    if head is None:
        return phrase(f"{amount(base, unit)} on base, unknown on head")
    if base is None:
        values = amount(head, unit)
    else:
        values = sides(base, head, unit)
    parts = [*sides_phrase(values)]
    if base is not None and base != head:
        parts += [Span(" "), Span(f"({relative(base, head)})", "number")]
    if finding.is_open:
        parts.append(Span(f", {OPEN}"))
    return tuple(parts)


def state_parts(facts: Facts, finding: Finding) -> list[Words]:
    """Return the words of a build's state, and of its failure if head fails."""
    delta = facts.deltas[finding.key]
    parts: list[Words] = [facts.state_words[delta.state]]
    if delta.head and delta.state in ("newly-broken", "broken"):
        parts.append(failure_words(delta.head))
    return [part for part in parts if part]
