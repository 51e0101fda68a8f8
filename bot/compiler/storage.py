"""Manage what is in the cache, and which compilers are in use.

The entries that were unused for the longest time are removed first. A compiler is a
directory. All other entries are files, which can be made again. An entry was last used
at its file's time of change, which `touch` sets. A compiler that any run began to use
within a day stays, as it may still be in use. A file is read at once and whole, so that
its removal hurts nobody.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.errors import OutputError
from bot.system.files import (
    FULL,
    PART_PREFIX,
    make_directory,
    sweep,
    temporary_directory,
    write_atomically,
)
from bot.system.trees import remove_tree

COMPLETE = ".complete"  # Is in an unpacked compiler when all of it is there
_COMPILERS = "toolchains"
_FILES = ("cells", "programs", "ir", "digests", "history", "options")
"""Folders of the cache; other content, such as baselines, is never removed."""
# A run that takes longer may find its compiler gone, where another needed the room
_IN_USE_NS = 24 * 3600 * 10**9
_full: dict[Path, str] = {}  # Caches without room for more → what the system said


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One thing that can leave the cache; `used_ns` since the epoch."""

    path: Path
    size_bytes: int
    used_ns: int


def touch(path: Path) -> None:
    """Note that an entry was used; do nothing if the cache can only be read."""
    with contextlib.suppress(OSError):
        os.utime(path)


def read(path: Path) -> bytes:
    """Return the content of an entry, and note that it is used.

    Empty if there is none.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return b""
    touch(path)
    return data


def add(root: Path, path: Path, data: bytes) -> None:
    """Write an entry of the cache, unless the cache could not take one before.

    It may be full, or only readable. No run needs the entry. Raises OutputError if
    the cache is malformed, such as a file.
    """
    if root.absolute() in _full:
        return
    try:
        write_atomically(path, data)
    except OutputError as error:
        reason = error.__cause__
        if not isinstance(reason, OSError) or reason.errno not in FULL | {errno.EROFS}:
            raise
        _full[root.absolute()] = str(reason.strerror)


def without_room(root: Path) -> str:
    """Return why the cache stopped taking entries; empty if it took all of them.

    The next run tries again to add entries.
    """
    return _full.pop(root.absolute(), "")


def hold(home: Path) -> bool:
    """Note that an unpacked compiler is used, so that it stays.

    Returns False if it is missing.
    """
    touch(home / COMPLETE)
    return (home / COMPLETE).is_file()


@contextlib.contextmanager
def filled(home: Path, mark: str = "") -> Iterator[Path]:
    """Return an empty directory that becomes `home` at the end, marked complete.

    Nobody ever sees half of one.
    """
    try:
        make_directory(home.parent)
        with temporary_directory(PART_PREFIX, home.parent) as scratch:
            write_atomically(scratch / COMPLETE, mark.encode())
            yield scratch
            try:
                scratch.rename(home)
            except OSError:
                # no other run was faster: it is what is left of a removed one
                if not (home / COMPLETE).is_file():
                    shutil.rmtree(home, ignore_errors=True)
                    scratch.rename(home)
    except OSError as error:
        hint = "free some space, or choose another cache"
        raise OutputError(
            f"cannot be written: {error.strerror or error}", where=str(home), hint=hint
        ) from None


def entries(root: Path) -> list[CacheEntry]:
    """Return all entries that can be removed from the cache.

    A folder that is a link belongs to another cache.
    """
    all_entries: list[CacheEntry] = []
    for folder in _folders(root):
        if folder.name != _COMPILERS:
            all_entries += _files(folder)
            continue
        for home in folder.iterdir():
            if (
                home.is_dir()
                and not home.is_symlink()
                and not home.name.startswith(PART_PREFIX)
            ):
                mark = home / COMPLETE
                size = sum(entry.size_bytes for entry in _files(home))
                with contextlib.suppress(FileNotFoundError):  # another run was faster
                    all_entries.append(
                        CacheEntry(
                            home,
                            size,
                            (mark if mark.exists() else home).stat().st_mtime_ns,
                        )
                    )
    return all_entries


def _folders(root: Path) -> list[Path]:
    folders = []
    for name in (_COMPILERS, *_FILES):
        folder = root / name
        if folder.is_dir() and not folder.is_symlink():
            folders.append(folder)
    return folders


def _files(folder: Path) -> Iterator[CacheEntry]:
    for directory, _, names in os.walk(folder):
        for name in names:
            path = Path(directory, name)
            with contextlib.suppress(OSError):  # another run was faster
                stat = path.lstat()
                if not name.startswith(PART_PREFIX):
                    yield CacheEntry(path, stat.st_size, stat.st_mtime_ns)


def evict(
    root: Path, limit_bytes: int, since_ns: int | None = None
) -> tuple[list[CacheEntry], int]:
    """Remove the entries that were unused for the longest time, down to the limit.

    Returns the removed entries, and the bytes left. Entries that were used since
    `since_ns` stay, and so do compilers that may be in use.
    """
    for folder in _folders(root):  # what dead runs were writing
        is_flat = folder.name == _COMPILERS
        for place in (
            [folder]
            if is_flat
            else [Path(directory) for directory, _, _ in os.walk(folder)]
        ):
            sweep(place, PART_PREFIX)
    oldest = sorted(entries(root), key=lambda entry: (entry.used_ns, entry.path))
    gone = []
    rest_bytes = sum(entry.size_bytes for entry in oldest)
    not_in_use_ns = time.time_ns() - _IN_USE_NS
    for entry in oldest:
        if rest_bytes <= limit_bytes or (
            since_ns is not None and entry.used_ns >= since_ns
        ):
            break
        if entry.path.is_dir() and entry.used_ns > not_in_use_ns:
            continue
        try:
            remove(entry.path)
            gone.append(entry)
        except FileNotFoundError:  # another run made this room
            pass
        except OSError:
            continue
        rest_bytes -= entry.size_bytes
    return gone, rest_bytes


def remove(path: Path) -> None:
    """Remove a file, or a compiler.

    A compiler is renamed first, so that nobody sees half of it. Raises OSError.
    """
    if path.is_dir():
        going = path.with_name(f"{PART_PREFIX}{os.getpid()}-{path.name}")
        path.rename(going)
        remove_tree(going)
    else:
        path.unlink()
