"""The error tree: what went wrong, where, and how to fix it; one exit code per class.

`bot.cli.main` prints what reaches it as one line. Any other exception is a bug of the
program, and becomes an `InternalError`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType


class BotError(Exception):
    """One clear line for the user: `where: what (hint)`.

    Args:
        what: the problem, without a full stop.
        where: file, line and key, option or cell where it was found; empty if there is no
            place to name.
        hint: what to do about it, as an imperative; empty when nothing helps.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(self.line)

    def rename(self, said: Callable[[str], str]) -> None:
        """Replace names in the message, in place; the other attributes of a subclass stay."""
        self.what, self.where, self.hint = (
            said(self.what),
            said(self.where),
            said(self.hint),
        )
        self.args = (self.line,)

    @property
    def line(self) -> str:
        """Return the message as one line."""
        place = f"{self.where}: " if self.where else ""
        advice = f" ({self.hint})" if self.hint else ""
        text = " ".join(f"{place}{self.what}{advice}".split())
        return "".join(
            char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text
        )


class UsageError(BotError):
    """Arguments that do not fit together."""


class ConfigError(BotError):
    """A configuration file that cannot be accepted; `where` is `file:line: key`."""


class InputError(BotError):
    """A model, snapshot or report file that cannot be used."""


class OutputError(BotError):
    """A place that cannot be written: read-only, full, not a directory."""


class MalformedBinary(InputError):
    """Bytes that do not follow their format; readers raise this and nothing else."""


class ImpossibleBinary(MalformedBinary):
    """Figures contradict each other.

    An example is a function that is larger than the section that holds it.
    """


class TemplateError(InputError):
    """A template of the user that cannot be used."""


class NetworkError(BotError):
    """GitHub or the network did not answer, or refused.

    Args:
        permission: the permission that the token lacks, as a workflow writes it
            (`checks: write`); else empty.
    """

    exit_code = 3

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", permission: str = ""
    ) -> None:
        self.permission = permission
        super().__init__(
            what,
            where=where,
            hint=hint
            or (f"give the job `permissions: {permission}`" if permission else ""),
        )


class CompilerUnavailable(BotError):
    """A SPEC that gives no compiler."""

    exit_code = 4


class NoVerdict(BotError):
    """Nothing could be compared, so that there is neither a pass nor a failure."""

    exit_code = 5


class StrayProcess(BotError):
    """A process that a compiler started still runs, in a job that must not leave one."""

    exit_code = 5


class InternalError(BotError):
    """A bug of the program itself; its exception is the cause."""

    exit_code = 5

    @classmethod
    def of(cls, error: Exception, *, public: bool = False) -> InternalError:
        """Return the error for an unexpected exception; raise it `from error`.

        `public`: leave out the text of the exception, which may come from untrusted input.
        """
        if public:
            words = ""
        else:
            words = " ".join(str(error).split())[:_SAID_CHARS]
        what = f"internal error: {type(error).__name__}{words and f': {words}'}"
        hint = (
            "please report it with the traceback: set CODE_SIZE_TRACEBACK=1 and run"
            " again"
        )
        return cls(what, where=_raised_at(error.__traceback__), hint=hint)


_SAID_CHARS = 200


def _raised_at(trace: TracebackType | None) -> str:
    """Return module and line of the innermost frame of this program, not of a library."""
    place = ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == "bot":
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


class Interrupted(BotError):
    """Ctrl-C, SIGTERM or SIGHUP: all children have ended, and finished builds are in the cache."""

    exit_code = 130
