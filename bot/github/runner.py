"""Write outputs, the job summary and the log of GitHub Actions.

No line of text in the log is a command.

Formats from "Workflow commands for GitHub Actions" of GitHub's documentation. No
network. What came from a pull request or a compiler goes to the log through `log_safe`
only.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from bot.errors import OutputError

MAX_SUMMARY_BYTES = 1024 * 1024
"""The limit of one step's summary.

The upload of a longer one fails as a whole ("Step isolation and limits").
"""

TOO_LONG = (
    "\n> The report is larger than a job summary may be (1 MiB). The report directory"
    " has all of it.\n"
)

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LINE_END = re.compile("(\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029])")
# What the runner, or a terminal, may drop before it looks for a command: colours,
# blanks, what does not show.
_UNSEEN = re.compile(r"(?:\x1b\[[\d;]*[A-Za-z]|[^!-~])*(?=::)")


def write_outputs(path: Path, values: Mapping[str, str]) -> None:
    """Append outputs to the file `$GITHUB_OUTPUT`.

    Each is `key<<DELIMITER`, the value and the delimiter.

    Whatever a value holds, it ends no earlier than meant: the delimiter is random and
    not part of it.

    Raises OutputError where the file cannot be written; ValueError for a key that is
    not a plain name.
    """
    if bad := [key for key in values if not _KEY.fullmatch(key)]:
        raise ValueError(f"not names of outputs: {bad}")
    text = ""
    for key, value in values.items():
        while (delimiter := f"end-{secrets.token_hex(16)}") in value:
            pass
        text += f"{key}<<{delimiter}\n{value}\n{delimiter}\n"
    _append(path, text.encode("utf-8", "replace"))


def write_summary(path: Path, text: str) -> bool:
    """Append Markdown to the file `$GITHUB_STEP_SUMMARY`.

    Returns False if the text is too long, so that only a pointer was written.

    Raises OutputError if the file cannot be written.
    """
    data = f"{text.rstrip()}\n".encode("utf-8", "replace")
    if _append(path, data, MAX_SUMMARY_BYTES):
        return True
    _append(path, TOO_LONG.encode(), MAX_SUMMARY_BYTES)
    return False


def log_safe(text: str) -> str:
    """Return the text for the log, without a line that is a command of the runner.

    The runner takes `::` at the start of a line, blanks before it or not, and the older
    `##[` anywhere in it. A blank in between undoes both, and C++ names keep their
    colons.
    """
    parts = _LINE_END.split(text)
    for index, unseen in enumerate(map(_UNSEEN.match, parts)):
        if unseen:
            parts[index] = f"{unseen.group()}: :{parts[index][unseen.end() + 2 :]}"
    return "".join(parts).replace("##[", "## [")


def _append(path: Path, data: bytes, most_bytes: int | None = None) -> bool:
    """Append data to a file, unless that makes the file too large.

    Returns False if nothing was written. Raises OutputError if the file cannot be
    written.
    """
    try:
        with path.open("ab") as file:
            fits = most_bytes is None or file.tell() + len(data) <= most_bytes
            file.write(data if fits else b"")
            return fits
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}", where=str(path)
        ) from error
