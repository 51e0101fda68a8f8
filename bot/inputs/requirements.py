"""The compiler pin in a requirements file."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.version import InvalidVersion, Version

from bot.errors import ConfigError

# Names are equal whatever their case and separators: PEP 503.
_PIN = re.compile(
    r"\s*iree[-_.]+base[-_.]+compiler(?![-_.\w])\s*(?:\[[^\]]*\])?\s*(?P<operator>[=<>!~]*)\s*(?P<version>[^\s;#]*)",
    re.I,
)


def _is_release(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:  # nothing, `3.13.*`, or a list of conditions
        return False
    return True


def pinned_compiler(path: Path) -> str:
    """The release that the file pins, as a SPEC; raises ConfigError where it pins none, or not exactly one."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", where=str(path), mend="save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    found = [(number, match) for number, line in enumerate(lines, 1) if (match := _PIN.match(line))]
    if len(found) != 1:
        what = "pins no iree-base-compiler" if not found else "pins iree-base-compiler more than once"
        raise ConfigError(what, where=str(path), mend="write one line: iree-base-compiler==X.Y.Z")
    number, match = found[0]
    if match["operator"] != "==" or not _is_release(match["version"]):
        raise ConfigError(
            f"iree-base-compiler is not pinned to one release: {match[0].strip()!r}",
            where=f"{path}:{number}",
            mend="write iree-base-compiler==X.Y.Z",
        )
    return f"iree-base-compiler=={match['version']}"
