"""Find the files outside of its folder that the text of a command names.

No cache key covers the bytes of such files.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from bot.system.confined import PLACE
from bot.system.files import hashed

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/nix/store")
"""Where the packages of the machine are; `packages_digest` stands for them."""
_NOT_FILES = ("/dev", "/proc", "/sys", str(PLACE))
_BY_HAND = "/usr/local"
_DATABASES = (
    "/var/lib/dpkg/status",
    "/lib/apk/db/installed",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/var/lib/rpm/rpmdb.sqlite",
    "/var/lib/rpm/Packages",
)
"""Files of a distribution's package database.

They list the installed packages with their versions.
"""
_PACMAN = Path("/var/lib/pacman/local")  # has a folder for each package
_NAME = r"/[\w.+@%~/-]+"
_OPTIONS = (
    "-[A-Za-z]",
    "isystem",
    "iquote",
    "idirafter",
    "imacros",
    "-include",
    "iwithprefix",
)
_PATH = re.compile(
    "|".join(
        (
            rf"(?<![\w.~)\]}}/-])~?{_NAME}",
            *(rf"(?<={option}){_NAME}" for option in _OPTIONS),
        )
    )
)
_UPWARDS = re.compile(r"(?<![\w/])(?:\./)*((?:\.\./+)+)([\w.+@%~/-]*)")
_INTERPRETER = re.compile(r"python[0-9.]*")
_PIP_FOLDERS = ("lib/python3*/dist-packages", "lib/python3*/site-packages")
_WORD = re.compile(r"[\w.+-]+")
_QUOTED_WORD = re.compile(r"[\"']([\w.+-]+)(?=[\"' ])")
_COMPILED = (
    ".c",
    ".cc",
    ".cl",
    ".cpp",
    ".cu",
    ".cxx",
    ".h",
    ".hh",
    ".hpp",
    ".ll",
    ".mlir",
    ".s",
    ".S",
)
"""Endings of files that are compiled, and start no program."""
_PYTHON = ".py"  # starts programs that it names in a string


def packages_digest() -> str:
    """Return a digest of the packages that the machine has.

    If no database lists them, it is the version of the operating system.
    """
    digests = []
    for path in _DATABASES:
        if os.path.isfile(path):
            digests.append(hashed(Path(path)))
    if _PACMAN.is_dir():
        digests += sorted(os.listdir(_PACMAN))
    return " ".join(digests or [platform.version()])


def is_system(path: str) -> bool:
    """Return whether a path belongs to the packages of the machine."""
    return _is_below(path, _SYSTEM) and not _is_below(path, (_BY_HAND,))


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def outside_of(texts: Iterable[tuple[str, bytes]], installed: Path | None) -> str:
    """Return the first outside file or program that a text names.

    Empty if no text names one. The packages of the machine do not count.

    Args:
        texts: the name of each file, empty for the words of the command, and its bytes.
        installed: the environment of the compiler's package, whose programs come first.
    """
    if installed:
        first = {path.name for path in (installed / "bin").iterdir()}
    else:
        first = set()
    programs = _programs(os.environ.get("PATH", os.defpath))
    for name, data in texts:
        if b"\0" in data:
            continue
        text = data.decode("utf-8", "replace")
        if outside := _outside_of_text(name, text, first=first, programs=programs):
            return outside
    return ""


def _outside_of_text(
    name: str, text: str, first: Collection[str], programs: Mapping[str, str]
) -> str:
    for path in chain(_paths(text), _upwards(text)):
        if os.path.exists(path):
            return path
    if not name.endswith(_COMPILED):
        for word in _WORD.findall(text):
            is_outside = _INTERPRETER.fullmatch(word) and word not in first
            if is_outside and (path := _by_pip()):
                return path
    for word in _words(name, text, programs):
        if word not in first:
            return programs[word]
    return ""


def _paths(text: str) -> Iterator[str]:
    for match in _PATH.finditer(text):
        path = os.path.normpath(match[0])
        if _is_below(path, _NOT_FILES) or path == "/":
            continue
        if not (is_system(path) and is_system(os.path.realpath(path))):
            yield path


def _upwards(text: str) -> Iterator[str]:
    """Yield the places outside of the folder that a path with `../` may lead to."""
    for match in _UPWARDS.finditer(text):
        tail = match[2].strip("/")
        if not tail:
            continue
        yield str(PLACE.parent / tail)
        if match[1].count("..") > 1:
            yield f"/{tail}"


def _by_pip() -> str:
    """Return a folder of Python packages that no package of the machine owns.

    Empty if there is none.
    """
    for pattern in _PIP_FOLDERS:
        for folder in sorted(Path(_BY_HAND).glob(pattern)):
            if any(folder.iterdir()):
                return str(folder)
    return ""


def _words(name: str, text: str, programs: Mapping[str, str]) -> Iterator[str]:
    if name.endswith(_COMPILED):
        return
    pattern = _QUOTED_WORD if name.endswith(_PYTHON) else _WORD
    for word in pattern.findall(text):
        if word in programs:
            yield word


@cache
def _programs(search_path: str) -> dict[str, str]:
    """Return name → path of the programs that belong to no package of the machine.

    They are found by name.
    """
    digests = dict[str, str]()
    for folder in search_path.split(os.pathsep):
        if not folder or is_system(folder) or not os.path.isdir(folder):
            continue
        for name in os.listdir(folder):
            path = shutil.which(name, path=search_path)
            if path and not (is_system(path) and is_system(os.path.realpath(path))):
                digests[name] = path
    return digests
