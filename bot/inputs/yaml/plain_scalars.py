"""Which unquoted words of YAML mean one thing only: a number is decimal, a switch is true or false.

YAML 1.1 (https://yaml.org/type/) reads 0100 as 64, 1:30 as 90 and `on` as true; YAML 1.2 and people read something
else. What they do not agree on is refused, with how to write it.
"""

from __future__ import annotations

import re
from math import isfinite

MAX_NUMBER_CHARACTERS = 100
"""No number that means anything here is longer, and reading a long one in base 60 takes quadratic time."""

_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_DIGITS = re.compile(r"[-+]?[0-9]+")
_NUMBER_OF_YAML_1_2 = re.compile(r"[-+]?(?:0o[0-7]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)")
_SWITCHES = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})


def refusal(text: str, value: str | int | float | bool | None) -> tuple[str, str] | None:
    """What is wrong with an unquoted word, and how to fix it; None where everybody reads it alike.

    Args:
        value: what YAML 1.1 reads.
    """
    if isinstance(value, bool):
        return None if text in _SWITCHES else _switch(text, value)
    if isinstance(value, (int, float)):
        return None if _DECIMAL.fullmatch(text) else _number(text, value, "YAML 1.1")
    if isinstance(value, str) and len(text) <= MAX_NUMBER_CHARACTERS and _NUMBER_OF_YAML_1_2.fullmatch(text):
        return _number(text, int(text, 8) if "o" in text else float(text), "YAML 1.2")
    return None


def _switch(text: str, value: bool) -> tuple[str, str]:
    word = str(value).lower()
    return f"{text!r} is {word} in YAML 1.1 and text in YAML 1.2", f"write {word}, or put it in quotes"


def _number(text: str, value: int | float, version: str) -> tuple[str, str]:
    read = int(value) if isfinite(value) and value == int(value) else value
    meant = int(text) if _DIGITS.fullmatch(text) else read
    write = f"write {meant}" if isfinite(meant) else "write a decimal number"
    what = f"{text!r} is {read} in {version}, and numbers here are decimal"
    return what, f"{write}, or put it in quotes where text is meant"
