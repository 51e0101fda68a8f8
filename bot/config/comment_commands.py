"""The `/code-size` commands that people write in comments: grammar, limits, and the text that explains them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from bot.core.context import Command

PREFIX = "/code-size"
MAX_REASON = 300
"""Characters of a reason; it is shown in a comment, in a table."""
_MAX_LINE = 2000

# Keyboards of telephones write these where a quotation mark was typed.
_CURLY = re.compile(r"[\u201c\u201e\u2018](.*)[\u201d\u201c\u2019]")


class _Problem(Exception):
    """Why a comment is no command, in words without any of the comment's own."""


@dataclass(frozen=True, slots=True)
class _Known:
    """One command: how to write it, what it does, an example, and what reads its arguments."""

    usage: str
    about: str
    example: str
    arguments: Callable[[str], tuple[str, ...]]


def parse_command(body: str) -> Command | None:
    """The command that a comment's first line is; None where it does not begin with `/code-size` and a space or end.

    Only the first line counts. What cannot be carried out becomes `help` with the problem, which never repeats the
    comment's text: it may come from anyone.
    """
    line = re.split(r"\r\n|\r|\n", body, maxsplit=1)[0]
    prefix, _, rest = line.replace("\t", " ").partition(" ")
    if prefix != PREFIX:
        return None
    name, _, text = rest.strip(" ").partition(" ")
    try:
        if len(line) > _MAX_LINE:
            raise _Problem(f"the line is longer than {_MAX_LINE:,} characters")
        known = _KNOWN.get(name or "help")
        if known is None:
            raise _Problem(f"unknown command, known are {', '.join(_KNOWN)}")
        return Command(name or "help", known.arguments(text.strip(" ")))
    except _Problem as problem:
        return Command("help", problem=str(problem))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise _Problem("a quotation mark is not closed") from None


def _none(text: str) -> tuple[str, ...]:
    if text:
        raise _Problem("rerun takes no arguments")
    return ()


def _two_sides(text: str) -> tuple[str, ...]:
    words = _split(text)
    if len(words) != 2:
        raise _Problem("compare takes two arguments, BASE and HEAD")
    for side, word in zip(("BASE", "HEAD"), words, strict=True):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/=+-]*", word) or ".." in word or len(word) > 200:
            raise _Problem(f"{side} is neither a release nor a branch or tag of this repository")
        if re.fullmatch(r"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?", word):
            # GitHub serves the commits of forks from the repository they were forked from.
            raise _Problem(f"{side} is a commit, which may be a fork's: name a release, a branch or a tag")
        if re.fullmatch(r"[0-9a-fA-F]{4,39}", word):
            raise _Problem(
                f"{side} looks like a shortened commit, and anybody can make another one that begins the same: name a "
                "release, a branch or a tag (refs/heads/NAME or refs/tags/NAME where it looks like this); a run that "
                "is started by hand takes a whole commit, as `git rev-parse` prints it"
            )
        if re.search(r"(?:^|/)pull/", word, flags=re.IGNORECASE):
            # Refs of pull requests hold the code of forks, and this run's token may write.
            raise _Problem(f"{side} is a ref of a pull request, which is not measured with a token that may write")
    return tuple(words)


def _reason(text: str) -> tuple[str, ...]:
    # An apostrophe in plain words is no quotation mark.
    words = _split(text) if text[:1] in ("'", '"') else [text]
    spaced = " ".join(" ".join(words).split())
    printable = "".join(char for char in spaced if char.isprintable())
    curly = _CURLY.fullmatch(printable)
    reason = (curly[1] if curly else printable).strip()
    if not reason:
        raise _Problem("accept needs a reason")
    if len(reason) > MAX_REASON:
        raise _Problem(f"the reason is longer than {MAX_REASON} characters")
    return (reason,)


_KNOWN: dict[str, _Known] = {
    "rerun": _Known("rerun", "measure this pull request again", "rerun", _none),
    "compare": _Known(
        "compare BASE HEAD",
        "compare two releases, branches or tags of this repository",
        "compare iree-base-compiler==3.12.0 iree-base-compiler==3.13.0",
        _two_sides,
    ),
    "accept": _Known(
        'accept "REASON"',
        "accept the failing findings at their present values; later growth is reported again",
        'accept "faster attention is worth 4 KiB"',
        _reason,
    ),
    "help": _Known("help", "this text", "help", lambda _text: ()),
}


HELP = f"""\
Comments of people with write access whose first line begins with `{PREFIX}`:

| command | what it does | example |
|:--|:--|:--|
""" + "".join(f"| `{PREFIX} {one.usage}` | {one.about} | `{PREFIX} {one.example}` |\n" for one in _KNOWN.values())
"""The commands with an example each, as Markdown."""
