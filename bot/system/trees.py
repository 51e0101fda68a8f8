"""Follow and remove folders that an untrusted program filled, whatever it left.

A program can nest folders deeper than Python can recurse, lock them, and name files in
bytes that are not UTF-8.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from bot.errors import InputError

MOST_LEVELS = 100
# What the owner of a folder needs to list it and to remove what is in it
_FOLDER_BITS = stat.S_IRWXU


def files_below(folder: Path, *, unlock: bool = False) -> Iterator[os.DirEntry[str]]:
    """Yield each file below a folder, links among them; links are not followed.

    A folder that cannot be listed, or that is removed meanwhile, is left out.

    Args:
        folder: where to begin.
        unlock: give this user access to every folder and file before it is listed.

    Raises:
        InputError: folders are nested more than MOST_LEVELS deep, or a path is longer
            than the system allows.
    """
    waiting = [(os.fspath(folder), 0)]
    while waiting:
        path, level = waiting.pop()
        if level > MOST_LEVELS:
            raise InputError(f"folders are nested more than {MOST_LEVELS} levels deep")
        for entry in _listed(path, unlock=unlock):
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, level + 1))
                continue
            if unlock and entry.is_file(follow_symlinks=False):
                _add_mode(entry.path, stat.S_IRUSR)
            yield entry


def _listed(path: str, *, unlock: bool) -> list[os.DirEntry[str]]:
    try:
        if unlock:
            _add_mode(path, _FOLDER_BITS)
        with os.scandir(path) as entries:
            return list(entries)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(
                "the path of a folder is too long for the system"
            ) from None
        return []


def _add_mode(path: str, bits: int) -> None:
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & bits != bits:
        os.chmod(path, mode | bits)


def require_utf8(name: str) -> None:
    """Refuse the name of a file that is not UTF-8; raises InputError."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"{printable(name)} has a name that is not UTF-8") from None


def printable(name: str) -> str:
    r"""Return a file's name as text: a byte that is not UTF-8 becomes `\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def remove_tree(tree: Path) -> None:
    """Remove a folder with everything in it.

    A folder that is missing is no error. Raises OSError.

    Each folder moves to the top before it is emptied, so that no path grows long
    however deep the folders are.
    """
    with contextlib.suppress(FileNotFoundError):
        empty_tree(tree)
        tree.rmdir()


def empty_tree(tree: Path) -> None:
    """Remove everything in a folder, and keep the folder; raises OSError."""
    prefix = f".removed-{secrets.token_hex(8)}-"
    waiting = [os.fspath(tree)]
    moved = 0
    while waiting:
        folder = waiting.pop()
        _add_mode(folder, _FOLDER_BITS)
        with os.scandir(folder) as scanned:
            entries = list(scanned)
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            _add_mode(entry.path, _FOLDER_BITS)
            moved += 1
            place = os.path.join(tree, f"{prefix}{moved}")
            os.rename(entry.path, place)
            waiting.append(place)
        if folder != os.fspath(tree):
            os.rmdir(folder)
