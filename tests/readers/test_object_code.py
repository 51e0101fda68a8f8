"""Functions of relocatable objects: sizes against readelf, digests that follow the code and nothing else."""

from __future__ import annotations

import re
import struct
import subprocess

import needs
import pytest
from elf_files import tiny_object
from reader_checks import BINARIES, fixture

from bot.errors import MalformedBinary
from bot.readers import elf
from bot.readers.elf import STT_FUNC, STT_OBJECT, Section, parse_elf
from bot.readers.object_code import FunctionCode, function_codes

OBJECTS = ("dense.llvm-cpu-x86_64.o", "dense.llvm-cpu-aarch64.o", "dense.llvm-cpu-riscv64.o")
MATMUL, REDUCTION = "main_dispatch_0_matmul_48x96x40_f32", "main_dispatch_1_reduction_48x96_f32"


@pytest.mark.parametrize("tool", ["readelf", "llvm-readelf"])
@pytest.mark.parametrize("name", OBJECTS)
def test_function_sizes_are_those_of_readelf(name: str, tool: str) -> None:
    command = [needs.program(tool), "-sW", str(BINARIES / name)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected: dict[str, int] = {}
    for line in listed.splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[3] == "FUNC" and columns[6] != "UND":
            expected[columns[7]] = expected.get(columns[7], 0) + int(columns[2], 0)
    assert len(expected) > 30
    assert sizes(fixture(name)) == expected


@pytest.mark.parametrize("name", OBJECTS)
def test_functions_fill_the_text_of_an_object(name: str) -> None:
    assert sum(sizes(fixture(name)).values()) == elf.read(fixture(name)).parts["text"]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_dispatches_are_among_the_functions(name: str) -> None:
    dispatches = {each: size for each, size in sizes(fixture(name)).items() if "dispatch" in each}
    assert set(dispatches) == {MATMUL, REDUCTION}
    assert all(size > 100 for size in dispatches.values())


@pytest.mark.parametrize("name", OBJECTS)
def test_every_function_has_a_digest_and_the_dispatches_differ(name: str) -> None:
    codes = {each: code.code for each, code in function_codes(fixture(name)).items()}
    assert all(re.fullmatch(r"[\w-]{43}", code or "") for code in codes.values())
    assert codes[MATMUL] != codes[REDUCTION]


def test_local_functions_of_one_name_count_together() -> None:
    once, twice = (function_codes(tiny_object(64, "<", functions=count))["kernel"] for count in (1, 2))
    assert (once.size_bytes, twice.size_bytes) == (24, 48)
    assert once.code != twice.code


def test_a_function_larger_than_a_snapshot_can_state_is_refused() -> None:
    data = tiny_object(64, "<")
    size = (24).to_bytes(8, "little")
    assert data.count(size) >= 1
    at = data.rindex(size, 0, data.index(b"\0kernel\0"))
    with pytest.raises(MalformedBinary, match="size bytes out of range"):
        function_codes(data[:at] + b"\xff" * 8 + data[at + 8 :])


@pytest.mark.parametrize("name", OBJECTS)
def test_neither_names_nor_ordinals_count(name: str) -> None:
    data = fixture(name)
    renamed = data.replace(b"main_dispatch_0_matmul", b"main_dispatch_7_conv__")
    assert renamed != data
    codes = function_codes(renamed)
    assert codes["main_dispatch_7_conv___48x96x40_f32"] == function_codes(data)[MATMUL]
    assert codes[REDUCTION] == function_codes(data)[REDUCTION]


@pytest.mark.parametrize("name", OBJECTS)
def test_each_byte_of_a_function_counts_for_it_alone(name: str) -> None:
    data = fixture(name)
    before = function_codes(data)
    section, start, size = place(data, MATMUL)
    for at in (0, size // 2, size - 1):
        after = function_codes(flipped(data, section.span.start + start + at))
        assert {each for each, code in before.items() if after[each] != code} == {MATMUL}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_constant_counts_by_its_content_for_all_that_use_it(name: str) -> None:
    """`exp` and `specialcase` use no data of `powf`, which has its tables from `__powf_log2_data`."""
    data = fixture(name)
    before = function_codes(data)
    table = symbol_place(data, "__powf_log2_data")
    after = function_codes(flipped(data, table))
    assert {each for each, code in before.items() if after[each] != code} == {"powf"}


def test_where_a_constant_lies_does_not_count() -> None:
    here, there = (linked(b"\0" * skip + b"CONST123", skip - 4) for skip in (0, 8))
    assert function_codes(here) == function_codes(there)
    assert function_codes(here) != function_codes(linked(b"\0" * 8 + b"CONST124", 4))
    assert function_codes(here) != function_codes(linked(b"CONST123", -4, type_=4))
    assert function_codes(here) != function_codes(linked(b"CONST123", -4, offset=5))


def test_a_constant_of_unknown_size_ends_where_the_next_begins() -> None:
    """On x86-64 the addend of type 2 is 4 bytes short of the offset."""
    alone = linked(b"CONST123", -4, flags=2)
    assert function_codes(alone) == function_codes(linked(b"OTHER678CONST123", 4, flags=2))
    assert function_codes(alone) == function_codes(linked(b"CONST123OTHER678", -4, flags=2, more=4))
    assert function_codes(alone) != function_codes(linked(b"CONST123OTHER678", -4, flags=2))


def test_a_constant_outside_its_section_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="a constant of 8 bytes at offset 16"):
        function_codes(linked(b"CONST123", 12))


def test_a_relocation_of_no_symbol_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="no symbol 77"):
        function_codes(linked(b"CONST123", -4, symbol=77))


def test_hidden_addends_leave_the_code_unknown() -> None:
    assert function_codes(linked(b"CONST123", -4, kind=9)) == {"kernel": FunctionCode(24, None)}


def test_a_function_larger_than_its_section_has_no_known_code() -> None:
    data = tiny_object(64, "<")
    symbol = data.index(struct.pack("<IBBHQQ", 1, 2, 0, 1, 0, 24))
    damaged = data[: symbol + 16] + (25).to_bytes(8, "little") + data[symbol + 24 :]
    assert function_codes(damaged) == {"kernel": FunctionCode(25, None)}


@pytest.mark.parametrize("name", OBJECTS)
def test_damaged_objects_are_read_or_refused(name: str) -> None:
    data = fixture(name)
    for at in range(0, len(data), len(data) // 150):
        attempt(flipped(data, at))
        attempt(data[:at])


def attempt(data: bytes) -> None:
    try:
        function_codes(data)
    except MalformedBinary as error:
        assert error.line.isprintable()


def sizes(data: bytes) -> dict[str, int]:
    return {name: code.size_bytes for name, code in function_codes(data).items()}


def place(data: bytes, name: str) -> tuple[Section, int, int]:
    elf = parse_elf(data)
    (symbol,) = (each for each in elf.symbols(STT_FUNC) if each.name == name)
    section = elf.sections[symbol.section]
    return section, symbol.value, symbol.size_bytes


def symbol_place(data: bytes, name: str) -> int:
    """Offset of the first byte of an object's data."""
    elf = parse_elf(data)
    (symbol,) = (each for each in elf.symbols(STT_OBJECT) if each.name == name)
    section = elf.sections[symbol.section]
    return section.span.start + symbol.value


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def linked(
    constants: bytes,
    addend: int,
    *,
    offset: int = 4,
    type_: int = 2,
    symbol: int = 2,
    kind: int = 4,
    flags: int = 0x12,
    more: int | None = None,
) -> bytes:
    """An object of one function that refers to a section of constants of 8 bytes, by the section's symbol."""
    strings = b"\0kernel\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 2, 0, 1, 0, 24) + struct.pack("<IBBHQQ", 0, 3, 0, 4, 0, 0)
    relocation = struct.pack("<QQq", offset, symbol << 32 | type_, addend)
    if more is not None:
        relocation += struct.pack("<QQq", 24, symbol << 32 | type_, more)
    bodies = (bytes(24), symbols, strings, constants, relocation)
    starts = [64 + sum(map(len, bodies[:count])) for count in range(len(bodies) + 1)]
    kinds = ((1, 6, 0, 0, 0), (2, 0, 3, 1, 24), (3, 0, 0, 0, 0), (1, flags, 0, 0, 8), (kind, 0, 2, 1, 24))
    header = struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, starts[-1], 0, 64, 0, 0, 64, 6, 3)
    table = bytes(64) + b"".join(
        struct.pack("<IIQQQQIIQQ", 0, type_, flags, 0, start, len(body), link, info, 1, item)
        for (type_, flags, link, info, item), start, body in zip(kinds, starts, bodies, strict=False)
    )
    return b"\x7fELF\2\1\1" + bytes(9) + header + b"".join(bodies) + table
