"""New figures for the goldens of a suite's files, where not a byte of the file changes beside them; and the patch."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bot.errors import ConfigError

_NO_NEWLINE = "\\ No newline at end of file\n"


def read_exactly(path: Path) -> str:
    """The text of a file with all its line ends; raises ConfigError."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", where=str(path)) from None


def edited(text: str, values: Mapping[str, int], where: str) -> str:
    """The JSON object with these figures in place of those of its own keys; raises ConfigError."""
    for key, value in values.items():
        text = _edited(text, key, value, where)
    return text


def _edited(text: str, key: str, value: int, where: str) -> str:
    """Of all places that look like the figure's, the one that is: the object must change there and nowhere else."""
    wanted = {**_object(text), key: value}
    for match in re.finditer(rf'("{re.escape(key)}"\s*:\s*)-?[0-9][0-9.eE+-]*', text):
        new = f"{text[: match.end(1)]}{value}{text[match.end() :]}"
        if _object(new) == wanted:
            return new
    raise ConfigError("is written in a way that cannot be edited", where=f"{where}: {key}", hint="write it by hand")


def _object(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))
    return found


def patch(path: str, old: str, new: str) -> str:
    """The change of one file as `git apply` takes it; empty where there is none.

    Args:
        path: from the top of the repository.
    """
    if old == new:
        return ""
    left, right = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    hunks = list(difflib.unified_diff(_lines(old), _lines(new), left, right))
    return "".join((f"diff --git {left} {right}\n", *_ended(hunks)))


def _lines(text: str) -> list[str]:
    """Lines as git has them: only a line feed ends one."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]


def _ended(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"


def _quoted(path: str) -> str:
    """A path as git writes it: quoted as in C where it is not plain."""
    if not re.search(r'[^ -~]|["\\]', path):
        return path
    escaped = {ord('"'): '\\"', ord("\\"): "\\\\"}
    plain = (escaped.get(byte, chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in path.encode())
    return f'"{"".join(plain)}"'
