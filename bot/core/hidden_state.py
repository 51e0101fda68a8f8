"""Write and read a value as one hidden line of Markdown.

A comment or an issue remembers it for the runs that come after.

The line is `<!-- code-size-bot-state:1:DATA -->`. DATA is the JSON of the value,
through zlib, in the standard base64 alphabet. That has neither `-` nor `>`, so nothing
in it can end the HTML comment. `1` is the version of the format.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from typing import TypeVar

import msgspec

from bot.core.json_text import decoded
from bot.core.record import Record
from bot.errors import InputError

LINE_LIMIT = 16_000
"""The most characters of a line.

The rest of the 65,536 of a comment is for its readers.
"""
_PLAIN_LIMIT_BYTES = 1 << 20
_LINE = re.compile(r"<!-- code-size-bot-state:1:([A-Za-z0-9+/]{1,16000}={0,2}) -->")
_Value = TypeVar("_Value")


def hidden_line(value: Record) -> str:
    """Return the line of a value, without a newline."""
    data = base64.b64encode(zlib.compress(msgspec.json.encode(value), 9)).decode()
    return f"<!-- code-size-bot-state:1:{data} -->"


def hidden_value(line: str, kind: type[_Value]) -> _Value | None:
    """Return the value at the beginning of a line.

    Return None if another version wrote it, or if it was cut off.
    """
    match = _LINE.match(line)
    if match is None:
        return None
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(
            base64.b64decode(match[1], validate=True), _PLAIN_LIMIT_BYTES
        )
        if not inflater.eof or inflater.unused_data:
            return None
        return decoded(text, kind, "state")
    except (ValueError, InputError, zlib.error, binascii.Error):
        return None
