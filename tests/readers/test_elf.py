"""ELF files of all machines, against readelf and llvm-readelf, and made by hand.

Functions as digests.
"""

from __future__ import annotations

import re
import struct
import subprocess
from typing import Any

import msgpack
import needs
import pytest
from elf_files import (
    ALLOC,
    EXECUTE,
    PROGBITS,
    STRTAB,
    SYMTAB,
    Part,
    elf_file,
    relocation,
    symbol,
    tiny_object,
)
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import BINARIES, fixture, outcome

from bot.core.reading import Assembled, EntryPoint, Reading
from bot.errors import ImpossibleBinary, MalformedBinary
from bot.readers.artifact import ptx_modules
from bot.readers.code_object import CODE_OBJECT, FIELDS, STT_OBJECT
from bot.readers.cubin import CUBIN, read_assembled
from bot.readers.elf import ELF, STT_FUNC, parse_elf
from bot.readers.object_code import function_codes
from bot.readers.ptx import device_of

OBJECTS = (
    "dense.llvm-cpu-x86_64.o",
    "dense.llvm-cpu-aarch64.o",
    "dense.llvm-cpu-riscv64.o",
)
LIBRARIES = tuple(name.replace(".o", ".so") for name in OBJECTS)
READ = ELF.read
MATMUL = "main_dispatch_0_matmul_48x96x40_f32"
REDUCTION = "main_dispatch_1_reduction_48x96_f32"


def run(tool: str, option: str, name: str) -> str:
    command = [needs.program(tool), option, str(BINARIES / name)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 0xFF]) + data[offset + 1 :]


def place(data: bytes, name: str) -> tuple[int, int]:
    """Where a file has the code or the data of a name, and how much."""
    elf = parse_elf(data)
    (named_symbol,) = (
        symbol
        for kind in (STT_FUNC, STT_OBJECT)
        for symbol in elf.symbols(kind)
        if symbol.name == name
    )
    section = elf.sections[named_symbol.section]
    return (
        section.span.start + named_symbol.value - section.address,
        named_symbol.size_bytes,
    )


@pytest.mark.parametrize("tool", ["readelf", "llvm-readelf"])
@pytest.mark.parametrize("name", [*OBJECTS, *LIBRARIES])
def test_parts_are_those_of_readelf(name: str, tool: str) -> None:
    sections = re.findall(
        r"\] (\S*) +(PROGBITS|SYMTAB|STRTAB|RELA) +\S+ \S+ (\S+) \S+ +([A-Zl]*) +\d+"
        r" +\d+ +\d+$",
        run(tool, "-SW", name),
        re.M,
    )
    parts = READ(fixture(name)).parts

    def total(kind: str, *flags: str) -> int:
        return sum(
            int(size, 16)
            for _, type_, size, section_flags in sections
            if type_ == kind and section_flags.strip("MSILl") in flags
        )

    assert parts["text"] == total("PROGBITS", "AX")
    assert parts["rodata"] == total("PROGBITS", "A")
    assert parts["data"] == total("PROGBITS", "WA")
    assert parts["relocations"] == total("RELA", "", "A")
    assert parts["symbols"] == total("SYMTAB", "") + total("STRTAB", "")


@pytest.mark.parametrize(
    ("bits", "order"), [(32, "<"), (32, ">"), (64, "<"), (64, ">")]
)
def test_both_classes_and_byte_orders(bits: int, order: str) -> None:
    data = tiny_object(bits, order)
    assert [
        (symbol.name, symbol.size_bytes) for symbol in parse_elf(data).symbols(STT_FUNC)
    ] == [("kernel", 24)]
    reading = READ(data)
    assert reading.parts["text"] == 24
    assert reading.unattributed_bytes == 0


# Functions of relocatable objects: sizes against readelf, digests that follow the code
# and nothing else.


@pytest.mark.parametrize("tool", ["readelf", "llvm-readelf"])
@pytest.mark.parametrize("name", OBJECTS)
def test_function_sizes_are_those_of_readelf(name: str, tool: str) -> None:
    expected: dict[str, int] = {}
    for line in run(tool, "-sW", name).splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[3] == "FUNC" and columns[6] != "UND":
            expected[columns[7]] = expected.get(columns[7], 0) + int(columns[2], 0)
    assert len(expected) > 30
    codes = function_codes(fixture(name))
    assert {function: code.code_bytes for function, code in codes.items()} == expected
    assert sum(expected.values()) == READ(fixture(name)).parts["text"]
    assert {function for function in codes if "dispatch" in function} == {
        MATMUL,
        REDUCTION,
    }
    assert all(re.fullmatch(r"[\w-]{16}", code.code or "") for code in codes.values())
    assert codes[MATMUL].code != codes[REDUCTION].code


@pytest.mark.parametrize("name", OBJECTS)
def test_neither_names_nor_ordinals_count_and_each_byte_does_for_its_function_alone(
    name: str,
) -> None:
    data = fixture(name)
    before = function_codes(data)
    renamed = data.replace(b"main_dispatch_0_matmul", b"main_dispatch_7_conv__")
    codes = function_codes(renamed)
    assert codes["main_dispatch_7_conv___48x96x40_f32"].code == before[MATMUL].code
    assert codes[REDUCTION] == before[REDUCTION]
    start, size = place(data, MATMUL)
    changes = [(start + offset, MATMUL) for offset in (0, size // 2, size - 1)]
    # `exp` and `specialcase` use no data of `powf`, which has its tables from there.
    for position, function in (*changes, (place(data, "__powf_log2_data")[0], "powf")):
        after = function_codes(flipped(data, position))
        assert {
            function_name
            for function_name, code in before.items()
            if after[function_name] != code
        } == {function}


def test_local_functions_of_one_name_count_together() -> None:
    once, twice = (
        function_codes(tiny_object(64, "<", functions=count))["kernel"]
        for count in (1, 2)
    )
    assert (once.code_bytes, twice.code_bytes) == (24, 48) and once.code != twice.code


def sized(size: int) -> bytes:
    """An object whose function claims to be so large."""
    data = tiny_object(64, "<")
    position = data.index(struct.pack("<IBBHQQ", 1, 2, 0, 1, 0, 24)) + 16
    return data[:position] + size.to_bytes(8, "little") + data[position + 8 :]


def test_a_function_larger_than_its_section_is_refused() -> None:
    for size in (25, 10**15, 2**64 - 1):
        for read in (function_codes, READ):
            with pytest.raises(
                ImpossibleBinary,
                match=f"'kernel' has {size:,} bytes in a section of 24 bytes",
            ):
                read(sized(size))


def linked(
    constants: bytes,
    addend: int,
    *,
    offset: int = 4,
    type_: int = 2,
    to: int = 2,
    kind: int = 4,
    flags: int = 0x12,
    second_addend: int | None = None,
) -> dict[str, EntryPoint]:
    """One function that refers to a section of constants of 8 bytes, by the section's symbol."""
    symbols = (
        symbol(0, kind=0, section=0, value=0, size=0)
        + symbol(1, kind=2, section=1, value=0, size=24)
        + symbol(0, kind=3, section=4, value=0, size=0)
    )
    places = relocation(offset, to, addend, type_)
    if second_addend is not None:
        places += relocation(24, to, second_addend, type_)
    parts = [
        Part(PROGBITS, bytes(24), ALLOC | EXECUTE),
        Part(type=SYMTAB, data=symbols, flags=0, link=3, info=1),
        Part(STRTAB, b"\0kernel\0"),
    ]
    parts += [
        Part(PROGBITS, constants, flags, item=8),
        Part(type=kind, data=places, flags=0, link=2, info=1),
    ]
    return function_codes(elf_file(parts))


def test_where_a_constant_lies_does_not_count() -> None:
    code = linked(b"CONST123", -4)
    assert code == linked(b"\0" * 8 + b"CONST123", 4) and code["kernel"].code
    for changed in (
        linked(b"\0" * 8 + b"CONST124", 4),
        linked(b"CONST123", -4, type_=4),
        linked(b"CONST123", -4, offset=5),
    ):
        assert code != changed


def test_a_constant_of_unknown_size_ends_where_the_next_begins() -> None:
    """On x86-64 the addend of type 2 is 4 bytes short of the offset."""
    unbounded = linked(b"CONST123", -4, flags=2)
    assert (
        unbounded
        == linked(b"OTHER678CONST123", 4, flags=2)
        == linked(b"CONST123OTHER678", -4, flags=2, second_addend=4)
    )
    assert unbounded != linked(b"CONST123OTHER678", -4, flags=2)


def test_relocations_that_cannot_be_are_refused_and_hidden_ones_leave_the_code_unknown() -> (
    None
):
    with pytest.raises(MalformedBinary, match="a constant of 8 bytes at offset 16"):
        linked(b"CONST123", 12)
    with pytest.raises(MalformedBinary, match="no symbol 77"):
        linked(b"CONST123", -4, to=77)
    assert linked(b"CONST123", -4, kind=9) == {
        "kernel": EntryPoint("kernel", code_bytes=24)
    }


# Code objects of AMD GPUs.


HSACO = fixture("dense.rocm.hsaco")


def kernels(data: bytes = HSACO) -> tuple[EntryPoint, ...]:
    return CODE_OBJECT.read(data).entry_points


def patched(old: bytes, new: bytes) -> bytes:
    assert old in HSACO and len(old) == len(new)
    return HSACO.replace(old, new)


def test_kernels_are_those_of_readelf() -> None:
    notes = run("llvm-readelf", "--notes", "dense.rocm.hsaco")
    for field, key in FIELDS.items():
        figures = [
            int(figure) for figure in re.findall(rf"{re.escape(key)}: +(\d+)", notes)
        ]
        assert [getattr(entry, field) for entry in kernels()] == figures
    assert [entry.name for entry in kernels()] == re.findall(
        r"^    \.name: +(\S+)", notes, re.M
    )
    symbols = run("readelf", "-sW", "dense.rocm.hsaco")
    sizes = {
        name: int(size)
        for size, name in re.findall(
            r" (\d+) FUNC +GLOBAL PROTECTED +\d+ (\S+)$", symbols, re.M
        )
    }
    assert {entry.name: entry.code_bytes for entry in kernels()} == sizes


@pytest.mark.parametrize("suffix", ["", ".kd"])
@pytest.mark.parametrize("offset", [0, 48, 63])
def test_code_and_descriptor_count_but_neither_names_nor_the_place_of_the_code(
    suffix: str, offset: int
) -> None:
    before = [entry.code for entry in kernels()]
    start, _ = place(HSACO, f"{MATMUL}{suffix}")
    first, second = (entry.code for entry in kernels(flipped(HSACO, start + offset)))
    assert first not in before and second == before[1] != before[0]
    place_of_the_code = flipped(HSACO, place(HSACO, f"{MATMUL}.kd")[0] + 16)
    for same in (patched(b"main_dispatch_0_", b"main_dispatch_7_"), place_of_the_code):
        assert [entry.code for entry in kernels(same)] == before


def test_what_the_metadata_does_not_say_is_none() -> None:
    entries = kernels(patched(b".kd\0", b".xy\0"))
    assert {entry.code for entry in entries} == {None} and all(
        entry.code_bytes for entry in entries
    )
    entry = kernels(patched(b".vgpr_spill_count", b".some_other_thing"))[0]
    assert (entry.vgpr_spills, entry.sgpr_spills) == (None, 0)
    assert (
        kernels(
            patched(b".private_segment_fixed_size", b".xrivate_segment_fixed_size")
        )[0].stack_bytes
        is None
    )


def test_a_private_segment_shows() -> None:
    data = patched(
        b"\xbb.private_segment_fixed_size\x00", b"\xbb.private_segment_fixed_size\x40"
    )
    assert [entry.stack_bytes for entry in kernels(data)] == [64, 64]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"AMDGPU\0", b"AMDGPX\0", "no AMDGPU metadata note"),
        (b"amdhsa.kernels", b"amdhsa.colonel", "metadata without a list of kernels"),
        (
            b"\xbb.private_segment_fixed_size\x00",
            b"\xbb.private_segment_fixed_size\xff",
            "fixed_size is '-1'",
        ),
        (
            b"\xb3.uses_dynamic_stack\xc2",
            b"\xb3.uses_dynamic_stack\xc1",
            "metadata is not msgpack",
        ),
        (b"\xa5.name", b"\xa5.nome", "a kernel without a name"),
    ],
)
def test_damaged_metadata_is_refused(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(MalformedBinary, match=message):
        kernels(patched(old, new))


def note(packed: bytes) -> Reading:
    """Read the fixture with other metadata in its note."""
    contents = HSACO.index(b"AMDGPU\0\0") + 8
    size = int.from_bytes(HSACO[contents - 16 : contents - 12], "little")
    assert len(packed) <= size
    head = len(packed).to_bytes(4, "little") + HSACO[contents - 12 : contents]
    return CODE_OBJECT.read(
        HSACO[: contents - 16]
        + head
        + packed.ljust(size, b"\0")
        + HSACO[contents + size :]
    )


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [2**53 + 1, 2**64 - 1])
def test_a_figure_that_a_snapshot_cannot_state_is_refused(
    field: str, number: int
) -> None:
    kernel = {".name": "k", FIELDS[field]: number}
    with pytest.raises(
        MalformedBinary, match=f"^k: {field.replace('_', ' ')} out of range"
    ):
        note(msgpack.packb({"amdhsa.kernels": [kernel]}))
    kernel[FIELDS[field]] = 2**53
    assert (
        getattr(
            note(msgpack.packb({"amdhsa.kernels": [kernel]})).entry_points[0], field
        )
        == 2**53
    )


def test_metadata_that_would_cost_much_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for packed in (
        b"\x81\xae" + b"amdhsa.kernels" + b"\xdd\xff\xff\xff\xff",
        b"\x91" * 1400 + b"\xc0",
    ):
        with pytest.raises(MalformedBinary, match="not msgpack"):
            note(packed)
    monkeypatch.setattr("bot.readers.code_object.MAX_METADATA_BYTES", 100)
    with pytest.raises(MalformedBinary, match="metadata of 101 bytes"):
        note(bytes(101))


KEYS = st.sampled_from(["amdhsa.kernels", ".name", *FIELDS.values()])
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)


@given(
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
        max_leaves=12,
    )
)
def test_any_metadata(metadata: Any) -> None:
    outcome(lambda _: note(msgpack.packb(metadata)), HSACO)


# Cubins and what ptxas prints of them.


NAME = "dense.cuda.cubin"
SAID = (BINARIES / "dense.cuda.ptxas.txt").read_text()
SPILLED = """ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 256 bytes smem, 384 bytes cmem[0]
ptxas info    : Compile time = 1.894 ms
ptxas info    : Function properties for helper
    0 bytes stack frame, 2 bytes spill stores, 3 bytes spill loads
"""


def assembled(message: str) -> Any:
    return read_assembled(Assembled(fixture(NAME), message))


def test_machine_code_and_registers_are_those_of_readelf() -> None:
    """Up to sm_89 the count of registers stands in the section's `sh_info`, too.

    Helpers of the assembler's own stand behind the kernel, in its section.
    """
    rows = re.findall(
        r"\] \.text\.(\S+) +PROGBITS +\S+ \S+ (\S+) \d+ +AXo? +\d+ +(\d+)",
        run("readelf", "-SW", NAME),
    )
    module = assembled(SAID)
    assert {
        code.name: (code.sass_bytes, code.registers) for code in module.entry_points
    } == {name: (int(size, 16), int(info) >> 24) for name, size, info in rows}
    assert module.parts["text"] == sum(int(size, 16) for _, size, _ in rows) > 1000
    assert {entry.name for entry in CUBIN.read(fixture(NAME)).entry_points} == {
        MATMUL,
        REDUCTION,
    }


def test_registers_and_spills_of_the_print() -> None:
    entries = {
        code.name: code
        for code in assembled(SPILLED.replace("'k'", "'main'") + SAID).entry_points
    }
    assert entries["k"] == EntryPoint("k", registers=255, spill_bytes=16)
    assert entries["helper"] == EntryPoint("helper", spill_bytes=5)
    with pytest.raises(
        MalformedBinary, match="ptxas prints nothing about 'main_dispatch_"
    ):
        assembled(SAID.partition("Used")[0])
    for digits in (16, 400):
        with pytest.raises(MalformedBinary, match="in an unknown form"):
            assembled(SPILLED.replace("12 bytes", f"{'9' * digits} bytes") + SAID)


@given(st.text(max_size=200), st.sampled_from(SPILLED.splitlines()))
def test_any_print_is_read_or_refused(noise: str, line: str) -> None:
    try:
        assembled(f"{noise}\n{line}\n{noise}{SAID}")
    except MalformedBinary as error:
        assert error.line.isprintable()


def test_the_modules_of_an_artifact_and_the_device_that_goes_to_the_command_line_of_the_assembler() -> (
    None
):
    (module,) = ptx_modules(fixture("dense.cuda.vmfb"))
    assert (module.device, module.text) == (
        "sm_80",
        fixture("dense.cuda.ptx").rstrip(b"\0"),
    )
    assert (
        ptx_modules(fixture("dense.vulkan-spirv.vmfb"))
        == ptx_modules(fixture("dense.rocm.vmfb"))
        == ()
    )
    head = b".version 8.0\n"
    tail = b"\n.address_size 64"
    for line in (
        b".target sm_80",
        b".target\tsm_90a, texmode_independent",
        b"  .target sm_120 ",
    ):
        assert device_of(head + line + tail) in ("sm_80", "sm_90a", "sm_120")
    for line in (
        b"",
        b".target",
        b".target compute_80",
        b".target sm_80x9",
        b".target sm_80 --help",
    ):
        with pytest.raises(MalformedBinary, match=r"no \.target"):
            device_of(head + line + tail)
