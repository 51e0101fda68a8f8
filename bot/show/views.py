"""Define how much each place shows of an answer, before `fit` shortens it."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that shows an answer."""

    place: Literal["comment", "summary", "file", "page", "terminal"]
    names: int  # models, builds and the like that are named in one list or sentence

    @property
    def is_page(self) -> bool:
        """Return whether the place is a page. Only a page also shows unchanged builds."""
        return self.place == "page"

    @property
    def is_terminal(self) -> bool:
        """Return whether the place is a terminal.

        It has no folds and no buttons that copy, and its last line is read first.
        """
        return self.place == "terminal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room(Place):
    """The most that a place shows of a history, a lab or a fold audit."""

    rows: int  # of a table
    lines: int  # of a list, of footnotes, of answers
    columns: int  # of releases


FILE = Room(place="file", rows=400, lines=40, names=24, columns=12)
"""The room of a Markdown file, before `fit` shortens it."""
PAGE_ROOM = Room(place="page", rows=5_000, lines=200, names=200, columns=16)
"""The room of a page: it has room for each cell."""
TERMINAL = Room(place="terminal", rows=40, lines=8, names=6, columns=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Place):
    """The most that a place shows of each list of a report."""

    grid_models: int  # rows of the grid
    # width of the grid, in small characters: 6 pixels on GitHub, one column on a
    # terminal
    grid_width: int
    failures: int  # notes, and groups of failed cells, each with `lines` of diagnostics
    lines: int
    alarms: int  # lines of cells that broke a rule
    findings: int
    changed: int  # changed metrics of changed cells
    commands: int  # cells whose commands are printed
    causes: int = 4  # root causes
    # cells whose change is explained, each with `dispatches` rows in a table and
    # `diff_lines` of a diff
    whys: int = 0
    dispatches: int = 0
    diff_lines: int = 0
    # False if a root cause is one sentence; each target's part and its largest delta
    # are in a fold
    details: bool = True


COMMENT = View(
    place="comment",
    grid_models=40,
    grid_width=128,
    failures=6,
    lines=3,
    alarms=4,
    findings=30,
    changed=0,
    names=24,
    commands=2,
    whys=8,
    dispatches=4,
    diff_lines=10,
    details=False,
)
SUMMARY = View(
    place="summary",
    grid_models=400,
    grid_width=165,
    failures=40,
    lines=20,
    alarms=20,
    findings=2_000,
    changed=4_000,
    names=1_000,
    commands=400,
    causes=12,
    whys=80,
    dispatches=20,
    diff_lines=60,
)
PAGE = View(
    place="page",
    grid_models=400,
    grid_width=1_000_000,
    failures=200,
    lines=40,
    alarms=40,
    findings=1_000,
    changed=1,
    names=200,
    commands=60,
    causes=200,
)


def terminal_view(columns: int) -> View:
    """Return the view of a terminal with so many columns."""
    return View(
        place="terminal",
        grid_models=40,
        grid_width=max(columns, 40) * 13 // 10,
        failures=4,
        lines=6,
        alarms=10,
        findings=10,
        changed=1,
        names=12,
        commands=1,
    )


_asked = ContextVar[Mapping[str, Any]]("display options", default=MappingProxyType({}))


def ask_for(arguments: Mapping[str, Any]) -> None:
    """Read the display options of a command line: each has the name of a view's field.

    They apply to every view of the run.
    """
    names = {field.name for field in fields(View)} & arguments.keys()
    options = {name: arguments[name] for name in names}
    _asked.set({name: value for name, value in options.items() if value is not None})


def as_asked(view: View) -> View:
    """Return the view with the display options of the command line."""
    return replace(view, **_asked.get())
