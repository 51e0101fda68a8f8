"""Draw the row of a finding in the table of its alarm, or of all findings of an alarm."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.findings import Finding
from bot.core.snapshot import CellKey
from bot.show.addresses import cause_address, cell_address
from bot.show.blocks import ABSENT, Phrase, Row, Span, joined, kind_of, phrase
from bot.show.escape import clean
from bot.show.facts import MARKS, Facts, cells_phrase, mark_of
from bot.show.filters import plural, share
from bot.show.finding_groups import cause_of, keys_of
from bot.show.finding_words import is_figure, limit_text, state_parts, values_phrase
from bot.show.root_causes import shown_roots
from bot.show.views import View

_WHAT_CHARS = 90
_GROUPED_NAMES = 4  # builds named in one row of a table
EMPTY_CELL = phrase(ABSENT)
UNCONFIRMED = "¹"
"""Stands behind a value of a table that rests on one compile of head."""


def finding_row(facts: Facts, finding: Finding, cause: int, view: View) -> Row:
    """Return build, values, limit and cause of one finding.

    A finding about a state has words in place of values.
    """
    mark = Span(f"{MARKS[mark_of(finding)]} ", kind_of(finding.weight))
    named = facts.named(finding.key, cell_address(finding.key))
    doubt = doubt_words(facts, [finding.key])
    if finding.metric is None:
        state = joined(state_parts(facts, finding), ": ")
        return phrase(mark, named), phrase(state, doubt), EMPTY_CELL, EMPTY_CELL
    label = facts.label(finding.quantity, finding.key)
    mainly = main_cause(facts, cause=cause, keys=[finding.key], view=view) or EMPTY_CELL
    values = phrase(values_phrase(finding), UNCONFIRMED if doubt else "")
    return phrase(mark, named, f": {label}"), values, _limit_cell(finding), mainly


def grouped_row(
    facts: Facts, findings: Sequence[Finding], mainly: Phrase, doubt: str
) -> Row:
    """Return one row for findings of one metric, limit and cause."""
    finding = findings[0]
    mark = Span(f"{MARKS[mark_of(finding)]} ", kind_of(finding.weight))
    keys = keys_of(findings)
    builds_phrase = phrase(mark, cells_phrase(facts, keys, _GROUPED_NAMES))
    if finding.metric is None:
        state = facts.state_words[facts.deltas[finding.key].state]
        return builds_phrase, phrase(state, doubt), EMPTY_CELL, EMPTY_CELL
    label = facts.label(finding.quantity, finding.key)
    worst_build = phrase(facts.named(finding.key), " ", values_phrase(finding))
    worst = phrase(f"{plural(len(keys), 'build')}, the worst ", worst_build, doubt)
    return (
        phrase(builds_phrase, f": {label}"),
        worst,
        _limit_cell(finding, is_single=False),
        mainly or EMPTY_CELL,
    )


def _limit_cell(finding: Finding, *, is_single: bool = True) -> Phrase:
    """Return the limit of a finding as a cell, on the right if it is an amount."""
    text = limit_text(finding, is_single=is_single)
    if not text:
        return EMPTY_CELL
    if is_figure(text):
        return phrase(Span(text, "number"))
    return phrase(text)


def main_cause(facts: Facts, cause: int, keys: Sequence[CellKey], view: View) -> Phrase:
    """Return `cause 2 (69 to 95 %)`: the shares are of each build's total change.

    The text is empty without a cause.
    """
    if not cause:
        return ()
    parts = sorted(cause_of(facts, key)[1] for key in keys)
    low = share(parts[0])
    high = share(parts[-1])
    if cause > shown_roots(facts, view):
        root = facts.roots[cause - 1]
        name = Span(clean(root.what.partition(", with ")[0], _WHAT_CHARS))
    else:
        name = Span(f"cause {cause}", to=cause_address(cause))
    shares = high
    if low != high:
        shares = f"{low.removesuffix(' %')} to {high}"
    return phrase(name, f" ({shares})")


def doubt_words(facts: Facts, keys: Sequence[CellKey]) -> str:
    """Return the note that an alarm rests on a single compile of head.

    It is empty if none does. Head is not always compiled again, as that costs time.
    """
    heads = [facts.deltas[key].head for key in keys]
    count = sum(head is not None and head.compiles == 1 for head in heads)
    if not count:
        return ""
    if count == len(keys):
        return " · not confirmed by a second compile"
    return f" · {count:,} of them not confirmed by a second compile"
