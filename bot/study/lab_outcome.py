"""Refuse an experiment that measured nothing."""

from __future__ import annotations

from bot.core.lab import Lab
from bot.errors import NoVerdict
from bot.show.filters import plural

_MOST_CHARACTERS = 200


def require_measured(lab: Lab, where: str) -> None:
    """Raise NoVerdict, with the first reason, if no build was measured."""
    if lab.study.measured:
        return
    reasons = [cell.reason for _, cell in lab.cells if cell.reason]
    problem = f"none of {plural(len(lab.cells), 'build')} was measured"
    hint = reasons[0][:_MOST_CHARACTERS] if reasons else ""
    raise NoVerdict(problem, where=where, hint=hint)
