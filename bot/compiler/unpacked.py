"""Hold unpacked compilers in the cache, and check that each is as it was unpacked.

A compiler under review can write to the cache of the user who runs it. So each unpacked
folder has a list of its files with their sizes and SHA-256, and a run compares the
folder with the list before it uses the compiler.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bot.compiler.storage import COMPLETE, hold, remove
from bot.core.json_text import canonical
from bot.core.record import Count, Record
from bot.errors import InputError, OutputError
from bot.system.files import PART_PREFIX, hashed, read_bounded, write_atomically
from bot.system.trees import files_below, printable

LIST = ".files.json"
HASHES = ("sha256", "sha384", "sha512")  # The algorithms that pip allows in `--hash`
_MOST_LIST_BYTES = 1 << 26
_BYTE_CODE = re.compile(r"(.+/)?__pycache__/[^/]+\.pyc")
# Folders that this run compared with their lists → what the kernel said of their files
_known: dict[Path, str] = {}


class _File(Record, frozen=True):
    size_bytes: Count
    sha256: str


class _Listed(Record, frozen=True):
    # digests of the wheel, as `--hash` has them; empty where they are not known
    wheel: tuple[str, ...]
    files: Mapping[str, _File]  # path in the folder → file
    links: Mapping[str, str]  # path in the folder → where the link leads


@dataclass(frozen=True, slots=True)
class _Found:
    """The present content of a folder."""

    files: Mapping[str, Path]
    links: Mapping[str, str]

    @property
    def identity(self) -> str:
        """Return what the kernel says of all files.

        It changes whenever somebody writes to one.
        """
        rows = []
        for name, path in sorted(self.files.items()):
            if name == COMPLETE:  # its times say when the compiler was used
                continue
            stat = path.stat()
            rows.append(
                f"{name!r} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns}"
                f" {stat.st_ctime_ns}"
            )
        return f"{rows} {sorted(self.links.items())}"


def digests_of(wheel: Path) -> tuple[str, ...]:
    """Return the digests of a wheel as `--hash` has them, one for each algorithm."""
    digests = [hashlib.new(name) for name in HASHES]
    with open(wheel, "rb") as file:
        while chunk := file.read(1 << 20):
            for digest in digests:
                digest.update(chunk)
    return tuple(f"{digest.name}:{digest.hexdigest()}" for digest in digests)


def write_list(folder: Path, wheel: tuple[str, ...] = ()) -> None:
    """Write the list of an unpacked folder into it; raises OutputError.

    `wheel`: the digests of the wheel that was unpacked.
    """
    files_found = _found(folder, byte_code=False)
    files = dict[str, _File]()
    for name, path in files_found.files.items():
        files[name] = _File(path.stat().st_size, hashed(path))
    write_atomically(folder / LIST, canonical(_Listed(wheel, files, files_found.links)))


def held(
    home: Path,
    say: Callable[[str], None],
    *,
    hashes: tuple[str, ...] = (),
    byte_code: bool = True,
) -> bool:
    """Note that an unpacked compiler is used; return False if it has to be fetched.

    A compiler that is not as it was unpacked is removed, with a line that says what is
    different.

    Args:
        home: the folder.
        say: gets that line.
        hashes: the digests that the requirements file allows for the wheel; empty where
            it allows any.
        byte_code: byte code beside Python sources is no difference, because nobody
            reads it.

    Raises:
        OutputError: the compiler is changed and cannot be removed.
    """
    if not hold(home):
        return False
    try:
        reason = _difference(home, hashes, byte_code=byte_code)
    except (InputError, OSError) as error:
        if isinstance(error, InputError):
            reason = error.what
        else:
            reason = f"it cannot be read: {error.strerror}"
    if not reason:
        return True
    say(f"the cached compiler {home.name} is not used: {reason}; it is fetched again")
    try:
        remove(home)
    except FileNotFoundError:  # another run was faster
        pass
    except OSError as error:
        hint = "remove it, or choose another cache"
        raise OutputError(
            f"cannot be removed: {error.strerror}", where=str(home), hint=hint
        ) from None
    return False


def _difference(home: Path, hashes: tuple[str, ...], *, byte_code: bool) -> str:
    """Return how a folder differs from its list, or its wheel from the allowed ones.

    Empty if nothing differs.
    """
    listed = _list_of(home)
    if listed is None:
        return "it has no list of its files"
    if hashes and not listed.wheel:
        return "the digest of its wheel is unknown"
    if hashes and not set(hashes) & set(listed.wheel):
        return "--hash does not allow the digest of its wheel"
    files_found = _found(home, byte_code=byte_code)
    identity = files_found.identity
    if _known.get(home.absolute()) == identity:
        return ""
    names = {*listed.files, *listed.links, *files_found.files, *files_found.links}
    for name in sorted(names):
        change = _change(name, listed, files_found)
        if change:
            return f"{printable(name)} {change}"
    if not (home / LIST).is_file():
        with contextlib.suppress(OutputError):  # a cache that can only be read
            write_atomically(home / LIST, canonical(listed))
    _known[home.absolute()] = identity
    return ""


def _change(name: str, listed: _Listed, files_found: _Found) -> str:
    """Return the change of a file since it was unpacked; empty if there is none."""
    if name not in listed.files and name not in listed.links:
        return "was added"
    if name not in files_found.files and name not in files_found.links:
        return "is missing"
    if name in listed.links or name in files_found.links:
        if listed.links.get(name) == files_found.links.get(name):
            return ""
        return "was changed"
    file = listed.files[name]
    path = files_found.files[name]
    is_same = path.stat().st_size == file.size_bytes and hashed(path) == file.sha256
    if is_same:
        return ""
    return "was changed"


def _found(folder: Path, *, byte_code: bool) -> _Found:
    """Return the content of a folder.

    Its list, and files that are still being written, are left out.

    `byte_code`: leave out byte code beside Python sources.
    """
    files = dict[str, Path]()
    links = dict[str, str]()
    for entry in files_below(folder):
        name = os.path.relpath(entry.path, folder)
        if (
            name == LIST
            or name.startswith(PART_PREFIX)
            or (byte_code and _BYTE_CODE.fullmatch(name))
        ):
            continue
        if entry.is_symlink():
            links[name] = os.readlink(entry.path)
        elif entry.is_file(follow_symlinks=False):
            files[name] = Path(entry.path)
        else:
            raise InputError(f"{printable(name)} is not a regular file")
    return _Found(files, links)


def _list_of(home: Path) -> _Listed | None:
    """Return the list of a folder.

    For a wheel that an older version unpacked, it is made from its RECORD. None if
    there is neither.
    """
    if not (home / LIST).is_symlink() and (home / LIST).is_file():
        try:
            return msgspec.json.decode(
                read_bounded(home / LIST, LIST, _MOST_LIST_BYTES), type=_Listed
            )
        except (msgspec.DecodeError, RecursionError):
            raise InputError(f"{LIST} is not a list of files") from None
    records = list(home.glob("*.dist-info/RECORD"))
    if len(records) != 1:
        return None
    complete = home / COMPLETE
    files = {COMPLETE: _File(complete.stat().st_size, hashed(complete))}
    record_name = records[0].relative_to(home).as_posix()
    text = read_bounded(records[0], record_name, _MOST_LIST_BYTES).decode(
        "utf-8", "replace"
    )
    try:
        for name, digest, size in csv.reader(text.splitlines()):
            if name == record_name:
                files[name] = _File(records[0].stat().st_size, hashed(records[0]))
                continue
            sha256 = base64.urlsafe_b64decode(
                digest.removeprefix("sha256=") + "="
            ).hex()
            files[name] = _File(int(size), sha256)
    except (csv.Error, ValueError):  # also another number of fields, and bad base64
        return None
    return _Listed((), files, {})
