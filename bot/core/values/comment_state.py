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
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from bot.core.codec.json_text import decoded
from bot.core.record import Amount, Count
from bot.core.rules.acceptance import Acceptance, Seen
from bot.core.values.publication import CommentState
from bot.errors import InputError

LINE_LIMIT = 16_000
"""Characters of the line; the rest of a comment's 65,536 is for the report."""

_PLAIN_LIMIT_BYTES = 1 << 20
_MARKER = re.compile(r"<!-- code-size-bot:[A-Za-z0-9._-]{1,64} -->\s*")
_LINE = re.compile(r"<!-- code-size-bot-state:1:([A-Za-z0-9+/]{1,16000}={0,2}) -->")


class _Plain(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Lists instead of objects, and each finding once: acceptances and findings are mostly the same ones."""

    head_sha: str
    run_id: Amount
    alarming: bool
    every: tuple[Seen, ...]
    findings: tuple[Count, ...]
    given: tuple[tuple[str, str, str, Amount, tuple[Count, ...]], ...]
    base_ref: str = ""


def encode(state: CommentState) -> str:
    """The hidden line, without a newline; never longer than `LINE_LIMIT`."""
    for smaller in _ever_smaller(state):
        given = smaller.acceptances
        every = sorted(
            {*smaller.findings, *(one for each in given for one in each.seen)},
            key=lambda one: (
                one.model,
                one.target,
                one.metric,
                one.kind,
                one.limit,
                -1 if one.value is None else one.value,
            ),
        )
        index = {one: number for number, one in enumerate(every)}
        plain = _Plain(
            *(smaller.head_sha, smaller.run_id, smaller.alarming, tuple(every)),
            tuple(index[one] for one in smaller.findings),
            tuple((a.who, a.why, a.how, a.event_id, tuple(index[one] for one in a.seen)) for a in given),
            smaller.base_ref,
        )
        data = base64.b64encode(zlib.compress(msgspec.json.encode(plain), 9)).decode()
        line = f"<!-- code-size-bot-state:1:{data} -->"
        if len(line) <= LINE_LIMIT:
            break
    return line


def _ever_smaller(state: CommentState) -> Iterator[CommentState]:
    yield state
    count = len(state.findings)
    while count:
        count //= 2
        yield replace(state, findings=state.findings[:count])
    for dropped in range(1, len(state.acceptances) + 1):
        yield replace(state, findings=(), acceptances=state.acceptances[dropped:])
    yield CommentState("", state.run_id, state.alarming)


def decode(comment_body: str) -> CommentState | None:
    """The state in the second line of a comment; None where there is none that this version wrote."""
    lines = comment_body.split("\n", 2)
    match = _LINE.match(lines[1]) if len(lines) > 1 and _MARKER.fullmatch(lines[0]) else None
    if match is None:
        return None
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(base64.b64decode(match[1], validate=True), _PLAIN_LIMIT_BYTES)
        if not inflater.eof or inflater.unused_data:
            return None  # cut off, too large, or followed by something else
        plain = decoded(text, _Plain, "state")

        def picked(numbers: tuple[int, ...]) -> tuple[Seen, ...]:
            return tuple(plain.every[number] for number in numbers)

        given = tuple(Acceptance(who, why, how, at, picked(numbers)) for who, why, how, at, numbers in plain.given)
        findings = picked(plain.findings)
    except (ValueError, IndexError, InputError, zlib.error, binascii.Error):
        return None
    return CommentState(plain.head_sha, plain.run_id, plain.alarming, findings, given, plain.base_ref)
