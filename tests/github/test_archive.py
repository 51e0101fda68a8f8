"""Archives as strangers make them."""

from __future__ import annotations

import io
import stat
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress

import pytest

from bot.errors import InputError
from bot.github.archive import MOST_BYTES_EACH, read_zip

NAMES = ("base.json", "head.json")


def zipped(
    *files: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, data in files:
            archive.writestr(name, data, method)
    return buffer.getvalue()


FILES = {"base.json": b"{}", "head.json": b"[1]"}
GOOD = zipped(*FILES.items())


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("base.json")
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info


def with_size(size: int) -> bytes:
    """A stored file whose size in the central directory is a lie."""
    data = bytearray(zipped(("base.json", b"x" * 100)))
    place = data.index(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<L", size)
    return bytes(data)


def encrypted() -> bytes:
    data = bytearray(GOOD)
    place = data.index(b"PK\x01\x02")
    data[place + 8] |= 1
    return bytes(data)


def patched(data: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    """The archive with another value at this place of each record that begins with the signature."""
    patched_data = bytearray(data)
    start = data.find(signature)
    while start >= 0:
        patched_data[start + offset : start + offset + len(value)] = value
        start = data.find(signature, start + 1)
    return bytes(patched_data)


ENTRY = b"PK\x01\x02"
LOCAL = b"PK\x03\x04"
END = b"PK\x05\x06"


def peak_bytes(action: Callable[[], object]) -> int:
    """The most memory that the action holds at once."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_is_expected() -> None:
    assert read_zip(GOOD, names=NAMES) == FILES
    assert read_zip(
        zipped(("head.json", b"1"), method=zipfile.ZIP_STORED), names=NAMES
    ) == {"head.json": b"1"}
    assert read_zip(zipped(), names=NAMES) == {}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"PK", id="two-bytes"),
        pytest.param(GOOD[:-1], id="cut-off"),
        pytest.param(GOOD + b"x", id="tail"),
        pytest.param(b"x" + GOOD, id="head"),
        pytest.param(zipped(("other.json", b"")), id="unknown-name"),
        pytest.param(zipped(("../base.json", b"")), id="parent"),
        pytest.param(zipped(("/base.json", b"")), id="absolute"),
        pytest.param(zipped(("a/base.json", b"")), id="nested"),
        pytest.param(zipped(("base.json/", b"")), id="directory"),
        pytest.param(zipped(("base.json", b"1"), ("base.json", b"2")), id="twice"),
        pytest.param(zipped((link(), b"/etc/passwd")), id="link"),
        pytest.param(zipped(("base.json", b"1"), method=zipfile.ZIP_LZMA), id="lzma"),
        pytest.param(zipped(("base.json", b"1"), method=zipfile.ZIP_BZIP2), id="bzip2"),
        pytest.param(zipped(("base.json", bytes(4 << 20))), id="bomb"),
        pytest.param(zipped(*((f"{i}.json", b"") for i in range(21))), id="many"),
        pytest.param(encrypted(), id="encrypted"),
        pytest.param(with_size(10), id="says-less"),
        pytest.param(with_size(1000), id="says-more"),
        pytest.param(with_size(0xFFFFFFFF), id="zip64"),
        pytest.param(b"x" + zipped(), id="head-of-nothing"),
        pytest.param(patched(GOOD, END, 20, b"\1\0") + b"x", id="comment"),
        pytest.param(patched(GOOD, ENTRY, 42, bytes(4)), id="one-place"),
        pytest.param(patched(GOOD, END, 10, b"\1\0"), id="hides-one"),
        pytest.param(
            patched(
                zipped(("base.json", bytes(4 << 20))), ENTRY, 20, b"\xff\xff\xff\x7f"
            ),
            id="bomb-says-more",
        ),
        pytest.param(GOOD.replace(b"head.json", b"base.json"), id="one-name"),
    ],
)
def test_what_is_refused(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read_zip(data, names=NAMES)
    assert "\n" not in caught.value.line and caught.value.where == "zip archive"


def test_limits() -> None:
    largest = bytes(MOST_BYTES_EACH)
    names = (*NAMES, "third.json")
    files = [(name, largest) for name in names]
    assert (
        len(read_zip(zipped(*files[:2], method=zipfile.ZIP_STORED), names=names)) == 2
    )
    for too_much in (files, [("base.json", largest + b"x")]):
        with pytest.raises(
            InputError, match=r"more bytes than allowed|has more than 33554432 bytes"
        ):
            read_zip(zipped(*too_much, method=zipfile.ZIP_STORED), names=names)


def test_a_bomb_that_says_it_is_small_is_not_unpacked() -> None:
    bomb = zipped(("base.json", bytes(64 << 20)))
    for offset, signature in ((22, LOCAL), (24, ENTRY)):
        bomb = patched(bomb, signature, offset, struct.pack("<L", 10))
    assert peak_bytes(lambda: read_zip(bomb, names=NAMES)) < 1 << 20


def test_files_that_share_their_bytes_have_no_more_than_one_archive_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The inner file of one is the whole next one: what `zipfile` lets through is bound by the sum of all sizes."""
    noise = bytes(range(256)) * 100
    inner_archive = zipped(("head.json", noise), method=zipfile.ZIP_STORED)
    outer_archive = zipped(
        ("base.json", inner_archive[: inner_archive.index(ENTRY)]),
        method=zipfile.ZIP_STORED,
    )
    inner = inner_archive[inner_archive.index(ENTRY) : inner_archive.index(END)]
    outer = outer_archive[outer_archive.index(ENTRY) : outer_archive.index(END)]
    offset = struct.pack("<L", outer_archive.index(b"head.json") - 30)
    body = outer_archive[: outer_archive.index(ENTRY)]
    end = struct.pack(
        "<4s4H2LH", END, 0, 0, 2, 2, len(inner) + len(outer), len(body), 0
    )
    overlapping = body + outer + patched(inner, ENTRY, 42, offset) + end
    monkeypatch.setattr("bot.github.archive.LIMIT_BYTES", 2 * len(noise))
    with pytest.raises(InputError, match=r"Overlapped|more bytes than allowed"):
        read_zip(overlapping, names=NAMES)


def test_a_directory_without_an_end_is_refused_before_it_is_read() -> None:
    entry = zipped(("a", b""))
    record = entry[entry.index(ENTRY) : entry.index(END)]
    data = record * 100_000 + struct.pack(
        "<4s4H2LH", END, 0, 0, 0xFFFF, 0xFFFF, len(record) * 100_000, 0, 0
    )
    assert peak_bytes(lambda: read_zip(data, names=["a"])) < 1 << 20


def test_of_any_byte_that_is_another_one_nothing_is_lost() -> None:
    """A changed length makes the first entry swallow the second one."""
    for index in range(len(GOOD)):
        for value in range(0, 256, 7):
            data = bytearray(GOOD)
            data[index] = value
            with suppress(InputError):
                assert read_zip(bytes(data), names=NAMES) == FILES, (index, value)


def test_a_nul_in_a_name() -> None:
    data = zipped(("base.jsonXevil", b"1")).replace(
        b"base.jsonXevil", b"base.json\0evil"
    )
    with pytest.raises(InputError):
        read_zip(data, names=NAMES)
