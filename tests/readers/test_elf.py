"""The ELF reader, against readelf and on files made by hand."""

from __future__ import annotations

import re
import struct
import subprocess

import needs
import pytest
from elf_files import tiny_object
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import BINARIES, fixture, outcome
from replacing import replace

from bot.errors import MalformedBinary
from bot.readers import elf
from bot.readers.elf import STT_FUNC, parse_elf

OBJECTS = ("dense.llvm-cpu-x86_64.o", "dense.llvm-cpu-aarch64.o", "dense.llvm-cpu-riscv64.o")
LIBRARIES = tuple(name.replace(".o", ".so") for name in OBJECTS)
SMALLEST = "dense.llvm-cpu-aarch64.so"
READ = elf.read


@pytest.mark.parametrize("tool", ["readelf", "llvm-readelf"])
@pytest.mark.parametrize("name", [*OBJECTS, *LIBRARIES])
def test_parts_are_those_of_readelf(name: str, tool: str) -> None:
    sections = re.findall(
        r"\] (\S*) +(PROGBITS|SYMTAB|STRTAB|RELA) +\S+ \S+ (\S+) \S+ +([A-Zl]*) +\d+ +\d+ +\d+$",
        run(tool, "-SW", name),
        re.M,
    )
    parts = READ(fixture(name)).parts

    def total(kind: str, *flags: str) -> int:
        return sum(int(size, 16) for _, type_, size, own in sections if type_ == kind and own.strip("MSILl") in flags)

    assert parts["text"] == total("PROGBITS", "AX")
    assert parts["rodata"] == total("PROGBITS", "A")
    assert parts["data"] == total("PROGBITS", "WA")
    assert parts["relocations"] == total("RELA", "", "A")
    assert parts["symbols"] == total("SYMTAB", "") + total("STRTAB", "")


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_linked_library_has_no_entry_points_and_little_residue(name: str) -> None:
    reading = READ(fixture(name))
    assert reading.entry_points == ()
    assert reading.unattributed_bytes < 64


@pytest.mark.parametrize(("bits", "order"), [(32, "<"), (32, ">"), (64, "<"), (64, ">")])
def test_both_classes_and_byte_orders(bits: int, order: str) -> None:
    data = tiny_object(bits, order)
    assert [(symbol.name, symbol.size_bytes) for symbol in parse_elf(data).symbols(STT_FUNC)] == [("kernel", 24)]
    reading = READ(data)
    assert reading.parts["text"] == 24
    assert reading.unattributed_bytes == 0


@pytest.mark.parametrize("section", [0, 0xFFF1])
def test_functions_that_are_elsewhere_do_not_count(section: int) -> None:
    assert parse_elf(tiny_object(64, "<", section=section)).symbols(STT_FUNC) == ()


def test_a_symbol_name_outside_its_strings_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="a name at offset 1000"):
        parse_elf(tiny_object(64, "<", name_at=1000)).symbols(STT_FUNC)


def test_a_name_that_does_not_end_soon_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="a name at offset 1 of"):
        parse_elf(tiny_object(64, "<", name=b"k" * 1024)).symbols(STT_FUNC)


def test_symbols_are_all_of_the_table_by_index() -> None:
    elf = parse_elf(tiny_object(32, ">"))
    nothing, kernel = elf.symbols()
    assert (nothing.name, nothing.kind) == ("", 0)
    assert (kernel,) == elf.symbols(STT_FUNC)


def test_contents_lie_inside_the_section() -> None:
    elf = parse_elf(tiny_object(64, "<"))
    (symbol,) = elf.symbols(STT_FUNC)
    assert elf.contents(symbol) == bytes(24)
    assert elf.contents(replace(symbol, value=1)) is None
    assert elf.contents(replace(symbol, section=9)) is None


def test_overlapping_sections_are_refused() -> None:
    data = bytearray(tiny_object(64, "<"))
    second = data.index(struct.pack("<Q", 64 + 24), 64 + 24)
    data[second : second + 8] = struct.pack("<Q", 64 + 8)
    with pytest.raises(MalformedBinary, match="share the byte"):
        READ(bytes(data))


def test_a_huge_section_table_offset_is_refused() -> None:
    data = bytearray(tiny_object(64, "<"))
    data[40:48] = b"\xff" * 8
    with pytest.raises(MalformedBinary, match="exceed the whole"):
        parse_elf(bytes(data))


@given(st.binary(max_size=400))
def test_any_bytes_after_the_magic(tail: bytes) -> None:
    for ident in (b"\x7fELF\x02\x01\x01", b"\x7fELF\x01\x02\x01", b"\x7fELF"):
        outcome(READ, ident + tail)


def run(tool: str, option: str, name: str) -> str:
    command = [needs.program(tool), option, str(BINARIES / name)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
