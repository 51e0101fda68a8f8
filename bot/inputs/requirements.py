"""The compiler pin in a requirements file."""

from __future__ import annotations

from pathlib import Path

from bot.core.rules.spec import PROJECT, is_compiler, release_of, requirement_of
from bot.errors import ConfigError


def pinned_compiler(path: Path) -> str:
    """The release that the file pins, as a SPEC; raises ConfigError where it pins none, or not exactly one."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", where=str(path), hint="save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    wanted = ((number, requirement_of(line)) for number, line in enumerate(lines, 1))
    found = [(number, text) for number, text in wanted if is_compiler(text)]
    if len(found) != 1:
        what = f"pins no {PROJECT}" if not found else f"pins {PROJECT} more than once"
        raise ConfigError(what, where=str(path), hint=f"write one line: {PROJECT}==X.Y.Z")
    number, text = found[0]
    release = release_of(text)
    if release is None:
        what, hint = f"{PROJECT} is not pinned to one release: {text!r}", f"write {PROJECT}==X.Y.Z"
        raise ConfigError(what, where=f"{path}:{number}", hint=hint)
    return f"{PROJECT}=={release}"
