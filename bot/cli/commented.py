"""Read commands in a comment: options of the command line that name no file."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from typing import NoReturn, get_args

from bot.cli.grammar import Parser
from bot.cli.options import add_flags, add_globs
from bot.compiler.file_options import kind_of
from bot.config.experiments import chosen_experiment
from bot.config.targets import unfit_for_iree
from bot.core.asked import COMMANDS, PREFIX, SIDES, Typed, Verb
from bot.core.near import nearest
from bot.core.spec import COMMIT, MOVING, meant_spec, release_of
from bot.errors import UsageError

_MOST_CHARACTERS = 1_000  # of a command
_MOST_REASON_CHARACTERS = 300
_VERBS: tuple[Verb, ...] = get_args(Verb)
_HELP = f"{PREFIX} help"
_ALLOWED = (
    f"a release such as 3.13.0, {', '.join(MOVING)}, {COMMIT}BRANCH,"
    f" {' or '.join(SIDES)}"
)
_OPTION_NAME = re.compile(r"--[a-z0-9][a-z0-9-]*", re.ASCII)
# Such options write files, or load code, whatever their value is.
_REFUSED_WORDS = frozenset(
    [
        "dump",
        "dir",
        "directory",
        "file",
        "filename",
        "listing",
        "output",
        "path",
        "plugin",
        "plugins",
        "to",
    ]
)


class _CommentParser(Parser):
    """The parser of one command; a mistake is a UsageError, and ends nothing."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the words of the parser."""
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            message = f"missing: {missing}"
        raise UsageError(message.removeprefix("argument "), where=self.prog)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Raise UsageError: a parser of a comment ends no program."""
        raise UsageError(message or f"ended with {status}", where=self.prog)

    def _help(self, command: str = "") -> str:  # noqa: ARG002 - one help answers for all commands
        return _HELP


def read_command(line: str) -> Typed:
    """Return the command in a line.

    Raises:
        UsageError: The line has a mistake or an unsafe value.
    """
    if len(line) > _MOST_CHARACTERS:
        raise UsageError(f"is longer than {_MOST_CHARACTERS} characters", where=PREFIX)
    plain = " ".join(line.split())
    if not plain.isprintable():
        raise UsageError("has characters that cannot be printed", where=PREFIX)
    _, _, remainder = plain.partition(" ")
    name, _, values = remainder.partition(" ")
    verb = _verb(name)
    if verb == "accept":
        return Typed(verb, reason=_reason(values))
    arguments = _words(values)
    if verb == "compare":
        return _compared(arguments)
    if verb == "lab":
        return _experimented(arguments)
    if arguments:
        raise UsageError(
            f"unexpected argument {arguments[0]!r}",
            where=f"{PREFIX} {verb}",
            hint=f"write {PREFIX} {verb}",
        )
    return Typed(verb)


def _verb(name: str) -> Verb:
    """Return the command of that name, in upper or lower case."""
    for verb in _VERBS:
        if verb == name.casefold():
            return verb
    if not name:
        raise UsageError("missing: a command", where=PREFIX, hint=f"write {_HELP}")
    near = nearest(name, COMMANDS)
    if near:
        hint = f"did you mean {PREFIX} {near[0]}?"
    else:
        hint = f"write {_HELP}"
    raise UsageError(f"unknown command {name!r}", where=PREFIX, hint=hint)


def _reason(text: str) -> str:
    where = f"{PREFIX} accept"
    if not text:
        raise UsageError(
            "missing: the reason", where=where, hint=f"write {where} REASON"
        )
    if len(text) > _MOST_REASON_CHARACTERS:
        problem = f"the reason is longer than {_MOST_REASON_CHARACTERS} characters"
        raise UsageError(problem, where=where)
    return text


def _words(text: str) -> list[str]:
    """Return the words of the command, quoted as in a shell; no shell reads them."""
    try:
        return shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark is not closed", where=PREFIX) from None


def _experimented(arguments: Sequence[str]) -> Typed:
    """Return the command `lab`, whose experiment is one of the packaged ones."""
    parser = _CommentParser(f"{PREFIX} lab", add_help=False)
    parser.add_argument("experiment", type=_experiment_name, metavar="NAME")
    add_globs(parser)
    typed, unknown = parser.parse_known_args(arguments)
    if unknown:
        usage, _ = COMMANDS["lab"]
        parser.error(f"unexpected argument {unknown[0][:60]!r} (write: {usage})")
    return Typed(
        "lab",
        models=tuple(typed.model),
        targets=tuple(typed.target),
        experiment=typed.experiment,
    )


def _experiment_name(text: str) -> str:
    """Return the name of a packaged experiment: a comment can name no file."""
    try:
        return chosen_experiment(text[:60]).name
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error.what} ({error.hint})") from None


def _compared(arguments: Sequence[str]) -> Typed:
    parser = _CommentParser(f"{PREFIX} compare", add_help=False)
    parser.add_argument("base", type=_side, metavar="BASE")
    parser.add_argument("head", type=_side, metavar="HEAD")
    add_globs(parser)
    add_flags(parser)
    typed, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(
            f"unexpected argument {unknown[0]!r} (write: {COMMANDS['compare'][0]})"
        )
    for flag in typed.flags:
        _require_no_file(flag, parser.prog)
    return Typed(
        "compare",
        base=typed.base,
        head=typed.head,
        models=tuple(typed.model),
        targets=tuple(typed.target),
        flags=tuple(typed.flags),
    )


def _side(text: str) -> str:
    """Return a side that a comment may name: nothing that is a file of a runner."""
    if text in (*SIDES, *MOVING) or release_of(text):
        return text
    if text.startswith(COMMIT) and len(text) > len(COMMIT) and " " not in text:
        return text
    meant = meant_spec(text) or next(iter(nearest(text, SIDES)), "")
    if meant:
        hint = f"did you mean {meant}?"
    else:
        hint = f"allowed: {_ALLOWED}"
    raise argparse.ArgumentTypeError(
        f"{text[:60]!r} is not a side for a comment ({hint})"
    )


def _require_no_file(flag: str, where: str) -> None:
    """Raise UsageError for a flag that may read or write a file, or start a program."""
    unfit = unfit_for_iree(flag)
    if unfit:
        raise UsageError(unfit[0], where=where, hint=unfit[1])
    name, _, value = flag.partition("=")
    is_refused = bool(_REFUSED_WORDS & set(name.split("-"))) or "/" in value
    if not _OPTION_NAME.fullmatch(name) or is_refused or kind_of(flag) != "nothing":
        problem = f"{flag[:60]!r} may read or write files, so a comment cannot give it"
        raise UsageError(
            problem, where=where, hint="write it into the configuration of a commit"
        )
