"""Find the model's own name of a place in the text of an MLIR location.

The text is the same in all compiler releases, while the bindings' classes for locations
are not. Up to 3.11.0 there is only one class, whose accessors crash the process on
locations of another kind.
"""

from __future__ import annotations

import re

from .ir_text import printable

COMPONENT_CHARACTERS = 200  # a component has no more than these
_PLACE = re.compile(
    r'"(?P<name>(?:[^"\\]|\\.)*)"(?P<position>:\d+(?::\d+)?(?: to \d*:\d+)?)?'
    r"|fused<| at "  # metadata, and the caller of a call: neither is the place itself
)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>]=|[<({\[]|[>)}\]]')


def component_of(location: str) -> str | None:
    """Return the first name in a location's text that names something.

    See MLIR's LangRef, "Location Attributes". The name of a call is its callee's
    alone. The name of fused parts is that of the first part with a name. Names end
    at their first `;`, because TFLite joins the names of merged operations so. None
    for places in files, and for such names as `<root>` and `%0`.
    """
    if location.startswith("loc("):
        offset = len("loc(")
    else:
        offset = len(location)
    while token := _PLACE.search(location, offset):
        offset = token.end()
        if token["name"] is None:
            offset = _behind(location, offset)
        elif not token["position"] and (name := _name(token["name"])):
            return name
    return None


def _behind(text: str, start: int) -> int:
    """Return the place after the bracket that closes the one around the start."""
    depth = 1
    for token in _BRACKETS.finditer(text, start):
        depth += (token[0] in "<({[") - (token[0] in ">)}]")
        if not depth:
            return token.end()
    return len(text)


def _name(escaped: str) -> str | None:
    r"""Return the printed name as it was before printing.

    MLIR escapes as `\\`, or as two hexadecimal digits of a UTF-8 byte.
    """
    data = _ESCAPE.sub(
        lambda match: (
            bytes.fromhex(match[1].decode()) if len(match[1]) == 2 else match[1]
        ),
        escaped.encode("utf-8", "replace"),
    )
    name = data.decode("utf-8", "replace").partition(";")[0]
    if name == "<root>" or not any(map(str.isalpha, name)):
        return None
    return printable(name[:COMPONENT_CHARACTERS])
