"""The compiler pin in a requirements or constraints file, or in a pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path

from bot.core.rules.spec import PROJECT, is_compiler, release_of, requirement_of
from bot.errors import ConfigError

_TOML_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|#.*")
"""A string on one line, which is where requirements stand; or a comment, so that no string in it is found."""


def pinned_compiler(path: Path) -> str:
    """The release that the file pins, as a SPEC; raises ConfigError where it pins none, or not exactly one."""
    found = _asked(path)
    if len(found) != 1:
        what = f"pins no {PROJECT}" if not found else f"pins {PROJECT} more than once"
        raise ConfigError(what, where=str(path), hint=f"write one line: {PROJECT}==X.Y.Z")
    number, text = found[0]
    release = release_of(text)
    if release is None:
        what, hint = f"{PROJECT} is not pinned to one release: {text!r}", f"write {PROJECT}==X.Y.Z"
        raise ConfigError(what, where=f"{path}:{number}", hint=hint)
    return f"{PROJECT}=={release}"


def requirements_file(name: str, top: Path, config_folder: Path) -> Path:
    """The file that `compiler: {requirements: …}` names: below the repository's top, else beside the configuration."""
    places = (config_folder,) if ".." in Path(name).parts else (top, config_folder)
    return next((place / name for place in places if (place / name).is_file()), places[0] / name)


def asks_for_compiler(path: Path) -> bool:
    """Whether the file names the compiler at all; raises ConfigError where it cannot be read."""
    return bool(_asked(path))


def _asked(path: Path) -> list[tuple[int, str]]:
    """(line number, requirement) of all that is asked of the compiler."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", where=str(path), hint="save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    numbered = enumerate([_toml_strings(line) if path.suffix == ".toml" else [line] for line in lines], 1)
    wanted = ((number, requirement_of(text)) for number, texts in numbered for text in texts)
    return [(number, text) for number, text in wanted if is_compiler(text)]


def _toml_strings(line: str) -> list[str]:
    return [(match[1] or match[2] or "").replace('\\"', '"') for match in _TOML_STRING.finditer(line)]
