"""The inputs and outputs of action.yml, one table each, and the reading of the variables that inputs become."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.config.targets import parse_flags
from bot.config.units import parse_steps
from bot.core.context import ActionInputs
from bot.core.delta import STATES
from bot.errors import UsageError

COMMANDS = ("auto", "review", "post", "baseline", "plan", "measure", "pages")
_MAX_SHARDS = 256
"""GitHub makes at most 256 jobs of a matrix (its usage limits)."""


@dataclass(frozen=True, slots=True)
class ActionInput:
    """One input of the action.

    Attributes:
        name: as in action.yml, with hyphens.
        parse: from the written text, which is never empty; ValueError with one line for the user.
        default: as in action.yml; empty means what the program does by itself.
    """

    name: str
    description: str
    parse: Callable[[str], object]
    default: str = ""

    @property
    def field(self) -> str:
        """The field of ActionInputs that it fills."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """How the runner names it for a Docker action: upper case, spaces to underscores, hyphens kept."""
        return f"INPUT_{self.name.replace(' ', '_').upper()}"


@dataclass(frozen=True, slots=True)
class ActionOutput:
    """One output of the action."""

    name: str
    description: str


def read_inputs(environ: Mapping[str, str]) -> ActionInputs:
    """The inputs from the `INPUT_*` variables; an empty or missing one has the default of ActionInputs.

    Raises UsageError, which names the input and, but for the token, its value.
    """
    fields: dict[str, Any] = {}
    for one in INPUTS:
        if text := environ.get(one.variable, "").strip():
            try:
                if not all(char.isprintable() or char in "\n\r\t" for char in text):
                    raise ValueError("has characters that do not print")
                fields[one.field] = one.parse(text)
            except ValueError as error:
                raise UsageError(str(error), where=f"input {one.name}") from None
    return ActionInputs(**fields)


def _shown(text: str) -> str:
    return repr(text[:60])


def _command(text: str) -> str:
    if text not in COMMANDS:
        raise ValueError(f"{_shown(text)} is no command, known are {', '.join(COMMANDS)}")
    return text


def _token(text: str) -> str:
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError("is no token")
    return text


def _line(text: str) -> str:
    """A path, SPEC or ref: no second line, and nothing that git or pip would take for an option."""
    if len(text.splitlines()) > 1:
        raise ValueError("has more than one line")
    if text.startswith("-"):
        raise ValueError(f"{_shown(text)} begins with a dash")
    return text


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{_shown(text)} is neither true nor false")
    return text == "true"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _count(largest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"0*[1-9][0-9]{0,9}", text) or int(text) > largest:
            raise ValueError(f"{_shown(text)} is no number from 1 to {largest}")
        return int(text)

    return parse


def _shard(text: str) -> str:
    match = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text)
    if match is None or not int(match[1]) <= int(match[2]) <= _MAX_SHARDS:
        raise ValueError(f"{_shown(text)} is not I/N with 1 <= I <= N <= {_MAX_SHARDS}, such as 2/4")
    return text


INPUTS: tuple[ActionInput, ...] = (
    ActionInput("command", f"What to do: {', '.join(COMMANDS)}; auto is what the event asks for", _command, "auto"),
    ActionInput(
        "github-token",
        "Token for comments, checks and baselines; it reaches no compiler, log or artifact",
        _token,
        "${{ github.token }}",
    ),
    ActionInput("author", "Login that the token of a GitHub App of your own writes under, such as my-app[bot]", _line),
    ActionInput(
        "config",
        "Configuration file; empty: .github/code-size.yml, else code-size.yml; default: the packaged suite",
        _line,
    ),
    ActionInput(
        "base",
        "Base side: a SPEC, a git ref or a snapshot.json; empty: the first parent of the merge commit, and in a manual "
        "run that of the head commit",
        _line,
    ),
    ActionInput(
        "head",
        "Head side: a SPEC, and but for a push a git ref or a snapshot.json; empty: the commit that the run is about",
        _line,
    ),
    ActionInput("models", "Only these models: globs of names, separated by spaces or lines", _words),
    ActionInput("targets", "Only these targets: globs of names, separated by spaces or lines", _words),
    ActionInput("flags", "More compiler flags for every cell, quoted as in a shell, on one or more lines", parse_flags),
    ActionInput(
        "pull-request",
        "Number of the pull request that a manual run reports to; empty: job summary only",
        _count((1 << 31) - 1),
    ),
    ActionInput("shards", "For plan: over how many runners to spread the cells", _count(_MAX_SHARDS)),
    ActionInput("shard", "For measure: which part of the plan, as I/N", _shard),
    ActionInput(
        "plan",
        "What plan printed: for measure, to take its shard's cells from; for review with parts, to name lost shards",
        str,
    ),
    ActionInput(
        "parts",
        "Snapshots of all shards that together are the head side: files or globs, separated by spaces or lines",
        _words,
    ),
    ActionInput(
        "steps",
        "Where the pin alone is moved: releases between that are measured, too: all, none or a number (default: none)",
        parse_steps,
    ),
    ActionInput(
        "lab",
        "Experiment that a manual run asks of its head side in place of a comparison: its name, or FILE:NAME with the "
        "file's path in the repository",
        _line,
    ),
    ActionInput(
        "fold",
        "Whether the report of a run by hand or on a schedule ends with a fold audit of its head side: true or false; "
        "empty: where the configuration has fold",
        _flag,
    ),
    ActionInput("jobs", "Compiles side by side; empty: one per core", _count(1024)),
    ActionInput(
        "cache",
        "Directory of the cell and compiler cache, for actions/cache; empty: one that is gone after the run",
        _line,
    ),
    ActionInput(
        "out", "Directory that receives the report, for measure head-I-of-N.json; empty: code-size-report", _line
    ),
)
"""Every input of action.yml, in its order."""

_OF_STATE = {
    "newly-broken": "the compiler refuses on head, and took or did not have on base",
    "changed": "differ in a metric",
    "new": "only head has",
    "removed": "only base has",
    "fixed": "compile on head, and did not on base",
    "broken": "compile on neither side",
    "unmeasured": "were planned and not measured, such as those of a lost shard or beyond the time limit",
    "same": "are the same on both sides",
}

OUTPUTS: tuple[ActionOutput, ...] = (
    ActionOutput(
        "verdict", "pass, warn or fail; unknown where nothing could be compared or the analysis broke, else empty"
    ),
    ActionOutput("findings", "How many findings the report has, accepted ones included, those that base had not"),
    ActionOutput("report-path", "Directory of the report, relative to the workspace, for actions/upload-artifact"),
    ActionOutput("comment-url", "Address of the comment; empty where there is none"),
    ActionOutput("matrix", "What plan printed, for strategy.matrix"),
    ActionOutput("baseline-artifact", "Name under which to upload report-path/baseline, with store: artifact"),
    *(ActionOutput(state, f"How many cells {_OF_STATE[state]}") for state in STATES),
)
"""Every output of action.yml, in its order."""
