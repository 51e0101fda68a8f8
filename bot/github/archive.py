"""Read files from a zip archive that is not trusted.

The archive may have known names only, and never more bytes than allowed. Its own
statements are checked before anything is unpacked, and nothing is unpacked beyond them.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Sequence

from bot.errors import InputError

LIMIT_BYTES = 64 << 20
# An entry of the central directory begins with `_ENTRY`, and the record at its end
# with `_END` (PKWARE APPNOTE 6.3.10, 4.3).
_ENTRY = b"PK\x01\x02"
_END = b"PK\x05\x06"
_END_BYTES = 22  # size of that record
_COUNT = slice(-12, -10)  # where that record says how many entries there are
MOST_BYTES_EACH = 32 << 20  # unpacked
MOST_ENTRIES = 20
MOST_TIMES_LARGER = 200  # unpacked, than the archive
_TORN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    RuntimeError,
    OverflowError,
)


def read_zip(data: bytes, *, names: Collection[str]) -> dict[str, bytes]:
    """Return the files of an archive.

    It may hold plain files with these names and nothing else, but need not hold them
    all.

    Raises:
        InputError: in one line, for any other name, a directory, link, duplicate or
            encrypted file, for sizes that are not true or over the limits, and for
            bytes that are no such archive.
    """
    where = "zip archive"
    try:
        if data.count(_ENTRY) > MOST_ENTRIES:  # `zipfile` makes an object of each
            raise InputError(f"has more than {MOST_ENTRIES} files")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _require_whole(data, infos)
            for info in infos:
                _require_allowed(info, names)
            return {info.filename: _unpacked(archive, info) for info in infos}
    except InputError as error:
        raise InputError(error.what, where=where) from None
    except _TORN as error:
        raise InputError(
            f"is not a readable zip archive: {error}"[:300], where=where
        ) from None


def _require_whole(data: bytes, infos: Sequence[zipfile.ZipInfo]) -> None:
    """Raise InputError if the bytes are not one whole archive within the limits."""
    # The archive is the bytes and nothing else: `zipfile` itself also finds one among
    # others.
    start = min((info.header_offset for info in infos), default=len(data) - _END_BYTES)
    if start or data[-_END_BYTES:-18] != _END or data[-2:] != b"\0\0":
        raise InputError(
            "is incomplete, has a comment, or has bytes outside of its files"
        )
    declared_count = int.from_bytes(data[_COUNT], "little")
    if len({info.filename for info in infos}) != declared_count:
        raise InputError("has a file twice, or fewer files than it declares")
    most_bytes = min(LIMIT_BYTES, MOST_TIMES_LARGER * len(data))
    if sum(info.file_size for info in infos) > most_bytes:
        raise InputError("unpacks to more bytes than allowed")


def _require_allowed(info: zipfile.ZipInfo, names: Collection[str]) -> None:
    """Raise InputError if a file may not be in the archive."""
    shown_name = repr(info.orig_filename[:80])
    file_type = stat.S_IFMT(info.external_attr >> 16)
    if info.filename.endswith("/") or file_type not in (0, stat.S_IFREG):
        raise InputError(f"{shown_name} is not a plain file")
    if info.filename not in names or info.filename != info.orig_filename:
        raise InputError(f"has the unexpected file {shown_name}")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{shown_name} uses a compression that is not allowed")
    if info.file_size > MOST_BYTES_EACH:
        raise InputError(f"{shown_name} has more than {MOST_BYTES_EACH} bytes")


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a file, which must have the size that it declares.

    Not more than one byte over that size is unpacked.
    """
    with archive.open(info) as file:
        unpacked = file.read(info.file_size + 1)
    if len(unpacked) != info.file_size:
        raise ValueError(f"{info.filename} has another size than it declares")
    return unpacked
