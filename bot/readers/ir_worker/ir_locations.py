"""The model's own name of a place, from the text of an MLIR location.

From the text because that is the same in all compiler releases, while the bindings' classes for locations are not:
up to 3.11.0 there is only one, whose accessors crash the process on locations of another kind. Imports the standard
library only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

import re

COMPONENT_CHARACTERS = 200
"""A component has no more than these."""

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FILE_POSITION = re.compile(r":\d+(?::\d+)?(?: to \d*:\d+)?")
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>]=|[<({\[]|[>)}\]]')


def component_of(location: str) -> str | None:
    """The name in a location's text: of its NameLoc, of its callee, or of the first fused part that has one.

    Names end at their first `;` (TFLite joins the names of merged operations so). None for places in files, and for
    names that name nothing, such as `<root>` and `%0`.
    """
    return _component(location, len("loc("))[0] if location.startswith("loc(") else None


def _component(text: str, at: int) -> tuple[str | None, int]:
    """The component of the location that starts there (MLIR's LangRef, "Location Attributes"), and the place behind."""
    if text.startswith("callsite(", at):
        start = at + len("callsite")
        return _component(text, start + 1)[0], _behind_brackets(text, start)
    if text.startswith("fused", at):
        at += len("fused")
        if text.startswith("<", at):
            at = _behind_brackets(text, at)
        component, end = None, _behind_brackets(text, at)
        while component is None and at < end - 1:
            at += 1  # the bracket, or the comma
            component, at = _component(text, at + text.startswith(" ", at))
        return component, end
    string = _STRING.match(text, at)
    if string is None:  # `unknown`, and whatever releases to come may print
        while at < len(text) and text[at] not in ",)]":
            at = _behind_brackets(text, at) if text[at] in "<([{" else at + 1
        return None, at
    if position := _FILE_POSITION.match(text, string.end()):
        return None, position.end()
    at = string.end()
    return _name(string[1]), _behind_brackets(text, at) if text.startswith("(", at) else at


def _behind_brackets(text: str, start: int) -> int:
    """The place behind the bracket that closes the one at the start."""
    depth = 0
    for token in _BRACKETS.finditer(text, start):
        if token[0] in "<({[":
            depth += 1
        elif token[0] in ">)}]":
            depth -= 1
        if not depth:
            return token.end()
    return len(text)


def _name(escaped: str) -> str | None:
    r"""The printed name as it was: MLIR escapes as `\\`, or as two hexadecimal digits of a UTF-8 byte."""
    data = _ESCAPE.sub(
        lambda match: bytes.fromhex(match[1].decode()) if len(match[1]) == 2 else match[1],
        escaped.encode("utf-8", "replace"),
    )
    name = data.decode("utf-8", "replace").partition(";")[0]
    if name == "<root>" or not any(map(str.isalpha, name)):
        return None
    return "".join(each if each.isprintable() else "?" for each in name[:COMPONENT_CHARACTERS])
