"""Say who accepted which findings, and which findings grew since."""

from __future__ import annotations

from bot.core.snapshot import CellKey
from bot.show.blocks import Phrase, code, joined, phrase
from bot.show.escape import clean
from bot.show.facts import NAME_LIMIT, Facts, cells_phrase
from bot.show.failures import MOST_NAMES
from bot.show.filters import plural, signed
from bot.show.views import View

REASON_LIMIT = 300  # characters of the reason of an acceptance


def accepted_words(facts: Facts, view: View) -> Phrase:
    """Return who accepted which findings; empty if there are none."""
    accepted = []
    keys = set[CellKey]()
    for finding in facts.report.verdict.findings:
        if finding.accepted is not None:
            accepted.append(finding)
            keys.add(finding.key)
    if not accepted:
        return ()
    cells = cells_phrase(facts, sorted(keys), min(MOST_NAMES, view.names))
    who = code(clean(accepted[0].accepted or "", NAME_LIMIT))
    reason = clean(accepted[0].reason, REASON_LIMIT)
    count = plural(len(accepted), "finding")
    text = phrase("☑️ Accepted by ", who, f" ({count}: ", cells, ")")
    if reason:
        text = phrase(text, ". Reason: ", code(reason))
    return text


def grown_words(facts: Facts, view: View) -> Phrase:
    """Return which failing findings grew since they were accepted, and by how much.

    The text is empty if none did.
    """
    parts = list[Phrase]()
    for finding in facts.report.verdict.findings:
        if finding.grown_since is not None and finding.metric is not None:
            label = facts.label(finding.quantity, finding.key)
            cell = cells_phrase(facts, [finding.key], 1)
            growth = signed(finding.grown_since, finding.quantity.unit)
            parts.append(phrase(cell, f": {label} {growth}"))
    if not parts:
        return ()
    shown_parts = parts[: view.findings]
    hidden = len(parts) - len(shown_parts)
    text = phrase("Grown since the acceptance: ", joined(shown_parts, "; "))
    if hidden:
        text = phrase(text, f"; {hidden} more")
    return text
