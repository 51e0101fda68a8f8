"""Compiler flags that are written as one text, outside of a configuration, and held against the same schema."""

from __future__ import annotations

import shlex

from bot.config.configuration import load_schema
from bot.config.schema_errors import objection


def parse_flags(text: str) -> tuple[str, ...]:
    """Flags quoted as in a shell, on one or more lines; ValueError with one line for the user."""
    try:
        flags = [flag for line in text.splitlines() for flag in shlex.split(line)]
    except ValueError as error:
        raise ValueError("a quotation mark is not closed") from error
    wrong = next((flag for flag in flags if not flag.startswith("--")), None)
    if wrong is not None:
        raise ValueError(f"{wrong[:60]!r} is no flag, which begins with -- and has its value after =")
    if refused := objection(flags, load_schema()["$defs"]["flags"]):
        raise ValueError(refused)
    return tuple(flags)
