"""Files out of a zip that a stranger may have made: known names only, and never more bytes than allowed.

What the archive says about sizes is checked, but nothing relies on it. Layout: PKWARE APPNOTE 6.3.10, section 4.3.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from bot.errors import InputError

_END = struct.Struct("<4s4H2LH")  # end of central directory: 4.3.16
_END_SIGNATURE, _ZIP64_LOCATOR = b"PK\x05\x06", b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_LONGEST_RECORD_BYTES = 1024  # of the central directory: 46, the name and a few times and owners
_CHUNK_BYTES = 64 << 10
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_TORN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What an archive may hold; sizes are unpacked ones."""

    max_bytes_each: int
    max_total: int
    max_entries: int
    max_ratio: int


def read_zip(
    source: Path | bytes,
    *,
    names: Collection[str],
    max_bytes_each: int = 32 << 20,
    max_total: int = 64 << 20,
    max_entries: int = 20,
    max_ratio: int = 200,
) -> dict[str, bytes]:
    """The files of an archive; it may hold plain files with these names and nothing else, but need not hold them all.

    Raises InputError, in one line, for any other name, a directory, link, duplicate or encrypted file, for sizes that
    are not true or over the limits, and for bytes that are no such archive.
    """
    where = str(source) if isinstance(source, Path) else "zip archive"
    limits = Limits(max_bytes_each, max_total, max_entries, max_ratio)
    data = _read(source, limits.max_total) if isinstance(source, Path) else source
    try:
        count = _check_end(data, limits)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if len(archive.infolist()) != count:
                raise InputError("holds fewer files than it says")
            _check_names([_checked(info, limits) for info in archive.infolist()], names)
            return _files(archive, limits)
    except InputError as error:
        raise InputError(error.what, where=where) from None
    except _TORN as error:
        raise InputError(f"is no zip archive that can be read: {error}"[:300], where=where) from None


def _read(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    if len(data) > limit:
        raise InputError(f"has more than {limit} bytes", where=str(path))
    return data


def _check_end(data: bytes, limits: Limits) -> int:
    """Before `zipfile` builds an object for every entry: how many there are, in one plain archive without more."""
    at = len(data) - _END.size
    if at < 0:
        raise InputError("is no zip archive")
    signature, disk, first_disk, here, count, size, offset, comment = _END.unpack_from(data, at)
    if signature != _END_SIGNATURE or comment or disk or first_disk or here != count:
        raise InputError("is no zip archive, was cut off or has a comment")
    if data[max(0, at - _ZIP64_LOCATOR_BYTES) :].startswith(_ZIP64_LOCATOR) or offset + size != at:
        raise InputError("is a zip64 archive, or has bytes that belong to no file")
    if count > limits.max_entries or size > limits.max_entries * _LONGEST_RECORD_BYTES:
        raise InputError(f"has more than {limits.max_entries} files")
    return int(count)


def _checked(info: zipfile.ZipInfo, limits: Limits) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.orig_filename != info.filename or info.is_dir() or kind not in (0, stat.S_IFREG):
        raise InputError(f"{info.orig_filename[:80]!r} is not a plain file")
    if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{info.filename[:80]!r} is encrypted or packed in a way that is not allowed")
    if info.file_size > limits.max_bytes_each:
        raise InputError(f"{info.filename[:80]!r} has more than {limits.max_bytes_each} bytes")
    return info.filename


def _check_names(found: list[str], names: Collection[str]) -> None:
    if unknown := [name for name in found if name not in names or "/" in name or "\\" in name or name in ("", "..")]:
        raise InputError(f"holds {unknown[0][:80]!r}, which is not expected there")
    if len(set(found)) != len(found):
        raise InputError("holds a file twice")


def _files(archive: zipfile.ZipFile, limits: Limits) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    left = limits.max_total
    for info in archive.infolist():
        cap = min(limits.max_bytes_each, left, limits.max_ratio * max(1, info.compress_size))
        files[info.filename] = _file(archive, info, cap)
        left -= len(files[info.filename])
    return files


def _file(archive: zipfile.ZipFile, info: zipfile.ZipInfo, cap: int) -> bytes:
    data = bytearray()
    with archive.open(info) as file:
        while chunk := file.read(_CHUNK_BYTES):
            data += chunk
            if len(data) > cap:
                raise InputError(f"{info.filename[:80]!r} unpacks to more bytes than allowed")
    if len(data) != info.file_size:
        raise InputError(f"{info.filename[:80]!r} has another size than the archive says")
    return bytes(data)
