"""Keep the state of a comment in its second line, behind the marker.

A line that would be too long forgets first the findings, and then the acceptance. This
is the safe side: a forgotten finding fails again.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from bot.core.acceptance import Acceptance, Seen
from bot.core.hidden_state import LINE_LIMIT, hidden_line, hidden_value
from bot.core.record import Record


class CommentState(Record, frozen=True, array_like=True):
    """The state of a comment, hidden in its text, for later runs."""

    # True if it gave an alarm, so that an all-clear is worth a word
    alarming: bool = False
    findings: tuple[Seen, ...] = ()
    # what the label accepted that is set on the pull request
    acceptance: Acceptance | None = None


_MARKER = re.compile(r"<!-- code-size-bot:[A-Za-z0-9._-]{1,64} -->\s*")


def encode(state: CommentState) -> str:
    """Return the hidden line, without a newline; never longer than `LINE_LIMIT`."""
    for smaller in (state, replace(state, findings=()), CommentState(state.alarming)):
        line = hidden_line(smaller)
        if len(line) <= LINE_LIMIT:
            break
    return line


def decode(comment_body: str) -> CommentState | None:
    """Return the state in a comment's second line; None if another version wrote it."""
    lines = comment_body.split("\n", 2)
    is_ours = len(lines) > 1 and _MARKER.fullmatch(lines[0])
    if is_ours:
        return hidden_value(lines[1], CommentState)
    return None
