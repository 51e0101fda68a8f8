"""Documents with a limit: drawn with ever less of what is not urgent until they fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bot.show.environment import draw, load

_Room = TypeVar("_Room")


def length(text: str) -> int:
    """Length of a text as GitHub's limits are taken here: UTF-16 units, never fewer than characters."""
    return len(text.encode("utf-16-le")) // 2


def first_fitting(
    names: str | Sequence[str],
    tiers: Sequence[_Room],
    values: Callable[[_Room], Mapping[str, Any]],
    fits: Callable[[str], bool],
    templates_dir: Path | None = None,
    check: Callable[[str, str], None] = lambda _text, _file: None,
) -> str:
    """The first room that fits; a user's template of which none does gives way to the default one.

    Args:
        names: the first template of these that there is is drawn.
        values: with what it is drawn, by the room there is.
        check: raises TemplateError for a text that cannot be used; `str` is the template's file.

    Raises:
        TemplateError: a template does not work.
    """
    template = load(names, templates_dir)
    for room in tiers:
        text = draw(template, **values(room))
        check(text, str(template.filename))
        if fits(text):
            return text
    if templates_dir is None:
        raise AssertionError(f"the smallest {template.name} is too large")
    return first_fitting(names, tiers, values, fits, None, check)


def within_bytes(limit: int) -> Callable[[str], bool]:
    """What fits into so many bytes of UTF-8."""
    return lambda text: len(text.encode()) <= limit
