"""bot.errors: one line each, and one exit code per class."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import errors
from bot.errors import BotError

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, BotError)]
EXIT_CODES = {
    "BotError": 2,
    "UsageError": 2,
    "ConfigError": 2,
    "NotConfigured": 2,
    "InputError": 2,
    "OutputError": 2,
    "MalformedBinary": 2,
    "TemplateError": 2,
    "NetworkError": 3,
    "CompilerUnavailable": 4,
    "NoVerdict": 5,
    "InternalError": 5,
    "StrayProcess": 5,
    "Interrupted": 130,
}


def test_every_class_has_the_exit_code_of_the_contract() -> None:
    assert {found.__name__: found.exit_code for found in CLASSES} == EXIT_CODES


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (BotError("is empty"), "is empty"),
        (BotError("is empty", where="a.mlir"), "a.mlir: is empty"),
        (BotError("is empty", hint="fill it"), "is empty (fill it)"),
        (BotError("is empty", where="a.mlir", hint="fill it"), "a.mlir: is empty (fill it)"),
        (BotError("two\nlines\tand  gaps", where="a\r\nb"), "a b: two lines and gaps"),
    ],
)
def test_the_line_says_where_what_and_how_to_mend(error: BotError, line: str) -> None:
    assert error.line == str(error) == line


@pytest.mark.parametrize("kind", CLASSES)
@given(what=st.text(), where=st.text(), hint=st.text())
def test_whatever_was_read_the_message_is_one_line(kind: type[BotError], what: str, where: str, hint: str) -> None:
    error = kind(what, where=where, hint=hint)
    assert len(error.line.splitlines()) <= 1
    assert (error.what, error.where, error.hint) == (what, where, hint)
