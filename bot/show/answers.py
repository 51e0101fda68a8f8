"""Write short answers to commands in a comment: the list of commands, and mistakes."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.asked import COMMANDS, PREFIX
from bot.errors import BotError
from bot.show.comment import marker
from bot.show.escape import clean, clip, md_code

_MOST_CHARACTERS = 600


def answer_marker(comment_id: int) -> str:
    """Return the hidden first line by which an answer to a comment is found again."""
    return marker(f"answer.{comment_id}")


def help_answer(comment_id: int, experiments: Sequence[str]) -> str:
    """Return the answer that lists the commands, and the names of the experiments."""
    rows = []
    for usage, about in COMMANDS.values():
        command = md_code(f"{PREFIX} {usage}")
        rows.append(f"| {command} | {about} |")
    sides = (
        "A side is a release such as `3.13.0`, `latest`, `nightly`, `ref:BRANCH`, or"
        " one of the words `base` and `head` for the commits of this pull request."
    )
    names = ", ".join(map(md_code, experiments))
    lab = f"The experiments of the lab are {names}."
    table = ["| command | what it does |", "|:--|:--|", *rows]
    return "\n".join([answer_marker(comment_id), *table, "", sides, "", lab, ""])


def mistake_answer(comment_id: int, error: BotError) -> str:
    """Return the answer that names a mistake; nothing in it is a mention or a link."""
    line = md_code(clip(clean(error.line), _MOST_CHARACTERS))
    return f"{answer_marker(comment_id)}\n⚠️ The command was not carried out: {line}\n"
