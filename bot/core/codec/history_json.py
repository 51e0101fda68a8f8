"""How a history becomes `history.json`, and how that is read again."""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.codec.json_text import decoded, require_schema
from bot.core.codec.snapshot_json import lines
from bot.core.history.history_values import HISTORY_SCHEMA, History
from bot.errors import InputError

MAKE_AGAIN = "make it again with this version of code-size-bot: code-size-bot history --releases A..B --out DIR"


def history_lines(history: History) -> Iterator[bytes]:
    """The text of `history.json`: canonical, in the order of releases, models and targets."""
    return lines(history)


def history_of(text: bytes | str, where: str = "history.json") -> History:
    """Read `history.json`; raises InputError for text that is torn, foreign, of another schema, or out of order."""
    require_schema(text, HISTORY_SCHEMA, "history", where, MAKE_AGAIN)
    history = decoded(text, History, where, MAKE_AGAIN, "history")
    order = {release.name: release.order for release in history.releases}
    if len(order) != len(history.releases) or list(order.values()) != list(range(len(order))):
        raise InputError("releases are not in order and unique", where=where, hint=MAKE_AGAIN)
    if unknown := {point.compiler for point in history.points} - order.keys():
        raise InputError(f"has points of {min(unknown)[:60]!r}, which is no release", where=where, hint=MAKE_AGAIN)
    keys = [(order[point.compiler], point.model, point.target) for point in history.points]
    if keys != sorted(set(keys)):
        raise InputError("points are not sorted and unique", where=where, hint=MAKE_AGAIN)
    return history
