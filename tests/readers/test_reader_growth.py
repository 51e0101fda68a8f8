"""Readers of files made to cost much: twice the file takes about twice the time, or is refused for what it claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
)
from growth import LINEAR, cpu_growth
from reader_checks import BINARIES

from bot.errors import MalformedBinary
from bot.readers import elf, hsaco, msl, ptx, vm_module
from bot.readers.hsaco import EM_AMDGPU
from bot.readers.msl import MAGIC
from bot.readers.object_code import function_codes

NAMES = b"\0kernel\0kernel.kd\0constant\0"
KERNEL, DESCRIPTOR, CONSTANT = (NAMES.index(each) + 1 for each in (b"\0kernel\0", b"\0kernel.kd", b"\0constant"))
PTX = b".version 7.6\n.entry k() { %b }\n"


def constants_of_one_place(count: int) -> bytes:
    """One function that refers `count` times to a constant of as many bytes, and half as many times into it."""
    places = b"".join(relocation(4 * at, 2) + relocation(4 * at + 2, 3, at) for at in range(count))
    symbols = symbol(0, 0, 0, 0, 0) + symbol(KERNEL, FUNCTION, 1, 0, 4 * count)
    symbols += symbol(CONSTANT, OBJECT, 2, 0, 8 * count) + symbol(0, 3, 2, 0, 0)
    code, data = Part(PROGBITS, bytes(4 * count), ALLOC | EXECUTE), Part(PROGBITS, bytes(8 * count), ALLOC)
    return elf_file([code, data, Part(RELA, places, 0, 4, 1), Part(SYMTAB, symbols, 0, 5, 1), Part(STRTAB, NAMES)])


def constants_that_overlap(count: int) -> bytes:
    """Constants of `count` names, each of them from its own place to the end of one section."""
    places = b"".join(relocation(4 * at, 2 + at) for at in range(count))
    symbols = symbol(0, 0, 0, 0, 0) + symbol(KERNEL, FUNCTION, 1, 0, 4 * count)
    symbols += b"".join(symbol(CONSTANT, OBJECT, 2, at, 400 * count - at) for at in range(count))
    code, data = Part(PROGBITS, bytes(4 * count), ALLOC | EXECUTE), Part(PROGBITS, bytes(400 * count), ALLOC)
    return elf_file([code, data, Part(RELA, places, 0, 4, 1), Part(SYMTAB, symbols, 0, 5, 1), Part(STRTAB, NAMES)])


def functions_that_overlap(count: int) -> bytes:
    symbols = b"".join(symbol(KERNEL, FUNCTION, 1, 0, 400 * count) for _ in range(count))
    code = Part(PROGBITS, bytes(400 * count), ALLOC | EXECUTE)
    return elf_file([code, Part(SYMTAB, symbols, 0, 3, 0), Part(STRTAB, NAMES)])


def many_sections(count: int) -> bytes:
    """`count` sections, with relocations for each."""
    texts = [Part(PROGBITS, b"\xc3", ALLOC) for _ in range(count)]
    places = [Part(RELA, relocation(0, 0), 0, 0, 1 + at) for at in range(count)]
    symbols = Part(SYMTAB, symbol(0, 0, 0, 0, 0), 0, 2 * count + 2, 1)
    return elf_file([*texts, *places, symbols, Part(STRTAB, NAMES)])


def sections_of_one_place(count: int) -> bytes:
    places = Part(RELA, relocation(0, 0) * count, 0, 0, 1)
    again = [Part(RELA, places.data, 0, 0, 1, at=1) for _ in range(count)]
    return elf_file([Part(PROGBITS, b"\xc3", ALLOC), places, *again])


def kernels(count: int, sections: int, code_bytes: int) -> bytes:
    """A code object whose metadata has `count` kernels, all of one name; its code is in the last section."""
    packed = msgpack.packb({"amdhsa.kernels": [{".name": "kernel"}] * count})
    note = len(b"AMDGPU\0").to_bytes(4, "little") + len(packed).to_bytes(4, "little") + (32).to_bytes(4, "little")
    note += b"AMDGPU\0\0" + packed
    own = 4 + sections
    symbols = symbol(KERNEL, FUNCTION, own, 0, code_bytes) + symbol(DESCRIPTOR, OBJECT, own, 0, 64)
    head = [Part(NOTE, note), Part(SYMTAB, symbols, 0, 3, 0), Part(STRTAB, NAMES)]
    others = [Part(PROGBITS, b"\0", ALLOC) for _ in range(sections)]
    code = Part(PROGBITS, bytes(max(code_bytes, 64)), ALLOC | EXECUTE)
    return elf_file([*head, *others, code], int.from_bytes(EM_AMDGPU, "little"))


def exports_of_one_function(count: int) -> bytes:
    builder = flatbuffers.Builder(1024)
    name = builder.CreateString("f")
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    export = builder.EndObject()
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(export)
    exports = builder.EndVector()
    code = builder.CreateByteVector(bytes(400 * count))
    descriptors = builder.CreateByteVector((0).to_bytes(4, "little") + (400 * count).to_bytes(4, "little") + bytes(12))
    builder.StartObject(16)
    for slot, offset in ((7, exports), (12, descriptors), (14, code)):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"IREE")
    data = bytearray(builder.Output())
    at = data.index((20).to_bytes(4, "little") + bytes(4) + (400 * count).to_bytes(4, "little"))
    data[at : at + 4] = (1).to_bytes(4, "little")  # one descriptor of 20 bytes
    return len(data).to_bytes(4, "little") + bytes(data)


def ptx_open_extent(count: int) -> bytes:
    return PTX % (b".shared .b8 x[" + b" " * count + b";")


def ptx_blanks(count: int) -> bytes:
    return PTX % (b".shared" + b" " * count + b".align" + b" " * count + b"; .visible" + b" " * count)


def ptx_long_name(count: int) -> bytes:
    name = b"a" * count
    return b".version 7.6\n.entry " + name + b"() { " + name * 3 + b" }\n"


def ptx_statements(count: int) -> bytes:
    return PTX % (b"$L__BB0_1: @%p1 bra $L__BB0_1; ld.global.v4.f32 {%f1}, [%rd1];\n" * count)


def ptx_labels_without_end(count: int) -> bytes:
    return PTX % (b"a" * count + b" " * count + b"\n" * count + b"9" * count)


def ptx_suffixes(count: int) -> bytes:
    return PTX % (b"ld" + b".v4" * count + b":" * count + b"@%p " * count)


def code_of_one_function(count: int) -> bytes:
    """Ten bytes of code each: `movabs rax, …`."""
    code = bytes.fromhex("48b80102030405060708") * count
    symbols = symbol(0, 0, 0, 0, 0) + symbol(KERNEL, FUNCTION, 1, 0, len(code))
    parts = [Part(PROGBITS, code, ALLOC | EXECUTE), Part(SYMTAB, symbols, 0, 3, 1), Part(STRTAB, NAMES)]
    return elf_file(parts)


def metal(body: bytes) -> bytes:
    return MAGIC + b"\nkernel void k() { " + body + b" }\n"


def metal_blanks(count: int) -> bytes:
    return metal(b"threadgroup" + b" " * count)


def metal_words(count: int) -> bytes:
    return metal(b"threadgroup x " * count)


def metal_attributes(count: int) -> bytes:
    return metal((b"[[" + b" " * 50) * (count // 50) + b"[[" + b" " * count)


def quietly(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def reading(data: bytes) -> object:
        try:
            return read(data)
        except MalformedBinary:
            return None

    return reading


HOSTILE: dict[str, tuple[Callable[[int], bytes], Callable[[bytes], object], int]] = {
    "constants of one place": (constants_of_one_place, function_codes, 6000),
    "constants that overlap": (constants_that_overlap, function_codes, 500),
    "functions that overlap": (functions_that_overlap, function_codes, 500),
    "many sections": (many_sections, function_codes, 6000),
    "sections of one place": (sections_of_one_place, function_codes, 1000),
    "sections of one place, as an executable": (sections_of_one_place, elf.read, 1000),
    "kernels and sections": (lambda n: kernels(n, n, 64), hsaco.read, 3000),
    "kernels of one name": (lambda n: kernels(n, 0, 400 * n), hsaco.read, 2000),
    "exports of one function": (exports_of_one_function, vm_module.read, 2000),
    "an extent without its end": (ptx_open_extent, ptx.read, 2000),
    "blanks between words of PTX": (ptx_blanks, ptx.read, 20_000),
    "a long name in PTX": (ptx_long_name, ptx.read, 20_000),
    "statements of PTX": (ptx_statements, ptx.read, 2000),
    "labels without their end": (ptx_labels_without_end, ptx.read, 20_000),
    "suffixes of one opcode": (ptx_suffixes, ptx.read, 20_000),
    "code of one function": (code_of_one_function, function_codes, 6000),
    "threadgroup and blanks": (metal_blanks, msl.read, 450),
    "threadgroup and words": (metal_words, msl.read, 10_000),
    "brackets and blanks": (metal_attributes, msl.read, 10_000),
}
"""What the file is made of → how to make one of a size, its reader, and the size to begin with."""


@pytest.mark.parametrize("what", HOSTILE)
def test_twice_the_file_takes_about_twice_the_time(what: str) -> None:
    make, read, size = HOSTILE[what]
    assert cpu_growth(make, quietly(read), size) < LINEAR


@pytest.mark.parametrize("what", ["constants that overlap", "functions that overlap", "kernels of one name"])
def test_bytes_that_are_named_over_and_over_are_refused(what: str) -> None:
    make, read, size = HOSTILE[what]
    with pytest.raises(MalformedBinary, match="its tables name the same bytes over and over"):
        read(make(size))
    read(make(20))


def test_exports_that_name_one_function_over_and_over_are_refused() -> None:
    with pytest.raises(MalformedBinary, match="its tables name the same bytes over and over"):
        vm_module.read(exports_of_one_function(2000))
    assert len(vm_module.read(exports_of_one_function(20)).entry_points) == 20


def test_sections_that_share_their_bytes_are_refused() -> None:
    with pytest.raises(MalformedBinary, match="two parts share the byte"):
        elf.read(sections_of_one_place(1))


def test_a_constant_that_many_relocations_name_is_read_once() -> None:
    code = function_codes(constants_of_one_place(3000))["kernel"]
    assert code.code is not None and code.size_bytes == 12_000
    changed = bytearray(constants_of_one_place(3000))
    changed[64 + 12_000 + 17] ^= 1
    assert function_codes(bytes(changed))["kernel"].code != code.code


@pytest.mark.parametrize("path", sorted(BINARIES.glob("*.o")), ids=lambda path: path.name)
def test_real_objects_stay_far_below_the_budget(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.readers.elf.WORK_PER_BYTE", 4)
    assert function_codes(path.read_bytes())
