"""What a comment remembers, as one hidden line of it: written with a bound on its length, read with suspicion.

The line is the comment's second one (its first is the marker), `<!-- code-size-bot-state:1:DATA -->`. DATA is the
canonical JSON of the state, through zlib, in the standard base64 alphabet: that has neither `-` nor `>`, so that
nothing in it can end the HTML comment. `1` is the version of the format; other versions are not read.

Where the line would be longer than `LINE_LIMIT`, it forgets, and always to the safe side: what is forgotten fails
again, and nothing is accepted by accident. The findings go first (those last in order first): they fail until the next
run, and an approval cannot be bound to them. Then the acceptances go, the oldest first.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bot.core.rules.acceptance import Acceptance, Seen
from bot.core.values.publication import CommentState

LINE_LIMIT = 16_000
"""Characters of the line; the rest of a comment's 65,536 is for the report."""

_PLAIN_LIMIT_BYTES = 1 << 20
_INT_LIMIT = 1 << 53
_MARKER = re.compile(r"<!-- code-size-bot:[A-Za-z0-9._-]{1,64} -->\s*")
_LINE = re.compile(r"<!-- code-size-bot-state:1:([A-Za-z0-9+/]{1,16000}={0,2}) -->")

_SEEN: tuple[tuple[type, ...], ...] = ((str,), (str,), (str,), (str,), (int, type(None)), (str,))
_ACCEPTANCE: tuple[tuple[type, ...], ...] = ((str,), (str,), (str,), (int,), (list,))
_STATE: tuple[tuple[type, ...], ...] = ((str,), (int,), (bool,), (list,), (list,), (list,))


def encode(state: CommentState) -> str:
    """The hidden line, without a newline; never longer than `LINE_LIMIT`."""
    lines = (_line(smaller) for smaller in _ever_smaller(state))
    return next(line for line in lines if len(line) <= LINE_LIMIT)


def _ever_smaller(state: CommentState) -> Iterator[CommentState]:
    yield state
    kept = len(state.findings)
    while kept:
        kept //= 2
        yield replace(state, findings=state.findings[:kept])
    for dropped in range(1, len(state.acceptances) + 1):
        yield replace(state, findings=(), acceptances=state.acceptances[dropped:])
    yield CommentState("", state.run_id, state.alarming)


def _line(state: CommentState) -> str:
    text = json.dumps(_to_plain(state), separators=(",", ":"))
    return f"<!-- code-size-bot-state:1:{base64.b64encode(zlib.compress(text.encode(), 9)).decode()} -->"


def _to_plain(state: CommentState) -> list[Any]:
    """Lists instead of objects, and each finding once: acceptances and findings are mostly the same ones."""
    every = sorted({*state.findings, *(one for given in state.acceptances for one in given.seen)}, key=_order)
    index = {one: number for number, one in enumerate(every)}
    rows = [[one.model, one.target, one.metric, one.kind, one.value, one.limit] for one in every]
    given = [[a.who, a.why, a.how, a.event_id, [index[one] for one in a.seen]] for a in state.acceptances]
    return [state.head_sha, state.run_id, state.alarming, rows, [index[one] for one in state.findings], given]


def _order(one: Seen) -> tuple[str, str, str, str, str, int]:
    return one.model, one.target, one.metric, one.kind, one.limit, -1 if one.value is None else one.value


def decode(comment_body: str) -> CommentState | None:
    """The state in the second line of a comment; None where there is none that this version wrote."""
    lines = comment_body.split("\n", 2)
    found = _LINE.match(lines[1]) if len(lines) > 1 and _MARKER.fullmatch(lines[0]) else None
    try:
        return _from_plain(json.loads(_inflated(found[1]))) if found else None
    except (ValueError, RecursionError, zlib.error, binascii.Error):
        return None


def _inflated(data: str) -> bytes:
    inflater = zlib.decompressobj()
    text = inflater.decompress(base64.b64decode(data, validate=True), _PLAIN_LIMIT_BYTES)
    if not inflater.eof or inflater.unused_data:
        raise ValueError("cut off, too large, or followed by something else")
    return text


def _checked(value: Any, kinds: tuple[tuple[type, ...], ...]) -> list[Any]:
    """A list of exactly these types (True is no number); raises ValueError."""
    if type(value) is not list or len(value) != len(kinds):
        raise ValueError("another form")
    if any(type(field) not in kind for field, kind in zip(value, kinds, strict=True)):
        raise ValueError("another type")
    if any(type(field) is int and abs(field) > _INT_LIMIT for field in value):
        raise ValueError("out of range")
    return value


def _from_plain(value: Any) -> CommentState:
    head_sha, run_id, alarming, rows, findings, given = _checked(value, _STATE)
    every = [Seen(*_checked(row, _SEEN)) for row in rows]
    acceptances = []
    for row in given:
        who, why, how, event_id, numbers = _checked(row, _ACCEPTANCE)
        acceptances.append(Acceptance(who, why, how, event_id, _picked(every, numbers)))
    return CommentState(head_sha, run_id, alarming, _picked(every, findings), tuple(acceptances))


def _picked(every: list[Seen], numbers: list[Any]) -> tuple[Seen, ...]:
    if any(type(number) is not int or not 0 <= number < len(every) for number in numbers):
        raise ValueError("no such finding")
    return tuple(every[number] for number in numbers)
