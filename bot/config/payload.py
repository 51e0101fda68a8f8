"""Strict reading of event payloads: every value is checked for what it must be, as forks choose names and branches.

A message names the key and never repeats the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bot.errors import InputError

Kind = Literal["sha", "repository", "ref", "login", "word", "url", "moment", "text"]

# What git refuses in a ref name (git-check-ref-format), a leading dash, and whatever does not print.
_REF = re.compile(r"(?!-)(?!.*(?:\.\.|@\{))[^\x00-\x20\x7f~^:?*\[\\]{1,300}")
_KINDS: dict[Kind, tuple[str, re.Pattern[str]]] = {
    "sha": ("a commit SHA of 40 hex digits", re.compile(r"[0-9a-f]{40}")),
    "repository": (
        "a name owner/repository",
        re.compile(r"[A-Za-z0-9][\w-]{0,99}/(?!\.{1,2}$)[\w.-]{1,100}", re.ASCII),
    ),
    "ref": ("a git ref", _REF),
    "login": ("a login", re.compile(r"[A-Za-z0-9][\w-]{0,99}(?:\[bot\])?", re.ASCII)),
    "word": ("a word in lower case", re.compile(r"[a-z_]{1,60}")),
    "url": ("an http(s) address", re.compile(r"https?://[\w.:\[\]-]+(?:/[\w./~%@+-]*)?", re.ASCII)),
    "moment": ("a moment in UTC", re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)),
    "text": ("text", re.compile(r".*", re.DOTALL)),
}
_LARGEST_ID = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a document, with the place it was found at.

    Attributes:
        raw: as it came; None where the key is missing or null.
        source: the document (`event payload`).
        path: keys from its top, with dots between them.
    """

    raw: object
    source: str
    path: str = ""

    def at(self, *keys: str) -> Value:
        """The value below; missing where a key is missing. InputError where something on the way has no keys."""
        value = self
        for key in keys:
            if not isinstance(value.raw, Mapping):
                raise value._error("is missing" if value.raw is None else "is no object")
            value = Value(value.raw.get(key), self.source, f"{value.path}.{key}" if value.path else key)
        return value

    @property
    def missing(self) -> bool:
        """True where there is no such key, or null."""
        return self.raw is None

    def read(self, kind: Kind) -> str:
        """The text, which is what its kind says; InputError otherwise."""
        if self.raw is None:
            raise self._error("is missing")
        words, pattern = _KINDS[kind]
        prints = isinstance(self.raw, str) and (kind == "text" or self.raw.isprintable())
        if not isinstance(self.raw, str) or not prints or not pattern.fullmatch(self.raw):
            raise self._error(f"is not {words}")
        return self.raw

    def read_or_empty(self, kind: Kind) -> str:
        """The same, empty where it is missing or empty."""
        return "" if self.raw is None or self.raw == "" else self.read(kind)

    def id(self) -> int:
        """A positive integer as GitHub counts things; InputError otherwise."""
        if self.raw is None:
            raise self._error("is missing")
        if not isinstance(self.raw, int) or isinstance(self.raw, bool) or not 0 < self.raw <= _LARGEST_ID:
            raise self._error("is not a positive integer")
        return self.raw

    def number(self) -> int:
        """A positive integer written as decimal digits, as environment variables have it; InputError otherwise."""
        digits = self.read("text")
        if not re.fullmatch(r"[0-9]{1,19}", digits):
            raise self._error("is not a positive integer")
        return Value(int(digits), self.source, self.path).id()

    def flag(self) -> bool:
        """True or false, false where it is missing; InputError otherwise."""
        if self.raw is not None and not isinstance(self.raw, bool):
            raise self._error("is neither true nor false")
        return bool(self.raw)

    def _error(self, what: str) -> InputError:
        return InputError(what, where=f"{self.source}: {self.path or 'top level'}")
