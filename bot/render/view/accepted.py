"""Accepted findings: by whom, why, and which cells they are about."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from bot.core.values.verdict import Accepted, Finding
from bot.render.text.escape import clean
from bot.render.text.phrase import Phrase
from bot.render.text.selection import Limits, Listing, listing
from bot.render.view.facts import NAME_LIMIT, Facts, cells_phrase

_WHY_CHARS = 300
_GROUPS = 10
_NAMES = 12


@dataclass(frozen=True, slots=True)
class AcceptedGroup:
    """What one person accepted for one reason.

    Attributes:
        who: the login.
        why: in that person's words; may be empty.
        findings: how many.
        cells: which cells they are about, in words.
    """

    who: str
    why: str
    findings: int
    cells: Phrase


def accepted(facts: Facts, limits: Limits) -> Listing[AcceptedGroup]:
    """Accepted findings by person and reason, the worst first."""
    groups: dict[Accepted, list[Finding]] = {}
    for finding in facts.report.verdict.findings:
        if finding.accepted is not None:
            groups.setdefault(finding.accepted, []).append(finding)
    rows = []
    for by, found in islice(groups.items(), _GROUPS):
        cells = cells_phrase(facts, sorted({finding.key for finding in found}), min(_NAMES, limits.names))
        rows.append(AcceptedGroup(clean(by.who, NAME_LIMIT), clean(by.why, _WHY_CHARS), len(found), cells))
    return listing(rows, len(groups), "acceptance")
