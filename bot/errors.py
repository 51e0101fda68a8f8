"""The error tree: what went wrong, where, and how to fix it; one exit code per class.

Everything a user can cause ends here and is caught once, in `bot.cli.main`. Whatever else is raised is a fault of the
program, which `InternalError.of` puts into one line.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType


class BotError(Exception):
    """One clear line for the user: `where: what (hint)`.

    Args:
        what: the problem, without a full stop.
        where: file, line and key, option or cell it was found at; empty when there is no place to name.
        hint: what to do about it, as an imperative; empty when nothing helps.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(self.line)

    def rename(self, said: Callable[[str], str]) -> None:
        """Say it with other names, in place: what a subclass knows beside the words is kept."""
        self.what, self.where, self.hint = said(self.what), said(self.where), said(self.hint)
        self.args = (self.line,)

    @property
    def line(self) -> str:
        """The message as one line."""
        place = f"{self.where}: " if self.where else ""
        advice = f" ({self.hint})" if self.hint else ""
        text = " ".join(f"{place}{self.what}{advice}".split())
        return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


class UsageError(BotError):
    """Arguments that do not fit together."""


class ConfigError(BotError):
    """A configuration file that cannot be accepted; `where` is `file:line: key`."""


class InputError(BotError):
    """A model, snapshot or report file that cannot be used."""


class OutputError(BotError):
    """A place that cannot be written: read-only, full, not a directory."""


class MalformedBinary(InputError):
    """Bytes that are not what their format says; readers raise this and nothing else."""


class ImpossibleBinary(MalformedBinary):
    """Figures that contradict each other, such as a function larger than the section that holds it."""


class TemplateError(InputError):
    """A template of the user that cannot be used."""


class NetworkError(BotError):
    """GitHub or the network did not answer, or refused.

    Args:
        permission: what the job's token lacks, as in a workflow (`checks: write`); empty where that is not it.
    """

    exit_code = 3

    def __init__(self, what: str, *, where: str = "", hint: str = "", permission: str = "") -> None:
        self.permission = permission
        super().__init__(
            what, where=where, hint=hint or (f"give the job `permissions: {permission}`" if permission else "")
        )


class CompilerUnavailable(BotError):
    """A SPEC from which no compiler could be had."""

    exit_code = 4


class NoVerdict(BotError):
    """Nothing could be compared: neither that all is well nor that it is not can be said."""

    exit_code = 5


class StrayProcess(BotError):
    """What a compiler started lives on, where nothing may that is not trusted."""

    exit_code = 5


class InternalError(BotError):
    """A fault of the program itself; the exception that showed it is the cause."""

    exit_code = 5

    @classmethod
    def of(cls, error: Exception, *, public: bool = False) -> InternalError:
        """The one line about an exception that nobody foresaw; raise it `from error`.

        `public`: leave out what the exception says, which may be anybody's words.
        """
        words = "" if public else " ".join(str(error).split())[:_SAID_CHARS]
        what = f"a fault of the program, not of what it was given: {type(error).__name__}{words and f': {words}'}"
        hint = "please report it, with the traceback that CODE_SIZE_TRACEBACK=1 prints"
        return cls(what, where=_raised_at(error.__traceback__), hint=hint)


_SAID_CHARS = 200


def _raised_at(trace: TracebackType | None) -> str:
    """Module and line of the innermost of our own frames: libraries are called by someone."""
    place = ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == "bot":
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


class Interrupted(BotError):
    """Ctrl-C, SIGTERM or SIGHUP: children are gone, finished cells are in the cache."""

    exit_code = 130
