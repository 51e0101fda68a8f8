"""What holds of every reader: real binaries beside their goldens.

Damage is refused; time is linear in any file.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import flatbuffers
import msgpack
import pytest
from elf_files import (
    ALLOC,
    EXECUTE,
    FUNCTION,
    NOTE,
    OBJECT,
    PROGBITS,
    RELA,
    STRTAB,
    SYMTAB,
    Part,
    elf_file,
    relocation,
    symbol,
    tiny_object,
)
from growth import LINEAR, cpu_growth
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import (
    BINARIES,
    Read,
    check_flips,
    check_golden,
    check_truncations,
    fixture,
    outcome,
)
from test_artifact import PAYLOADS, containers, table, vector
from test_spirv import TYPES, V1_3, VARIABLE, WORKGROUP, entry, function, module

from bot.core.reading import Reading
from bot.errors import MalformedBinary
from bot.readers.artifact import (
    EMBEDDED,
    READERS,
    is_executable,
    read_artifact,
    read_executable,
)
from bot.readers.code_object import CODE_OBJECT, EM_AMDGPU
from bot.readers.container import CONTAINER, LAYOUTS
from bot.readers.cubin import CUBIN
from bot.readers.elf import ELF
from bot.readers.metal import METAL, METAL_MAGIC
from bot.readers.object_code import function_codes
from bot.readers.ptx import PTX
from bot.readers.spirv import SPIRV
from bot.readers.vm_module import VM_MODULE, parse_module

GOLDENS: dict[Callable[[bytes], Any], tuple[str, ...]] = {
    ELF.read: tuple(
        f"dense.llvm-cpu-{name}"
        for name in ("x86_64.so", "aarch64.so", "riscv64.so", "aarch64.o")
    ),
    CODE_OBJECT.read: ("dense.rocm.hsaco",),
    CUBIN.read: ("dense.cuda.cubin",),
    PTX.read: ("dense.cuda.ptx", "pointwise.cuda.ptx"),
    SPIRV.read: ("dense.vulkan-spirv.0.spv", "dense.vulkan-spirv.1.spv"),
    METAL.read: ("dense.metal-spirv.0.metal", "dense.metal-spirv.1.metal"),
    VM_MODULE.read: ("dense.vmvx.module",),
    read_artifact: tuple(sorted(path.name for path in BINARIES.glob("*.vmfb"))),
}


@pytest.mark.parametrize(
    ("read", "name"),
    [(read, name) for read, names in GOLDENS.items() for name in names],
)
def test_golden(read: Callable[[bytes], Any], name: str) -> None:
    """And the reader is the one that accepts it, where an artifact has such bytes.

    Code objects are ELF, too.
    """
    reading = read(fixture(name))
    check_golden(name, reading)
    if read not in (read_artifact, CUBIN.read):
        assert read_executable(fixture(name)).format == reading.format
        accepting = [reader for reader in READERS if reader.accepts(fixture(name))]
        assert len(accepting) == (2 if read == CODE_OBJECT.read else 1)
        assert is_executable(fixture(name)) == (accepting[0] in EMBEDDED), (
            "other modules may be constants"
        )


class Damaged(NamedTuple):
    """What is damaged, how many of its cuts are refused at least, and how many of its rounds of flips."""

    read: Read
    data: bytes
    cuts: float
    flips: int
    rounds: int = 1500


CONTAINERS = {target: next(containers(target)) for target in PAYLOADS}
SHADER, WORDS, KERNEL_TEXT = (
    fixture(name)
    for name in (
        "dense.metal-spirv.0.metal",
        "dense.vulkan-spirv.1.spv",
        "pointwise.cuda.ptx",
    )
)
LIBRARY, HSACO, VM = (
    fixture(name)
    for name in ("dense.llvm-cpu-aarch64.so", "dense.rocm.hsaco", "dense.vmvx.module")
)
ASSEMBLED = fixture("dense.cuda.cubin")
ARTIFACT = fixture("dense.vmvx.vmfb")


def read_object(data: bytes) -> Reading:
    """The reading, after the codes of its functions."""
    function_codes(data)
    return ELF.read(data)


DAMAGED = {
    "library": Damaged(ELF.read, LIBRARY, len(LIBRARY), 21),
    "object of 64 bits": Damaged(ELF.read, tiny_object(64, "<"), 0, 0),
    "object of 32 bits": Damaged(ELF.read, tiny_object(32, ">"), 0, 0),
    "codes of an object": Damaged(
        read=read_object,
        data=fixture("dense.llvm-cpu-x86_64.o"),
        cuts=0,
        flips=5,
        rounds=500,
    ),
    "codes of another": Damaged(
        read=read_object,
        data=fixture("dense.llvm-cpu-riscv64.o"),
        cuts=0,
        flips=5,
        rounds=300,
    ),
    "cubin": Damaged(
        read=CUBIN.read, data=ASSEMBLED, cuts=len(ASSEMBLED) / 2, flips=5, rounds=300
    ),
    "artifact": Damaged(
        read=read_artifact,
        data=ARTIFACT,
        cuts=max(segment.end for segment in parse_module(ARTIFACT).segments),
        flips=5,
        rounds=500,
    ),
    "artifact of aarch64": Damaged(
        read=read_artifact,
        data=fixture("dense.llvm-cpu-aarch64.vmfb"),
        cuts=0,
        flips=5,
        rounds=500,
    ),
    "artifact of cuda": Damaged(
        read=read_artifact,
        data=fixture("pointwise.cuda.vmfb"),
        cuts=0,
        flips=5,
        rounds=500,
    ),
    "code object": Damaged(CODE_OBJECT.read, HSACO, len(HSACO), 21),
    "VM module": Damaged(VM_MODULE.read, VM, 4 + int.from_bytes(VM[:4], "little"), 21),
    "SPIR-V": Damaged(SPIRV.read, WORDS, len(WORDS) * 0.7, 21),
    "PTX": Damaged(PTX.read, KERNEL_TEXT, len(KERNEL_TEXT) * 0.8, 0),
    "Metal": Damaged(
        METAL.read, SHADER, len(SHADER) - SHADER.index(b"kernel void ") - 99, 0
    ),
    **{
        target: Damaged(read=CONTAINER.read, data=data, cuts=0, flips=11, rounds=500)
        for target, data in CONTAINERS.items()
    },
    "metal-spirv": Damaged(
        read=CONTAINER.read,
        data=CONTAINERS["metal-spirv"],
        cuts=len(CONTAINERS["metal-spirv"]),
        flips=11,
        rounds=500,
    ),
}


LARGE = ("code object", "codes of an object", "cubin", "library", "PTX")
"""The damage of these takes seconds."""


@pytest.mark.parametrize(
    "damage",
    [
        *(damage for damage in DAMAGED if damage not in LARGE),
        *(pytest.param(damage, marks=pytest.mark.slow) for damage in LARGE),
    ],
)
def test_damage_is_refused_or_read_and_nothing_else(damage: str) -> None:
    damaged = DAMAGED[damage]
    assert (
        not damaged.cuts
        or check_truncations(damaged.read, damaged.data) >= damaged.cuts
    )
    assert check_flips(damaged.read, damaged.data, damaged.rounds) >= damaged.flips


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"CDA1", bytes(100), b"\xff" * 100], ids=len
)
def test_unknown_bytes_are_refused_with_their_beginning(data: bytes) -> None:
    """Constants of zeros are common; they are no container of an identifier of zeros."""
    assert not is_executable(data)
    with pytest.raises(
        MalformedBinary, match=f"{len(data)} bytes of an unknown format"
    ):
        read_executable(data)
    for reader in READERS:
        assert data or not reader.accepts(data)
        with pytest.raises(MalformedBinary):
            reader.read(data)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    sized = (len(data) + 8).to_bytes(4, "little") + b"\x08\0\0\0IREE" + data
    reads: list[Read] = [
        *(reader.read for reader in READERS),
        read_executable,
        read_artifact,
    ]
    for read in reads:
        outcome(read, data)
        outcome(read, sized)
    for magic in (*LAYOUTS, b"ABCD"):
        size = len(data).to_bytes(8, "little")
        outcome(
            CONTAINER.read,
            magic + bytes(4) + size + bytes(48) + b"\x08\0\0\0" + magic + data,
        )


# Files made to cost much: twice the file takes about twice the time, or is refused for
# what it claims.


NAMES = b"\0kernel\0kernel.kd\0constant\0"
KERNEL, DESCRIPTOR, CONSTANT = (
    NAMES.index(symbol_name) + 1
    for symbol_name in (b"\0kernel\0", b"\0kernel.kd", b"\0constant")
)


def constants_of_one_place(count: int) -> bytes:
    """One function that refers `count` times to a constant of as many bytes, and half as many times into it."""
    places = b"".join(
        relocation(4 * index, 2) + relocation(4 * index + 2, 3, index)
        for index in range(count)
    )
    symbols = symbol(0, kind=0, section=0, value=0, size=0) + symbol(
        KERNEL, kind=FUNCTION, section=1, value=0, size=4 * count
    )
    symbols += symbol(
        CONSTANT, kind=OBJECT, section=2, value=0, size=8 * count
    ) + symbol(0, kind=3, section=2, value=0, size=0)
    code = Part(PROGBITS, bytes(4 * count), ALLOC | EXECUTE)
    data = Part(PROGBITS, bytes(8 * count), ALLOC)
    return elf_file(
        [
            code,
            data,
            Part(type=RELA, data=places, flags=0, link=4, info=1),
            Part(type=SYMTAB, data=symbols, flags=0, link=5, info=1),
            Part(STRTAB, NAMES),
        ]
    )


def constants_that_overlap(count: int) -> bytes:
    """Constants of `count` names, each of them from its own place to the end of one section."""
    places = b"".join(relocation(4 * index, 2 + index) for index in range(count))
    symbols = symbol(0, kind=0, section=0, value=0, size=0) + symbol(
        KERNEL, kind=FUNCTION, section=1, value=0, size=4 * count
    )
    symbols += b"".join(
        symbol(CONSTANT, kind=OBJECT, section=2, value=index, size=400 * count - index)
        for index in range(count)
    )
    code = Part(PROGBITS, bytes(4 * count), ALLOC | EXECUTE)
    data = Part(PROGBITS, bytes(400 * count), ALLOC)
    return elf_file(
        [
            code,
            data,
            Part(type=RELA, data=places, flags=0, link=4, info=1),
            Part(type=SYMTAB, data=symbols, flags=0, link=5, info=1),
            Part(STRTAB, NAMES),
        ]
    )


def functions_that_overlap(count: int) -> bytes:
    symbols = b"".join(
        symbol(KERNEL, kind=FUNCTION, section=1, value=0, size=400 * count)
        for _ in range(count)
    )
    code = Part(PROGBITS, bytes(400 * count), ALLOC | EXECUTE)
    return elf_file(
        [
            code,
            Part(type=SYMTAB, data=symbols, flags=0, link=3, info=0),
            Part(STRTAB, NAMES),
        ]
    )


def many_sections(count: int) -> bytes:
    """`count` sections, with relocations for each."""
    texts = [Part(PROGBITS, b"\xc3", ALLOC) for _ in range(count)]
    places = [
        Part(type=RELA, data=relocation(0, 0), flags=0, link=0, info=1 + index)
        for index in range(count)
    ]
    symbols = Part(
        type=SYMTAB,
        data=symbol(0, kind=0, section=0, value=0, size=0),
        flags=0,
        link=2 * count + 2,
        info=1,
    )
    return elf_file([*texts, *places, symbols, Part(STRTAB, NAMES)])


def sections_of_one_place(count: int) -> bytes:
    places = Part(type=RELA, data=relocation(0, 0) * count, flags=0, link=0, info=1)
    again = [
        Part(type=RELA, data=places.data, flags=0, link=0, info=1, at=1)
        for _ in range(count)
    ]
    return elf_file([Part(PROGBITS, b"\xc3", ALLOC), places, *again])


def kernels(count: int, sections: int, code_bytes: int) -> bytes:
    """A code object whose metadata has `count` kernels, all of one name.

    Its code is in the last section.
    """
    packed = msgpack.packb({"amdhsa.kernels": [{".name": "kernel"}] * count})
    note = (
        len(b"AMDGPU\0").to_bytes(4, "little")
        + len(packed).to_bytes(4, "little")
        + (32).to_bytes(4, "little")
    )
    note += b"AMDGPU\0\0" + packed
    code_section = 4 + sections
    symbols = symbol(
        KERNEL, kind=FUNCTION, section=code_section, value=0, size=code_bytes
    ) + symbol(DESCRIPTOR, kind=OBJECT, section=code_section, value=0, size=64)
    head = [
        Part(NOTE, note),
        Part(type=SYMTAB, data=symbols, flags=0, link=3, info=0),
        Part(STRTAB, NAMES),
    ]
    empty_sections = [Part(PROGBITS, b"\0", ALLOC) for _ in range(sections)]
    code = Part(PROGBITS, bytes(max(code_bytes, 64)), ALLOC | EXECUTE)
    return elf_file([*head, *empty_sections, code], int.from_bytes(EM_AMDGPU, "little"))


def exports_of_one_function(count: int) -> bytes:
    builder = flatbuffers.Builder(1024)
    exports = vector(builder, [table(builder, {0: builder.CreateString("f")})] * count)
    code = builder.CreateByteVector(bytes(400 * count))
    descriptors = builder.CreateByteVector(
        (0).to_bytes(4, "little") + (400 * count).to_bytes(4, "little") + bytes(12)
    )
    builder.Finish(
        table(builder, {7: exports, 12: descriptors, 14: code}), file_identifier=b"IREE"
    )
    data = bytearray(builder.Output())
    position = data.index(
        (20).to_bytes(4, "little") + bytes(4) + (400 * count).to_bytes(4, "little")
    )
    # one descriptor of 20 bytes
    data[position : position + 4] = (1).to_bytes(4, "little")
    return len(data).to_bytes(4, "little") + bytes(data)


def code_of_one_function(count: int) -> bytes:
    """Ten bytes of code each: `movabs rax, …`."""
    code = bytes.fromhex("48b80102030405060708") * count
    symbols = symbol(0, kind=0, section=0, value=0, size=0) + symbol(
        KERNEL, kind=FUNCTION, section=1, value=0, size=len(code)
    )
    parts = [
        Part(PROGBITS, code, ALLOC | EXECUTE),
        Part(type=SYMTAB, data=symbols, flags=0, link=3, info=1),
        Part(STRTAB, NAMES),
    ]
    return elf_file(parts)


def ptx(body: bytes) -> bytes:
    return b".version 7.6\n.entry k() { " + body + b" }\n"


def metal(body: bytes) -> bytes:
    return METAL_MAGIC + b"\nkernel void k() { " + body + b" }\n"


STATEMENT = b"$L__BB0_1: @%p1 bra $L__BB0_1; ld.global.v4.f32 {%f1}, [%rd1];\n"


def repeated(piece: bytes, make: Callable[[bytes], bytes]) -> Callable[[int], bytes]:
    return lambda size: make(piece * (size // len(piece)))


def many_of_ptx(size: int) -> bytes:
    arrays = b"".join(b".shared .b8 a%d[4];\n" % number for number in range(size))
    return b".version 7.6\n" + arrays + b".entry k() { a7 }\n" * size


def many_of_spirv(size: int) -> bytes:
    variables = [(VARIABLE, 4, 100 + number, WORKGROUP) for number in range(size)]
    return module(V1_3, *[entry(20, "k")] * size, *TYPES, *variables, *function(20))


def entries_of_one_function(size: int) -> bytes:
    return module(V1_3, *[entry(20, "k")] * size, *function(20, *[(1,)] * 20 * size))


def declared(size: int, piece: str) -> bytes:
    return metal(
        b"threadgroup "
        + b"spvUnsafeArray<" * (size // 4)
        + piece.encode() * size
        + b";"
    )


PIECES = (
    *(
        b".func (",
        b".entry k(){}",
        b".shared .b8 x[4];",
        b".const x =",
        b".global x[",
        b".func f(){a}.entry k(){f}",
    ),
    *(b".local", b".visible ", b".entry a {x.shared .b8 y;}"),
)
METAL_PIECES = (
    b"kernel void k(){}",
    b"threadgroup ",
    b"struct a{float x;};",
    b"kernel  ",
    b"threadgroup float x;",
)
DECLARED = ("spvUnsafeArray<", "float<x,1> ", "a ", "[1]", "<,1", "::", "=", ", 1")
Hostile = tuple[Callable[[int], bytes], Callable[[bytes], object], int]
HOSTILE: dict[str, Hostile] = {
    "constants of one place": (constants_of_one_place, function_codes, 6000),
    "constants that overlap": (constants_that_overlap, function_codes, 500),
    "functions that overlap": (functions_that_overlap, function_codes, 500),
    "many sections": (many_sections, function_codes, 6000),
    "sections of one place": (sections_of_one_place, function_codes, 1000),
    "sections of one place, as an executable": (sections_of_one_place, ELF.read, 1000),
    "code of one function": (code_of_one_function, function_codes, 6000),
    "kernels and sections": (lambda n: kernels(n, n, 64), CODE_OBJECT.read, 3000),
    "kernels of one name": (lambda n: kernels(n, 0, 400 * n), CODE_OBJECT.read, 2000),
    "exports of one function": (exports_of_one_function, VM_MODULE.read, 2000),
    "entry points and variables": (many_of_spirv, SPIRV.read, 2000),
    "entry points of one function": (entries_of_one_function, SPIRV.read, 2000),
    "kernels and arrays": (many_of_ptx, PTX.read, 2000),
    "an extent without its end": (
        lambda n: ptx(b".shared .b8 x[" + b" " * n + b";"),
        PTX.read,
        2000,
    ),
    "blanks between words of PTX": (
        *(
            lambda n: ptx(
                b".shared" + b" " * n + b".align" + b" " * n + b"; .visible" + b" " * n
            ),
            PTX.read,
            20_000,
        ),
    ),
    "a long name in PTX": (
        *(
            lambda n: (
                ptx(b"")
                .replace(b"k()", b"a" * n + b"()")
                .replace(b"{", b"{" + b"a" * n * 3)
            ),
            PTX.read,
            20_000,
        ),
    ),
    "statements of PTX": (lambda n: ptx(STATEMENT * n), PTX.read, 2000),
    "labels without their end": (
        lambda n: ptx(b"a" * n + b" " * n + b"\n" * n + b"9" * n),
        PTX.read,
        20_000,
    ),
    "suffixes of one opcode": (
        lambda n: ptx(b"ld" + b".v4" * n + b":" * n + b"@%p " * n),
        PTX.read,
        20_000,
    ),
    "threadgroup and blanks": (
        lambda n: metal(b"threadgroup" + b" " * n),
        METAL.read,
        450,
    ),
    "threadgroup and words": (
        lambda n: metal(b"threadgroup x " * n),
        METAL.read,
        10_000,
    ),
    "brackets and blanks": (
        lambda n: metal((b"[[" + b" " * 50) * (n // 50) + b"[[" + b" " * n),
        METAL.read,
        10_000,
    ),
    **{
        f"PTX of {piece!r}": (
            repeated(piece, b".version 7.6\n".__add__),
            PTX.read,
            50_000,
        )
        for piece in PIECES
    },
    **{
        f"Metal of {piece!r}": (repeated(piece, metal), METAL.read, 50_000)
        for piece in METAL_PIECES
    },
    **{
        f"Metal around {piece!r}": (
            repeated(piece, (METAL_MAGIC + b"\n").__add__),
            METAL.read,
            50_000,
        )
        for piece in METAL_PIECES
    },
    **{
        f"a declaration of {declaration!r}": (
            partial(declared, piece=declaration),
            METAL.read,
            20,
        )
        for declaration in DECLARED
    },
}
"""What the file is made of → how to make one of a size, its reader, and the size to begin with."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_twice_the_file_takes_about_twice_the_time(kind: str) -> None:
    make, read, size = HOSTILE[kind]

    def reading(data: bytes) -> None:
        # a pattern of each name is compiled every time: of a small file all would fit
        # into the cache
        re.purge()
        with contextlib.suppress(MalformedBinary):
            read(data)

    assert cpu_growth(make, reading, size) < LINEAR


class CountedBytes(bytes):
    """Bytes that count how many bytes their slices copy."""

    copied_bytes = 0

    def __getitem__(self, place: Any) -> Any:
        """Return a byte or a slice."""
        piece = super().__getitem__(place)
        if isinstance(place, slice):
            self.copied_bytes += len(piece)
        return piece


def test_the_code_of_a_function_is_not_copied_to_see_where_it_is() -> None:
    """The copies would take quadratic time: each of the functions is the whole section."""

    def copied_bytes(count: int) -> int:
        data = CountedBytes(functions_that_overlap(count))
        with pytest.raises(MalformedBinary):
            function_codes(data)
        return data.copied_bytes

    few = copied_bytes(500)
    assert few
    assert copied_bytes(4_000) <= 8.5 * few


REPEATED = (
    *(
        "constants that overlap",
        "functions that overlap",
        "kernels of one name",
        "exports of one function",
    ),
    "entry points of one function",
)


@pytest.mark.parametrize("kind", REPEATED)
def test_bytes_that_are_named_over_and_over_are_refused(kind: str) -> None:
    make, read, size = HOSTILE[kind]
    with pytest.raises(
        MalformedBinary, match="its tables name the same bytes several times"
    ):
        read(make(size))
    assert read(make(20))


def test_a_constant_that_many_relocations_name_is_read_once() -> None:
    code = function_codes(constants_of_one_place(3000))["kernel"]
    assert code.code is not None and code.code_bytes == 12_000
    changed = bytearray(constants_of_one_place(3000))
    changed[64 + 12_000 + 17] ^= 1
    assert function_codes(bytes(changed))["kernel"].code != code.code
    with pytest.raises(MalformedBinary, match="two parts share the byte"):
        ELF.read(sections_of_one_place(1))


@pytest.mark.parametrize(
    "path", sorted(BINARIES.glob("*.o")), ids=lambda path: path.name
)
def test_real_objects_stay_far_below_the_budget(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.readers.binary.WORK_PER_BYTE", 4)
    assert function_codes(path.read_bytes())
