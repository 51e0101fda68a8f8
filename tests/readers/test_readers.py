"""The table of readers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import fixture, outcome

from bot.core.reading import Reader
from bot.errors import MalformedBinary
from bot.readers import elf, hsaco
from bot.readers.artifact import EMBEDDED, READERS, is_executable, read_executable

FORMATS = {
    "dense.llvm-cpu-x86_64.o": "elf",
    "dense.llvm-cpu-x86_64.so": "elf",
    "dense.rocm.hsaco": "hsaco",
    "dense.cuda.ptx": "ptx",
    "dense.vulkan-spirv.0.spv": "spirv",
    "dense.metal-spirv.0.metal": "msl",
    "dense.vmvx.module": "vm-bytecode",
}


@pytest.mark.parametrize(("name", "expected"), FORMATS.items())
def test_every_format_finds_its_reader(name: str, expected: str) -> None:
    assert read_executable(fixture(name)).format == expected


@pytest.mark.parametrize("name", FORMATS)
def test_no_binary_is_accepted_by_two_readers_but_code_objects(name: str) -> None:
    accepting = [reader for reader in READERS if reader.accepts(fixture(name))]
    assert len(accepting) == (2 if name.endswith(".hsaco") else 1)


def test_code_objects_go_before_other_elf_files() -> None:
    assert READERS.index(hsaco) < READERS.index(elf)
    assert READERS[: len(EMBEDDED)] == EMBEDDED


def test_every_reader_is_a_reader() -> None:
    readers: tuple[Reader, ...] = READERS
    for reader in readers:
        assert not reader.accepts(b"")
        with pytest.raises(MalformedBinary):
            reader.read(b"")


@pytest.mark.parametrize("data", [b"", b"hello", b"CDA1", bytes(100), b"\xff" * 100], ids=len)
def test_unknown_bytes_are_refused_with_their_beginning(data: bytes) -> None:
    """Constants of zeros are common; they are no container of an identifier of zeros."""
    assert not is_executable(data)
    with pytest.raises(MalformedBinary, match=f"{len(data)} bytes of an unknown format"):
        read_executable(data)


@pytest.mark.parametrize("name", ["dense.cuda.ptx", "dense.metal-spirv.0.metal", "dense.vulkan-spirv.0.spv"])
def test_constants_that_look_like_modules_are_no_executables(name: str) -> None:
    assert not is_executable(fixture(name))


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for reader in READERS:
        outcome(reader.read, data)
    outcome(read_executable, data)
