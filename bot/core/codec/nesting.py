"""The parsing of JSON from strangers: nesting that is too deep is refused before a parser recurses into it.

A parser at the end of the stack raises RecursionError wherever it happens to be, in a finalizer of the garbage
collector too, where nobody can catch it.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

MAX_DEPTH = 100
"""No document that is read here has a tenth of it."""

_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""As signed bytes: +1 where an array or object begins, -1 where it ends."""
_OTHERS = bytes(set(range(256)) - set(b"[{]}"))


def refuse_deep(text: str | bytes) -> None:
    """Raises ValueError where arrays and objects stand more than MAX_DEPTH deep in each other; in linear time.

    Of text that is no JSON it is exact up to the first mistake, which is as far as any parser comes.

    Args:
        text: bytes are UTF-8.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_strings = b"".join(unescaped.split(b'"')[::2])
    depths = accumulate(memoryview(outside_strings.translate(_STEPS, _OTHERS)).cast("b"))
    if max(depths, default=0) > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


def parse_json(text: str | bytes) -> Any:
    """The value of JSON that anybody may have written; raises ValueError for what is none, or is nested too deep.

    Args:
        text: bytes are UTF-8, as RFC 8259 has it (8.1), with or without a byte order mark.
    """
    refuse_deep(text)
    return json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
