"""Documents with a limit: drawn with ever less of what is not urgent until they fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bot.core.report import Report
from bot.render.text.environment import draw, load
from bot.render.text.selection import Limits
from bot.render.view.facts import build_facts
from bot.render.view.view import views

_Room = TypeVar("_Room")


def length(text: str) -> int:
    """Length of a text as GitHub's limits are taken here: UTF-16 units, never fewer than characters."""
    return len(text.encode("utf-16-le")) // 2


@dataclass(frozen=True, slots=True)
class Document:
    """What is drawn, and how small it has to be.

    Attributes:
        template: its name.
        tiers: from the roomiest to the tightest.
        fits: says whether a text is small enough.
        where: where a reader finds what was left out.
        values: what the template needs beside the view.
        check: raises TemplateError for a text that cannot be used; `str` is the template's file.
    """

    template: str
    tiers: tuple[Limits, ...]
    fits: Callable[[str], bool]
    where: str
    values: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[str, str], None] = lambda _text, _file: None


def fitting(report: Report, document: Document, templates_dir: Path | None = None) -> str:
    """The first tier that fits; a user's template of which none does gives way to the default one.

    Raises:
        TemplateError: a template does not work.
    """
    view = views(build_facts(report))

    def values(limits: Limits) -> Mapping[str, Any]:
        return {"view": view(limits), "where": document.where, "page": report.page, **document.values}

    return first_fitting(document.template, document.tiers, values, document.fits, templates_dir, document.check)


def first_fitting(
    names: str | Sequence[str],
    tiers: Sequence[_Room],
    values: Callable[[_Room], Mapping[str, Any]],
    fits: Callable[[str], bool],
    templates_dir: Path | None = None,
    check: Callable[[str, str], None] = lambda _text, _file: None,
) -> str:
    """The same of any template, the first of these names that there is: what it is drawn with, by the room there is.

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
