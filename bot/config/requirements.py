"""The compiler pin in a requirements or constraints file, or in a pyproject.toml.

Of what a file tells pip beside requirements, places of wheels (`--find-links`) and `--no-index` count. Other indexes
do not: whoever can change the file could have another project's wheel taken for the compiler, or a login sent there.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from bot.config.configuration import Config, top_above
from bot.core.spec import PROJECT, Places, Sought, is_address, is_compiler, refused_link, release_of, requirement_of
from bot.errors import ConfigError

_TOML_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|#.*")
"""A string on one line, which is where requirements stand; or a comment, so that no string in it is found."""
_OPTIONS = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
"""The options of requirements files, as pip has them."""
_OPTIONS.add_argument("-f", "--find-links", action="append", default=[])
_OPTIONS.add_argument("-r", "--requirement", "-c", "--constraint", action="append", dest="files")
_OPTIONS.add_argument("-i", "--index-url", "--pypi-url", "--extra-index-url", action="append", dest="indexes")
_OPTIONS.add_argument("--no-index", action="store_true")


def sought_compiler(path: Path, top: Path | None = None, project: str = PROJECT) -> Sought:
    """The release that the file pins, and where it says that its wheels are; ConfigError where it pins none or several.

    `top`: what neither the file nor a directory of wheels may leave; None: they may be anywhere.
    `project`: the compiler's name on the index.
    """
    releases, links, no_index, notes = dict[str, str](), dict[str, None](), False, list[str]()
    if why := _outside(path, top):
        raise ConfigError(why, where=str(path), hint="use files of the commit")
    first_other = ""  # where the file names another one, which is not followed
    for number, line in _lines(path):
        where = f"{path}:{number}"
        if not line.startswith("-") or path.suffix == ".toml":
            text = requirement_of(line)
            if not is_compiler(text, project):
                continue
            release = release_of(text, project)
            if release is None:
                what, hint = f"{project} is not pinned to one release: {text!r}", f"write {project}==X.Y.Z"
                raise ConfigError(what, where=where, hint=hint)
            releases.setdefault(release, where)
            continue
        try:
            options, _ = _OPTIONS.parse_known_args(shlex.split(line, comments=True))
        except (ValueError, argparse.ArgumentError):
            notes.append(f"{where}: the options are not understood, and not used")
            continue
        no_index |= options.no_index
        if options.indexes:
            notes.append(f"{where}: the index is not used: it is that of the machine which runs the bot")
        if options.files:
            first_other = first_other or where
            notes.append(f"{where}: the file is not followed: the configuration names the one with the pin")
        for link in options.find_links:
            place = link if is_address(link) else str(path.parent / link)
            why = refused_link(place)
            if not is_address(link):
                why = "is no directory" if not Path(place).is_dir() else _outside(Path(place), top)
            if why:
                notes.append(f"{where}: the place of wheels is not used: it {why}")
            else:
                links[place] = None
    if first_other and not releases:
        what, hint = f"pins no {project}, and the file named here is not followed", "name the file with the pin instead"
        raise ConfigError(what, where=first_other, hint=hint)
    if len(releases) != 1:
        what = f"pins {' and '.join(releases) or 'no release'} of {project}"
        where = list(releases.values())[1] if releases else str(path)
        raise ConfigError(what, where=where, hint=f"write one line: {project}==X.Y.Z")
    return Sought(f"{project}=={next(iter(releases))}", Places(tuple(links), no_index), tuple(notes))


def pinned_compiler(config: Config, side: str, folder: Path, top: Path, within: Path | None = None) -> Sought:
    """A side's compiler as the configuration in `folder` names it; the SPEC is empty where it does not.

    `top`: the repository's; `within`: what nothing of a requirements file may leave, as `sought_compiler` has it.
    """
    keys = config.compiler
    if keys.requirements:
        return sought_compiler(requirements_file(keys.requirements, top, folder), within, config.places.project)
    return Sought(keys.head if side == "head" else keys.base)


def pinned_here(config: Config, side: str, folder: Path) -> Sought:
    """A side's compiler as the configuration in a folder of the work tree names it: `pinned_compiler` below its top."""
    return pinned_compiler(config, side, folder, Path(os.path.relpath(top_above(folder))))


def requirements_file(name: str, top: Path, config_folder: Path) -> Path:
    """The file that `compiler: {requirements: …}` names: below the repository's top, else beside the configuration."""
    places = (config_folder,) if ".." in Path(name).parts else (top, config_folder)
    return next((place / name for place in places if (place / name).is_file()), places[0] / name)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(line number, requirement or options) of all lines that have any."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", where=str(path), hint="save the file as UTF-8") from None
    except OSError as error:
        hint = "compiler.requirements names it, from the top of the repository"
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from None
    for number, line in enumerate(lines, 1):
        if path.suffix == ".toml":
            for match in _TOML_STRING.finditer(line):
                yield number, (match[1] or match[2] or "").replace('\\"', '"').strip()
        elif line.strip():
            yield number, line.strip()


def _outside(path: Path, top: Path | None) -> str:
    inside = top is None or path.resolve().is_relative_to(top.resolve())
    return "" if inside else "leaves the repository"
