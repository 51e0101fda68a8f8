"""Files from a zip archive that is not trusted: known names only, and never more bytes than allowed.

What the archive says of itself is checked before anything is unpacked, and nothing is
unpacked beyond what it says.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection

from bot.errors import InputError

LIMIT_BYTES = 64 << 20
_ENTRY, _END = b"PK\x01\x02", b"PK\x05\x06"
"""What an entry of the central directory begins with, and the record at its end (PKWARE APPNOTE 6.3.10, 4.3)."""
_END_BYTES, _COUNT = (
    22,
    slice(-12, -10),
)  # Size of that record, and where it says how many entries there are
MOST_BYTES_EACH, MOST_ENTRIES, MOST_TIMES_LARGER = (
    32 << 20,
    20,
    200,
)  # Unpacked, than the archive
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
    """The files of an archive.

    It may hold plain files with these names and nothing else, but need not hold them
    all.

    Raises InputError, in one line, for any other name, a directory, link, duplicate or
    encrypted file, for sizes that are not true or over the limits, and for bytes that
    are no such archive.
    """
    where = "zip archive"
    try:
        if data.count(_ENTRY) > MOST_ENTRIES:  # `zipfile` makes an object of each
            raise InputError(f"has more than {MOST_ENTRIES} files")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            # The archive is the bytes and nothing else: `zipfile` itself also finds one
            # among others.
            start = min(
                (info.header_offset for info in infos), default=len(data) - _END_BYTES
            )
            if start or data[-_END_BYTES:-18] != _END or data[-2:] != b"\0\0":
                raise InputError(
                    "is incomplete, has a comment, or has bytes outside of its files"
                )
            if len({info.filename for info in infos}) != int.from_bytes(
                data[_COUNT], "little"
            ):
                raise InputError("has a file twice, or fewer files than it declares")
            if sum(info.file_size for info in infos) > min(
                LIMIT_BYTES, MOST_TIMES_LARGER * len(data)
            ):
                raise InputError("unpacks to more bytes than allowed")
            for info in infos:
                shown_name = repr(info.orig_filename[:80])
                if info.filename.endswith("/") or stat.S_IFMT(
                    info.external_attr >> 16
                ) not in (0, stat.S_IFREG):
                    raise InputError(f"{shown_name} is not a plain file")
                if info.filename not in names or info.filename != info.orig_filename:
                    raise InputError(f"has the unexpected file {shown_name}")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise InputError(
                        f"{shown_name} uses a compression that is not allowed"
                    )
                if info.file_size > MOST_BYTES_EACH:
                    raise InputError(
                        f"{shown_name} has more than {MOST_BYTES_EACH} bytes"
                    )
            files = {}
            # not a byte more is unpacked than a file says to have, which has to be true
            for info in infos:
                with archive.open(info) as file:
                    files[info.filename] = file.read(info.file_size + 1)
                if len(files[info.filename]) != info.file_size:
                    raise ValueError(
                        f"{info.filename} has another size than it declares"
                    )
            return files
    except InputError as error:
        raise InputError(error.what, where=where) from None
    except _TORN as error:
        raise InputError(
            f"is not a readable zip archive: {error}"[:300], where=where
        ) from None
