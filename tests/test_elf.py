"""The ELF reader, against readelf and on files made by hand."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import BINARIES, check_flips, check_golden, check_truncations, fixture, outcome

from bot.errors import MalformedBinary
from bot.measure.elf import ElfReader, function_sizes, parse_elf

OBJECTS = ("dense.llvm-cpu-x86_64.o", "dense.llvm-cpu-aarch64.o", "dense.llvm-cpu-riscv64.o")
LIBRARIES = tuple(name.replace(".o", ".so") for name in OBJECTS)
SMALLEST = "dense.llvm-cpu-aarch64.so"
READ = ElfReader().read


@pytest.mark.parametrize("name", [*LIBRARIES, "dense.llvm-cpu-aarch64.o"])
def test_golden(name: str) -> None:
    check_golden(name, READ(fixture(name)))


@pytest.mark.parametrize("tool", ["readelf", "llvm-readelf"])
@pytest.mark.parametrize("name", OBJECTS)
def test_function_sizes_are_those_of_readelf(name: str, tool: str) -> None:
    expected: dict[str, int] = {}
    for line in run(tool, "-sW", name).splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[3] == "FUNC" and columns[6] != "UND":
            expected[columns[7]] = expected.get(columns[7], 0) + int(columns[2], 0)
    assert len(expected) > 30
    assert function_sizes(fixture(name)) == expected


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


@pytest.mark.parametrize("name", OBJECTS)
def test_functions_fill_the_text_of_an_object(name: str) -> None:
    assert sum(function_sizes(fixture(name)).values()) == READ(fixture(name)).parts["text"]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_dispatches_are_among_the_functions(name: str) -> None:
    sizes = function_sizes(fixture(name))
    dispatches = {name for name in sizes if "dispatch" in name}
    assert dispatches == {"main_dispatch_0_matmul_48x96x40_f32", "main_dispatch_1_reduction_48x96_f32"}
    assert all(sizes[name] > 100 for name in dispatches)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_linked_library_has_no_entry_points_and_little_residue(name: str) -> None:
    reading = READ(fixture(name))
    assert reading.entry_points == ()
    assert reading.unattributed_bytes < 64


@pytest.mark.parametrize(("bits", "order"), [(32, "<"), (32, ">"), (64, "<"), (64, ">")])
def test_both_classes_and_byte_orders(bits: int, order: str) -> None:
    data = tiny_object(bits, order)
    assert function_sizes(data) == {"kernel": 24}
    reading = READ(data)
    assert reading.parts["text"] == 24
    assert reading.unattributed_bytes == 0


def test_local_functions_of_one_name_are_summed() -> None:
    assert function_sizes(tiny_object(64, "<", functions=2)) == {"kernel": 48}


@pytest.mark.parametrize("section", [0, 0xFFF1])
def test_functions_that_are_elsewhere_do_not_count(section: int) -> None:
    assert function_sizes(tiny_object(64, "<", section=section)) == {}


def test_a_symbol_name_outside_its_strings_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="a name at offset 1000"):
        function_sizes(tiny_object(64, "<", name_at=1000))


def test_a_name_that_does_not_end_soon_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="a name at offset 1 of"):
        function_sizes(tiny_object(64, "<", name=b"k" * 1024))


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


def test_truncated_at_every_offset_it_is_refused() -> None:
    data = fixture(SMALLEST)
    assert check_truncations(READ, data) == len(data)


def test_flipped_bytes() -> None:
    assert check_flips(READ, fixture(SMALLEST)) > 20
    check_flips(READ, tiny_object(64, "<"))
    check_flips(READ, tiny_object(32, ">"))


@given(st.binary(max_size=400))
def test_any_bytes_after_the_magic(tail: bytes) -> None:
    for ident in (b"\x7fELF\x02\x01\x01", b"\x7fELF\x01\x02\x01", b"\x7fELF"):
        outcome(READ, ident + tail)


def run(tool: str, option: str, name: str) -> str:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not here")
    return subprocess.run([tool, option, str(BINARIES / name)], capture_output=True, text=True, check=True).stdout


def tiny_object(
    bits: int, order: str, functions: int = 1, name_at: int = 1, name: bytes = b"kernel", section: int = 1
) -> bytes:
    """A relocatable object: functions of 24 bytes each, a symbol table and its strings."""
    code, strings = bytes(24 * functions), b"\0" + name + b"\0"
    header_bytes, section_bytes = (64, 64) if bits == 64 else (52, 40)
    null = struct.pack(order + ("IBBHQQ" if bits == 64 else "IIIBBH"), *[0] * 6)
    if bits == 64:
        symbol = struct.pack(order + "IBBHQQ", name_at, 2, 0, section, 0, 24)
    else:
        symbol = struct.pack(order + "IIIBBH", name_at, 0, 24, 2, 0, section)
    symbols = null + symbol * functions
    code_at = header_bytes
    symbols_at = code_at + len(code)
    strings_at = symbols_at + len(symbols)
    table_at = strings_at + len(strings)
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    word = "Q" if bits == 64 else "I"
    header = struct.pack(f"{order}HHI3{word}I6H", 1, 62, 1, 0, 0, table_at, 0, header_bytes, 0, 0, section_bytes, 4, 3)
    layout = f"{order}II4{word}II2{word}"
    sections = (
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 1, 6, 0, code_at, len(code), 0, 0, 1, 0),
        (0, 2, 0, 0, symbols_at, len(symbols), 3, 1, 1, len(null)),
        (0, 3, 0, 0, strings_at, len(strings), 0, 0, 1, 0),
    )
    return ident + header + code + symbols + strings + b"".join(struct.pack(layout, *section) for section in sections)
