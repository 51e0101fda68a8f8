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
    return _Location(location).component() if location.startswith("loc(") else None


class _Location:
    """Reads `loc(…)` once from left to right: `builtin` dialect, section "Location Attributes" of MLIR's LangRef."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, len("loc(")

    def component(self) -> str | None:
        """The component of the location that starts here; leaves the place behind it."""
        text = self.text
        if text.startswith("callsite(", self.at):
            return self._callee()
        if text.startswith("fused", self.at):
            return self._first_fused()
        string = _STRING.match(text, self.at)
        if string is not None:
            return self._string(string)
        self._pass_over()
        return None

    def _callee(self) -> str | None:
        start = self.at + len("callsite")
        self.at = start + 1
        found = self.component()
        self.at = _behind_brackets(self.text, start)
        return found

    def _first_fused(self) -> str | None:
        self.at += len("fused")
        if self.text.startswith("<", self.at):
            self.at = _behind_brackets(self.text, self.at)
        found, end = None, _behind_brackets(self.text, self.at)
        while found is None and self.at < end - 1:
            self.at += 1  # the bracket, or the comma
            self.at += self.text.startswith(" ", self.at)
            found = self.component()
        self.at = end
        return found

    def _pass_over(self) -> None:
        """`unknown`, and whatever releases to come may print."""
        while self.at < len(self.text) and self.text[self.at] not in ",)]":
            self.at = _behind_brackets(self.text, self.at) if self.text[self.at] in "<([{" else self.at + 1

    def _string(self, string: re.Match[str]) -> str | None:
        self.at = string.end()
        position = _FILE_POSITION.match(self.text, self.at)
        if position is not None:
            self.at = position.end()
            return None
        if self.text.startswith("(", self.at):
            self.at = _behind_brackets(self.text, self.at)
        return _name(string[1])


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
    data = _ESCAPE.sub(lambda found: _unescaped(found[1]), escaped.encode("utf-8", "replace"))
    name = data.decode("utf-8", "replace").partition(";")[0]
    if name == "<root>" or not any(map(str.isalpha, name)):
        return None
    return "".join(each if each.isprintable() else "?" for each in name[:COMPONENT_CHARACTERS])


def _unescaped(code: bytes) -> bytes:
    return bytes.fromhex(code.decode()) if len(code) == 2 else code
