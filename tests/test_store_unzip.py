"""Archives as strangers make them."""

from __future__ import annotations

import io
import stat
import struct
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.errors import InputError
from bot.store.unzip import read_zip

NAMES = ("base.json", "head.json")


def zipped(*files: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, data in files:
            archive.writestr(name, data, method)
    return buffer.getvalue()


GOOD = zipped(("base.json", b"{}"), ("head.json", b"[1]"))


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("base.json")
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info


def with_size(size: int) -> bytes:
    """A stored file whose size in the central directory is a lie."""
    data = bytearray(zipped(("base.json", b"x" * 100)))
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<L", size)
    return bytes(data)


def encrypted() -> bytes:
    data = bytearray(GOOD)
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    return bytes(data)


def test_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(GOOD)
    expected = {"base.json": b"{}", "head.json": b"[1]"}
    assert read_zip(GOOD, names=NAMES) == read_zip(tmp_path / "a.zip", names=NAMES) == expected
    assert read_zip(zipped(("head.json", b"1"), method=zipfile.ZIP_STORED), names=NAMES) == {"head.json": b"1"}
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
    ],
)
def test_what_is_refused(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read_zip(data, names=NAMES)
    assert "\n" not in caught.value.line and caught.value.where == "zip archive"


def test_limits() -> None:
    noise = bytes(range(256)) * 4
    data = zipped(("base.json", noise), ("head.json", noise), method=zipfile.ZIP_STORED)
    assert len(read_zip(data, names=NAMES, max_bytes_each=1024, max_total=2048)) == 2
    for limits in ({"max_bytes_each": 1023}, {"max_total": 2047}, {"max_entries": 1}):
        with pytest.raises(InputError):
            read_zip(data, names=NAMES, **limits)
    packed = zipped(("base.json", bytes(100_000)))
    assert len(read_zip(packed, names=NAMES, max_ratio=2000)["base.json"]) == 100_000
    with pytest.raises(InputError, match="more bytes than allowed"):
        read_zip(packed, names=NAMES, max_ratio=200)


def test_a_nul_in_a_name() -> None:
    data = zipped(("base.jsonXevil", b"1")).replace(b"base.jsonXevil", b"base.json\0evil")
    with pytest.raises(InputError):
        read_zip(data, names=NAMES)


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
@example(0, 0)
def test_any_changed_byte_gives_the_files_or_an_error(at: int, value: int) -> None:
    data = bytearray(GOOD)
    data[at] = value
    try:
        found = read_zip(bytes(data), names=NAMES)
    except InputError:
        return
    assert found == {"base.json": b"{}", "head.json": b"[1]"}


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    with pytest.raises(InputError):
        read_zip(data, names=NAMES)
