"""The compiler pin in a requirements or constraints file with those it includes, or in a pyproject.toml.

Of what a file tells pip beside requirements, places of wheels (`--find-links`) and `--no-index` count. Other indexes
do not: whoever can change the file could have another project's wheel taken for the compiler, or a login sent there.
"""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from packaging.requirements import InvalidRequirement, Requirement

from bot.core.spec import PROJECT, Places, Sought, is_address, is_compiler, refused_link, release_of, requirement_of
from bot.errors import ConfigError

_TOML_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|#.*")
"""A string on one line, which is where requirements stand; or a comment, so that no string in it is found."""
_MOST_FILES = 50


def sought_compiler(path: Path, top: Path | None = None, project: str = PROJECT) -> Sought:
    """The release that the file pins, and where it says that its wheels are; ConfigError where it pins none or several.

    `top`: what no included file and no directory of wheels may leave; None: they may be anywhere.
    `project`: the compiler's name on the index.
    """
    files = _Read(top, project)
    files.follow(path)
    # Of several those whose marker is true here; a bare name asks for nothing that another line does not.
    true_here = [one for one in files.pins if _is_for_here(one[1])] if len(files.pins) > 1 else list(files.pins)
    pinning = [one for one in true_here if not _is_bare(one[1])]
    pins = pinning or true_here[:1] or list(files.pins[:1])
    if len(pins) != 1:
        what = f"pins no {project}" if not pins else f"pins {project} more than once"
        raise ConfigError(what, where=str(path), hint=f"write one line: {project}==X.Y.Z")
    where, text = pins[0]
    release = release_of(text, project)
    if release is None:
        what, hint = f"{project} is not pinned to one release: {text!r}", f"write {project}==X.Y.Z"
        raise ConfigError(what, where=where, hint=hint)
    places = Places(tuple(dict.fromkeys(files.links)), files.no_index)
    return Sought(f"{project}=={release}", places, tuple(files.notes))


def requirements_file(name: str, top: Path, config_folder: Path) -> Path:
    """The file that `compiler: {requirements: …}` names: below the repository's top, else beside the configuration."""
    places = (config_folder,) if ".." in Path(name).parts else (top, config_folder)
    return next((place / name for place in places if (place / name).is_file()), places[0] / name)


def _requirements(path: Path) -> list[tuple[int, str]]:
    """(line number, requirement or options) of all lines that have any."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", where=str(path), hint="save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    numbered = list(enumerate(lines, 1))
    if path.suffix == ".toml":
        strings = ((number, match) for number, line in numbered for match in _TOML_STRING.finditer(line))
        numbered = [(number, (match[1] or match[2] or "").replace('\\"', '"')) for number, match in strings]
    return [(number, text.strip()) for number, text in numbered if text.strip()]


def _is_for_here(text: str) -> bool:
    try:
        marker = Requirement(text).marker
        return marker is None or marker.evaluate({"extra": ""})
    except (InvalidRequirement, ValueError):
        return True


def _is_bare(text: str) -> bool:
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return False
    return not wanted.specifier and not wanted.url


class _Options(argparse.ArgumentParser):
    """The options of requirements files, as pip has them."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("-f", "--find-links", action="append", default=[])
        for name in ("requirement", "constraint"):
            self.add_argument(f"-{name[0]}", f"--{name}", action="append", default=[], dest="files")
        self.add_argument("-i", "--index-url", "--pypi-url", "--extra-index-url", action="append", dest="indexes")
        self.add_argument("--no-index", action="store_true")

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


_OPTIONS = _Options()


@dataclass(slots=True)
class _Read:
    """What was read of a file and those that it includes."""

    top: Path | None
    project: str
    pins: list[tuple[str, str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    no_index: bool = False
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def follow(self, path: Path) -> None:
        """Read the file, and then what it includes, each once; only the first has to be there."""
        self.files.append(path)
        for count, one in enumerate(self.files, 1):  # it grows meanwhile
            try:
                lines = _requirements(one)
            except ConfigError as error:
                if count == 1:
                    raise
                self.notes.append(f"not followed: {error.line}")
                continue
            for number, text in lines:
                self._take(one, f"{one}:{number}", text)

    def _take(self, path: Path, where: str, line: str) -> None:
        if not line.startswith("-") or path.suffix == ".toml":
            if is_compiler(text := requirement_of(line), self.project):
                self.pins.append((where, text))
            return
        try:
            options, _ = _OPTIONS.parse_known_args(shlex.split(line, comments=True))
        except ValueError:
            self.notes.append(f"{where}: the options are not understood, and not used")
            return
        self.no_index |= options.no_index
        if options.indexes:
            self.notes.append(f"{where}: the index is not used: it is that of the machine which runs the bot")
        for link in options.find_links:
            place = link if is_address(link) else str(path.parent / link)
            why = refused_link(place)
            if not is_address(link):
                why = "is no directory" if not Path(place).is_dir() else self._outside(Path(place))
            if why:
                self.notes.append(f"{where}: the place of wheels is not used: it {why}")
            else:
                self.links.append(place)
        for name in options.files:
            file = path.parent / name
            why = "an address" if is_address(name) else self._outside(file)
            why = why or ("one of too many" if len(self.files) >= _MOST_FILES else "")
            if why:
                self.notes.append(f"{where}: the file is not followed: {why}")
            elif file not in self.files:
                self.files.append(file)

    def _outside(self, path: Path) -> str:
        inside = self.top is None or path.resolve().is_relative_to(self.top.resolve())
        return "" if inside else "leaves the repository"
