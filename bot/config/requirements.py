"""Read the compiler pin in a requirements or constraints file, or in a pyproject.toml.

Of the options in a requirements file, places of wheels (`--find-links`), `--no-index`
and the `--hash` of the pin count. Other indexes do not count. Otherwise whoever can
change the file could pass another project's wheel off as the compiler, or have a login
sent there.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from bot.config.configuration import Config, top_above
from bot.core.spec import (
    PROJECT,
    Places,
    Sought,
    is_address,
    is_compiler,
    refused_link,
    release_of,
    requirement_of,
)
from bot.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_COMMENT = re.compile(r"(^|\s+)#.*$")
_HASH = re.compile(r"\s--hash[=\s]\s*(\S+)")
_DIGEST = re.compile(r"(sha256|sha384|sha512):[0-9a-f]+")
_OPTIONS = argparse.ArgumentParser(
    add_help=False, allow_abbrev=False, exit_on_error=False
)
"""The options of requirements files, as pip has them."""
_OPTIONS.add_argument("-f", "--find-links", action="append", default=[])
_OPTIONS.add_argument(
    "-r", "--requirement", "-c", "--constraint", action="append", dest="files"
)
_OPTIONS.add_argument(
    "-i",
    "--index-url",
    "--pypi-url",
    "--extra-index-url",
    action="append",
    dest="indexes",
)
_OPTIONS.add_argument("--no-index", action="store_true")


def sought_compiler(
    path: Path, top: Path | None = None, project: str = PROJECT
) -> Sought:
    """Return the release that the file pins, and the places of its wheels there.

    `top`: neither the file nor a directory of wheels may be outside of it; None:
    they may be anywhere. `project`: the compiler's name on the index.

    Raises ConfigError if the file pins no release, or several.
    """
    if reason := _outside(path, top):
        raise ConfigError(reason, where=str(path), hint="use files of the commit")
    releases = dict[str, str]()
    hashes = dict[tuple[str, str], None]()
    links = dict[str, None]()
    notes = list[str]()
    no_index = False
    first_other = ""  # where the file names another one, which is not followed
    is_project = path.suffix == ".toml"
    for number, line in _project_lines(path, project) if is_project else _lines(path):
        where = f"{path}:{number}"
        if not line.startswith("-"):
            release = _pinned_release(line, where, project)
            if release is not None:
                releases.setdefault(release, where)
                for digest in _digests(line, where):
                    hashes[release, digest] = None
            continue
        try:
            options, _ = _OPTIONS.parse_known_args(shlex.split(line, comments=True))
        except (ValueError, argparse.ArgumentError):
            notes.append(f"{where}: ignored options that the bot does not understand")
            continue
        no_index |= options.no_index
        if options.indexes:
            notes.append(
                f"{where}: ignored the index: the bot uses the index of its own machine"
            )
        if options.files:
            first_other = first_other or where
            notes.append(
                f"{where}: ignored the included file: the configuration has to name the"
                " file with the pin"
            )
        for link in options.find_links:
            if is_address(link):
                place = link
            else:
                place = str(path.parent / link)
            reason = _refused_place(place, top, is_page=is_address(link))
            if reason:
                notes.append(f"{where}: ignored the place of wheels: it {reason}")
            else:
                links[place] = None
    _require_one_release(releases, path, project, first_other)
    places = Places(tuple(links), no_index, hashes=tuple(hashes))
    return Sought(f"{project}=={next(iter(releases))}", places, tuple(notes))


def _pinned_release(line: str, where: str, project: str) -> str | None:
    """Return the release that a line pins; None if it is not about the compiler.

    Raises ConfigError if the line leaves the release open.
    """
    text = requirement_of(line)
    if not is_compiler(text, project):
        return None
    release = release_of(text, project)
    if release is None:
        raise ConfigError(
            f"{project} is not pinned to one release: {text!r}",
            where=where,
            hint=f"write {project}==X.Y.Z",
        )
    return release


def _refused_place(place: str, top: Path | None, *, is_page: bool) -> str:
    """Return why wheels are not taken from a page or a directory; empty if they are."""
    if is_page:
        return refused_link(place)
    if not Path(place).is_dir():
        return "is not a directory"
    return _outside(Path(place), top)


def _require_one_release(
    releases: Mapping[str, str], path: Path, project: str, first_other: str
) -> None:
    """Raise ConfigError if a file pins no release, or several.

    Args:
        releases: release → where the file pins it.
        first_other: where the file includes another one; empty if it does not.
    """
    if first_other and not releases:
        raise ConfigError(
            f"pins no {project}, and the bot does not read the file that is"
            " included here",
            where=first_other,
            hint="name the file with the pin",
        )
    if len(releases) != 1:
        raise ConfigError(
            f"pins {' and '.join(releases) or 'no release'} of {project}",
            where=list(releases.values())[1] if releases else str(path),
            hint=f"write one line: {project}==X.Y.Z",
        )


def pinned_compiler(
    config: Config, side: str, folder: Path, top: Path, within: Path | None = None
) -> Sought:
    """Return a side's compiler as the configuration in `folder` names it.

    The SPEC is empty if the configuration names none.

    `top`: the repository's; `within`: nothing of a requirements file may be outside
    of it, like `top` of `sought_compiler`.
    """
    keys = config.compiler
    if keys.requirements:
        return sought_compiler(
            requirements_file(keys.requirements, top, folder),
            within,
            config.places.project,
        )
    return Sought(keys.head if side == "head" else keys.base)


def pinned_here(config: Config, side: str, folder: Path) -> Sought:
    """Return the compiler of a side that a configuration in the work tree pins.

    The top of the repository is the top above `folder`, as `pinned_compiler` needs
    it.
    """
    return pinned_compiler(
        config, side=side, folder=folder, top=Path(os.path.relpath(top_above(folder)))
    )


def requirements_file(name: str, top: Path, config_folder: Path) -> Path:
    """Return the file that `compiler: {requirements: …}` names.

    It is below the repository's top, else beside the configuration.
    """
    places = [config_folder]
    if ".." not in Path(name).parts:
        places = [top, config_folder]
    for place in places:
        if (place / name).is_file():
            return place / name
    return places[0] / name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(
            "is not UTF-8", where=str(path), hint="save the file as UTF-8"
        ) from None
    except OSError as error:
        hint = "compiler.requirements names it, from the top of the repository"
        raise ConfigError(
            f"cannot be read: {error.strerror}", where=str(path), hint=hint
        ) from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number of its first line, requirement or options), without comments.

    A backslash at its end joins a line to the next one, as in pip.
    """
    joined = ""
    first = 0
    for number, line in enumerate(_text(path).splitlines(), 1):
        first = first or number
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            joined += line[:-1]
            continue
        joined += " " if is_comment else line
        yield from _without_comment(first, joined)
        joined = ""
        first = 0
    yield from _without_comment(first, joined)


def _without_comment(number: int, line: str) -> Iterator[tuple[int, str]]:
    if text := _COMMENT.sub("", line).strip():
        yield number, text


def _digests(line: str, where: str) -> Iterator[str]:
    """Yield the digests that the `--hash` options of a requirement allow for its wheel.

    Raises ConfigError.
    """
    for digest in _HASH.findall(line):
        if not _DIGEST.fullmatch(digest):
            message = f"{digest[:100]!r} is not a digest that pip accepts"
            raise ConfigError(
                message,
                where=where,
                hint="write --hash=sha256:… with the digest of the wheel",
            )
        yield digest


def _project_lines(path: Path, project: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, requirement) for each requirement of the compiler in a project file.

    Raises ConfigError.
    """
    text = _text(path)
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = "correct the file: pip refuses it, too"
        raise ConfigError(
            f"is not a TOML file: {error}", where=str(path), hint=hint
        ) from None
    for requirement in dict.fromkeys(_requirements(document)):
        if is_compiler(requirement.strip(), project):
            yield _line_of(requirement, text), requirement.strip()


def _requirements(value: object, *, is_requirement: bool = False) -> Iterator[str]:
    """Yield the requirements below a value of TOML.

    They are the strings of lists whose key says that they hold requirements.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            is_list_of_them = key == "requires" or key.endswith(
                ("dependencies", "dependency-groups")
            )
            yield from _requirements(
                inner, is_requirement=is_requirement or is_list_of_them
            )
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, str) and is_requirement:
                yield inner
            elif isinstance(inner, (dict, list)):
                yield from _requirements(
                    inner, is_requirement=is_requirement and isinstance(inner, list)
                )


def _line_of(requirement: str, text: str) -> int:
    """Return the line of a project file that has a requirement.

    It is found by removing the name from one line: then the file has the
    requirement less often.
    """
    name = re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0]
    times = list(_requirements(tomllib.loads(text))).count(requirement)
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if name not in line:
            continue
        changed = [
            *lines[: number - 1],
            line.replace(name, "x" * len(name)),
            *lines[number:],
        ]
        with suppress(tomllib.TOMLDecodeError):
            if (
                list(_requirements(tomllib.loads("\n".join(changed)))).count(
                    requirement
                )
                < times
            ):
                return number
    return 1  # the name is written with escapes


def _outside(path: Path, top: Path | None) -> str:
    inside = top is None or path.resolve().is_relative_to(top.resolve())
    if inside:
        return ""
    return "leaves the repository"
