"""Read ELF files of all machines.

A reading has the bytes of each kind of section, functions as digests, and kernels of
AMD and NVIDIA GPUs.

llvm-cpu makes two of them: a relocatable object that still has its symbols, and the
linked, stripped library inside the artifact. Format: System V ABI, generic part,
chapters "Object Files", "Symbol Table" and "Relocation" (figures of the 32- and 64-bit
layouts), https://gabi.xinuos.com. Headers are parsed by pyelftools; symbols, of which
there are many, in one `struct` sweep.

AMD code objects: "User Guide for AMDGPU Backend", Code Object V3 to V6 metadata: the
note `AMDGPU` of type NT_AMDGPU_METADATA (32) holds a msgpack map whose `amdhsa.kernels`
lists one map per kernel,
https://llvm.org/docs/AMDGPUUsage.html#code-object-v3-metadata. Scratch
(`.private_segment_fixed_size`) and LDS (`.group_segment_fixed_size`) are bytes per
work-item and per workgroup. Each kernel has a descriptor of 64 bytes, the object
`<name>.kd`, with the modes and registers it starts with ("Kernel Descriptor" there).

Cubins: sections `.text.<function>` of machine code (SASS), padded with no-operations to
whole cache lines, as the listings of `cuobjdump -elf` name them
(https://docs.nvidia.com/cuda/cuda-binary-utilities); what else is in the file (names,
symbols, tables for the driver and the debugger) does not run. What `ptxas -v` prints:
"Function properties for" each function, its frame and spills on the next line, and for
an entry point the registers on the one after.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import msgpack
from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from msgspec.structs import replace

from bot.core.reading import Assembled, EntryPoint, Reader, Reading
from bot.errors import ImpossibleBinary, MalformedBinary
from bot.readers.binary import (
    ByteSpan,
    WorkLimit,
    code_digest,
    fingerprint,
    label_sizes,
    require_disjoint,
    span_inside,
)

MAGIC = b"\x7fELF"
MACHINE = slice(18, 20)  # where both layouts have `e_machine`
EM_X86_64 = (62).to_bytes(2, "little")
EM_CUDA = (190).to_bytes(2, "little")
EM_AMDGPU = (224).to_bytes(2, "little")
SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00
SHF_WRITE = 1
SHF_ALLOC = 2
SHF_EXECINSTR = 4
SHF_MERGE = 0x10
SHF_STRINGS = 0x20
SHF_INFO_LINK = 0x40
STT_OBJECT = 1
STT_FUNC = 2
STT_SECTION = 3
LOADER_FUNCTION = "iree_hal_executable_library_query"
"""What the runtime's loader calls in a CPU library; no entry point of the program."""
# symbols may share one long name; longer ones are refused rather than copied for each
# of them
MAX_NAME_BYTES = 1024
HEADER_BYTES = {32: (52, 32, 40), 64: (64, 56, 64)}
"""ELF class → bytes of three headers.

Of the file header, of one program header, of one section header.
"""
SYMBOLS = {32: ("IIIBBH", (0, 1, 2, 3, 5)), 64: ("IBBHQQ", (0, 4, 5, 1, 3))}
"""ELF class → layout of a symbol, and the positions of its fields.

The fields are name, value, size, info and section index.
"""
LABELS = {
    **dict.fromkeys(("SHT_SYMTAB", "SHT_SYMTAB_SHNDX"), "symbols"),
    **dict.fromkeys(
        ("SHT_DYNSYM", "SHT_HASH", "SHT_GNU_HASH", "SHT_DYNAMIC"), "dynamic"
    ),
    **dict.fromkeys(("SHT_RELA", "SHT_REL", "SHT_RELR"), "relocations"),
    "SHT_NOTE": "notes",
}


@dataclass(frozen=True, slots=True)
class Section:
    """One section with bytes in the file."""

    index: int
    type: str  # `SHT_…`, or the number where the type has no name
    flags: int
    span: ByteSpan
    address: int  # where it is mapped; 0 in a relocatable object
    # link, info: index of a symbol table's strings; of the section that relocations are
    # for
    link: int
    info: int
    item_bytes: int  # size of each entry where all have one size

    @property
    def label(self) -> str:
        """The part that the section counts as.

        Its type decides where it says so, else how it is mapped.
        """
        allocated = self.flags & SHF_ALLOC
        if self.type in LABELS:
            return LABELS[self.type]
        if self.type == "SHT_STRTAB":
            if allocated:
                return "dynamic"
            return "symbols"
        if not allocated:
            return "metadata"
        if self.flags & SHF_EXECINSTR:
            return "text"
        if self.flags & SHF_WRITE:
            return "data"
        return "rodata"


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol."""

    name: str  # empty for sections
    value: int  # offset in its section of a relocatable object, else the address
    size_bytes: int
    kind: int
    section: int  # index of its section, or a special one (`SHN_…`)


@dataclass(frozen=True, slots=True)
class Elf:
    """The outline of one file."""

    data: bytes
    bits: int
    byte_order: str  # as `struct` writes it
    # those with bytes in the file, by index; no two share a byte
    sections: Mapping[int, Section]
    parts: dict[str, int]  # label → bytes over all sections and headers

    def symbols(self, kind: int | None = None) -> tuple[Symbol, ...]:
        """Return the symbols of the symbol table by index.

        A file has at most one such table. Of a kind, only the defined ones.
        """
        table = next(
            (
                section
                for section in self.sections.values()
                if section.type == "SHT_SYMTAB"
            ),
            None,
        )
        if table is None:
            return ()
        fields, places = SYMBOLS[self.bits]
        layout = struct.Struct(self.byte_order + fields)
        if table.span.size % layout.size:
            raise MalformedBinary(
                f"a symbol table of {table.span.size} bytes", where="elf"
            )
        strings = self.sections.get(table.link)
        names = strings.span.of(self.data) if strings else b""
        symbols = []
        for row in layout.iter_unpack(table.span.of(self.data)):
            start, value, size, info, section = (row[place] for place in places)
            if kind is None or (
                info & 0xF == kind and SHN_UNDEF < section < SHN_LORESERVE
            ):
                end = names.find(b"\0", start, start + MAX_NAME_BYTES)
                if end < 0:
                    problem = f"a name at offset {start} of {len(names)} bytes of names"
                    raise MalformedBinary(problem, where="elf")
                symbols.append(
                    Symbol(
                        name=names[start:end].decode("utf-8", "replace"),
                        value=value,
                        size_bytes=size,
                        kind=info & 0xF,
                        section=section,
                    )
                )
        return tuple(symbols)

    def require_inside(self, symbol: Symbol) -> None:
        """Raise `MalformedBinary` for a function with bytes outside of its section."""
        if symbol.size_bytes and self.contents(symbol) is None:
            section = self.sections.get(symbol.section)
            room = "a section without bytes in the file"
            if section:
                room = f"a section of {section.span.size:,} bytes"
            problem = (
                f"function {symbol.name[:80]!r} has {symbol.size_bytes:,} bytes in"
                f" {room}"
            )
            raise ImpossibleBinary(problem, where="elf")

    def contents(self, symbol: Symbol) -> bytes | None:
        """Return the bytes that a linked file has for a symbol.

        None where its section has no such bytes.
        """
        section = self.sections.get(symbol.section)
        if (
            section is None
            or not 0
            <= symbol.value - section.address
            <= section.span.size - symbol.size_bytes
        ):
            return None
        start = section.span.start + symbol.value - section.address
        return self.data[start : start + symbol.size_bytes]


def read_elf(data: bytes) -> Reading:
    """Read an ELF file, as parts per kind of section.

    It has an entry point for each function symbol (a stripped library has none).
    """
    elf = parse_elf(data)
    functions = [
        symbol for symbol in elf.symbols(STT_FUNC) if symbol.name != LOADER_FUNCTION
    ]
    for symbol in functions:
        elf.require_inside(symbol)
    entries = tuple(
        EntryPoint(symbol.name, code_bytes=symbol.size_bytes) for symbol in functions
    )
    return Reading(
        format="elf", size_bytes=len(data), parts=elf.parts, entry_points=entries
    )


def parse_elf(data: bytes) -> Elf:
    """Return the outline of a file; raises `MalformedBinary`."""
    try:
        file = ELFFile(BytesIO(data))
        header: Any = file.header
        file_bytes, program_bytes, section_bytes = HEADER_BYTES[file.elfclass]
        if header.e_shoff and header.e_shentsize != section_bytes:
            raise MalformedBinary(
                f"section headers of {header.e_shentsize} bytes", where="elf"
            )
        # Files of more than 65,279 sections, with a count of 0, are not made here and
        # are refused by their residue.
        table = span_inside(
            header.e_shoff,
            size=header.e_shnum * section_bytes,
            whole_bytes=len(data),
            where="elf",
        )
        programs = span_inside(
            header.e_phoff,
            size=header.e_phnum * program_bytes,
            whole_bytes=len(data),
            where="elf",
        )
        sections: dict[int, Section] = {}
        for index, offset in enumerate(range(table.start, table.end, section_bytes)):
            row: Any = struct_parse(
                file.structs.Elf_Shdr, file.stream, stream_pos=offset
            )
            if row.sh_type not in ("SHT_NULL", "SHT_NOBITS") and row.sh_size:
                span = span_inside(
                    row.sh_offset, size=row.sh_size, whole_bytes=len(data), where="elf"
                )
                places = (row.sh_addr, row.sh_link, row.sh_info, row.sh_entsize)
                sections[index] = Section(
                    index, str(row.sh_type), row.sh_flags, span, *places
                )
    except (ELFError, ConstructError) as error:
        raise MalformedBinary(f"no valid ELF: {error}", where="elf") from error
    require_disjoint([section.span for section in sections.values()], "elf")
    labelled = dict.fromkeys((ByteSpan(0, file_bytes), programs, table), "headers")
    labelled |= {section.span: section.label for section in sections.values()}
    order = "<" if file.little_endian else ">"
    return Elf(
        data=data,
        bits=file.elfclass,
        byte_order=order,
        sections=sections,
        parts=label_sizes(labelled, "elf"),
    )


# The code of functions in relocatable objects. What is left out are names and the
# ordinals in them, which move when the program gains a dispatch elsewhere. A function
# is its bytes and its relocations. What a relocation refers to counts by content where
# that is constant data, as constants of all functions share sections in which each has
# a place of its own, and by name where it is another function. The types of relocations
# are numbers of each machine.


ORDINAL = re.compile(r"(?<=_dispatch_)\d+")
"""The number that the compiler counts up in the name of a dispatch.

Such as 12 in `main_dispatch_12_matmul_4x8_f32`.
"""
RELOCATION_FORMAT = {32: ("IIi", 8), 64: ("QQq", 32)}
"""ELF class → the fields of a relocation, and a number of bits.

`r_info` has the symbol that many bits above the type.
"""
X86_RELATIVE = (2, 4)
X86_FIELD_BYTES = 4
"""x86-64 psABI, "Relocation Types".

R_X86_64_PC32 and R_X86_64_PLT32, both of 32-bit fields.
"""
RELOCATION_WORK_BYTES = 32  # what a relocation costs, in bytes read
# constant data that refers to data (a table of tables) is followed this far
MAX_DEPTH = 2


def function_codes(object_bytes: bytes) -> dict[str, EntryPoint]:
    """Return function → size (`st_size`) and digest in a relocatable object.

    Local functions may share a name; they then count together. Raises
    `MalformedBinary`.
    """
    whole = _Object(object_bytes)
    by_name = dict[str, list[Symbol]]()
    for symbol in whole.functions:
        by_name.setdefault(symbol.name, []).append(symbol)
    return {name: whole.code_of(namesakes) for name, namesakes in by_name.items()}


class _Relocation(NamedTuple):
    """One place to fill in.

    It has its offset in its section, how it is filled, and with the address of what.
    """

    offset: int
    type: int
    symbol: Symbol
    addend: int
    bias: int
    """What an addend lacks to be an offset.

    x86-64 counts from the end of the field, which ends the instruction.
    """


_OFFSET = attrgetter("offset")


class _Object:
    """An object's sections by index, and the relocations of each, by rising offset."""

    def __init__(self, data: bytes) -> None:
        self.elf = parse_elf(data)
        self.sections = self.elf.sections
        self.budget = WorkLimit(len(data), "elf")
        # constants by place; by function where they refer to something
        self.known = dict[tuple[object, ...], bytes]()
        self.symbols = self.elf.symbols()
        self.functions = self.elf.symbols(STT_FUNC)
        # section → offsets that a symbol or relocation names
        starts: dict[int, set[int]] = {}
        for symbol in self.symbols:
            starts.setdefault(symbol.section, set()).add(symbol.value)
        self.relocations: dict[int, list[_Relocation]] = {}
        for section in (
            section for section in self.sections.values() if section.type == "SHT_RELA"
        ):
            rows = self.relocations[section.info] = sorted(
                self._relocations(section), key=_OFFSET
            )
            for row in rows:
                if row.symbol.kind == STT_SECTION:
                    starts.setdefault(row.symbol.section, set()).add(
                        row.addend + row.bias
                    )
        self.starts = {section: sorted(offsets) for section, offsets in starts.items()}
        # What a relocation against a section itself means is its first function.
        self.names = {
            symbol.section: symbol.name for symbol in reversed(self.functions)
        }
        # The addends of these are hidden in their bytes.
        self.unknown = {
            section.info
            for section in self.sections.values()
            if section.type == "SHT_REL"
        }

    def _relocations(self, section: Section) -> Iterator[_Relocation]:
        target = self.sections.get(section.info)
        fields, shift = RELOCATION_FORMAT[self.elf.bits]
        layout = struct.Struct(self.elf.byte_order + fields)
        if section.span.size % layout.size:
            raise MalformedBinary(
                f"relocations of {section.span.size} bytes", where="elf"
            )
        if target is None or not target.flags & SHF_ALLOC:
            return
        is_x86 = self.elf.data[MACHINE] == EM_X86_64
        for offset, info, addend in layout.iter_unpack(section.span.of(self.elf.data)):
            symbol = info >> shift
            type_ = info & ((1 << shift) - 1)
            if symbol >= len(self.symbols):
                raise MalformedBinary(f"no symbol {symbol}", where="elf")
            bias = 0
            if is_x86 and type_ in X86_RELATIVE:
                bias = X86_FIELD_BYTES
            yield _Relocation(
                offset=offset,
                type=type_,
                symbol=self.symbols[symbol],
                addend=addend,
                bias=bias,
            )

    def code_of(self, namesakes: list[Symbol]) -> EntryPoint:
        """Size and digest of the functions of one name."""
        name = namesakes[0].name
        size_bytes = sum(symbol.size_bytes for symbol in namesakes)
        for symbol in namesakes:
            self.elf.require_inside(symbol)
            if symbol.section not in self.sections or symbol.section in self.unknown:
                return EntryPoint(name, code_bytes=size_bytes)
        pieces = (
            self._range(
                namesake,
                index=namesake.section,
                start=namesake.value,
                size=namesake.size_bytes,
                depth=0,
            )
            for namesake in namesakes
        )
        return EntryPoint(
            name,
            code_bytes=size_bytes,
            code=code_digest(*chain.from_iterable(pieces)),
        )

    def _range(
        self, function: Symbol, index: int, start: int, size: int, depth: int
    ) -> tuple[bytes, bytes]:
        """Return a part of a section as the function refers to it.

        It has the part's bytes, and its relocations as text.
        """
        first = self.sections[index].span.start + start
        inside = self._inside(index, start, size)
        self.budget.spend(size + RELOCATION_WORK_BYTES * len(inside))
        lines = (
            f"{symbol.offset - start} {symbol.type} {self._target(function, symbol, depth)}\n"
            for symbol in inside
        )
        return self.elf.data[first : first + size], "".join(lines).encode()

    def _inside(self, index: int, start: int, size: int) -> list[_Relocation]:
        relocations = self.relocations.get(index, [])
        ends = (
            bisect_left(relocations, place, key=_OFFSET)
            for place in (start, start + size)
        )
        return relocations[slice(*ends)]

    def _target(self, function: Symbol, relocation: _Relocation, depth: int) -> str:
        symbol = relocation.symbol
        section = self.sections.get(relocation.symbol.section)
        place = symbol.value + relocation.addend
        if symbol.section == function.section and not (
            symbol.kind == STT_FUNC and symbol.name != function.name
        ):
            return f"@{place - function.value:+}"
        if section is None or section.flags & SHF_EXECINSTR or depth == MAX_DEPTH:
            # Without the ordinal: the name as it is in every program that has this
            # dispatch.
            return f"{ORDINAL.sub('', symbol.name or self.names.get(symbol.section, ''))}{place:+}"
        return self._constant(
            function, section=section, relocation=relocation, depth=depth + 1
        )

    def _constant(
        self, function: Symbol, section: Section, relocation: _Relocation, depth: int
    ) -> str:
        """Return the digest of the constant data that a relocation refers to.

        It is made once for all that refer to it. Return as well where in the data.
        """
        symbol = relocation.symbol
        bias = relocation.bias
        start = symbol.value
        size = symbol.size_bytes
        offset = relocation.addend
        if symbol.kind == STT_SECTION:
            start = relocation.addend + bias
            size = 0
            offset = -bias
        if not size and section.flags & SHF_MERGE and not section.flags & SHF_STRINGS:
            size = section.item_bytes
        elif not size:  # nothing tells: all up to the next start
            starts = self.starts[section.index]
            after = bisect_right(starts, start)
            size = max(
                (starts[after] if after < len(starts) else section.span.size) - start, 0
            )
        if not 0 <= start <= section.span.size - size:
            raise MalformedBinary(
                f"a constant of {size} bytes at offset {start} of its section",
                where="elf",
            )
        key: tuple[object, ...] = (section.index, start, size)
        if self._inside(section.index, start, size):
            key = (*key, function, depth)
        if key not in self.known:
            self.known[key] = fingerprint(
                *self._range(
                    function, index=section.index, start=start, size=size, depth=depth
                )
            )
        return f"{self.known[key].hex()}{offset:+}"


# Code objects of AMD GPUs.


NOTE_OWNER = b"AMDGPU\0"
NT_AMDGPU_METADATA = 32
NOTE_HEADER = struct.Struct("<III")
MAX_METADATA_BYTES = 1 << 22
"""The most bytes of metadata that are read.

A kernel takes about 800. One byte of msgpack can become an object of 64, so more is
refused.
"""
# where a kernel descriptor has the distance to the code, which is a matter of layout
ENTRY_OFFSET = slice(16, 24)
FIELDS = {
    "stack_bytes": ".private_segment_fixed_size",
    "workgroup_bytes": ".group_segment_fixed_size",
    "vgprs": ".vgpr_count",
    "sgprs": ".sgpr_count",
    "vgpr_spills": ".vgpr_spill_count",
    "sgpr_spills": ".sgpr_spill_count",
    "agprs": ".agpr_count",
}
"""Field of an entry point → key in a kernel's metadata.

Only gfx90a and later have accumulation registers.
"""


def read_code_object(data: bytes) -> Reading:
    """Read an AMD code object, as parts per kind of section.

    It has an entry point for each kernel of the metadata.
    """
    elf = parse_elf(data)
    symbols = {
        symbol.name: symbol
        for kind in (STT_OBJECT, STT_FUNC)
        for symbol in elf.symbols(kind)
    }
    budget = WorkLimit(len(data), "hsaco")
    entries = tuple(
        _entry_point(elf, kernel=kernel, symbols=symbols, budget=budget)
        for kernel in _kernels(elf)
    )
    return Reading(
        format="hsaco", size_bytes=len(data), parts=elf.parts, entry_points=entries
    )


def _entry_point(
    elf: Elf,
    kernel: Mapping[str, Any],
    symbols: Mapping[str, Symbol],
    budget: WorkLimit,
) -> EntryPoint:
    name = kernel.get(".name")
    values = {field: kernel.get(key) for field, key in FIELDS.items()}
    if not isinstance(name, str):
        raise MalformedBinary("a kernel without a name", where="hsaco")
    for field, value in values.items():
        if value is not None and (type(value) is not int or value < 0):
            raise MalformedBinary(
                f"{FIELDS[field]} is {str(value)[:40]!r}", where="hsaco"
            )
    function = symbols.get(name)
    descriptor = symbols.get(f"{name}.kd")
    machine_code = None
    if function is not None:
        elf.require_inside(function)
        machine_code = elf.contents(function)
    start_state = None
    if descriptor is not None:
        start_state = elf.contents(descriptor)
    code = None
    if machine_code is not None and start_state is not None:
        budget.spend(len(machine_code) + len(start_state))
        code = code_digest(
            machine_code,
            start_state[: ENTRY_OFFSET.start],
            start_state[ENTRY_OFFSET.stop :],
        )
    return EntryPoint(
        name,
        code_bytes=function.size_bytes if function else None,
        code=code,
        **values,
    )


def _kernels(elf: Elf) -> list[Mapping[str, Any]]:
    """Return what the first note of metadata says of each kernel."""
    for section in elf.sections.values():
        data = b""
        if section.type == "SHT_NOTE":
            data = section.span.of(elf.data)
        offset = 0
        while offset + NOTE_HEADER.size <= len(data):
            owner_bytes, content_bytes, kind = NOTE_HEADER.unpack_from(data, offset)
            owner_at = offset + NOTE_HEADER.size
            content_at = owner_at + -(-owner_bytes // 4) * 4
            offset = content_at + -(-content_bytes // 4) * 4
            if content_at + content_bytes > len(data):
                raise MalformedBinary("a note beyond its section", where="hsaco")
            if (
                data[owner_at : owner_at + owner_bytes] != NOTE_OWNER
                or kind != NT_AMDGPU_METADATA
            ):
                continue
            if content_bytes > MAX_METADATA_BYTES:
                raise MalformedBinary(
                    f"metadata of {content_bytes} bytes", where="hsaco"
                )
            try:  # it bounds every claimed count by the length of its input
                metadata = msgpack.unpackb(
                    data[content_at : content_at + content_bytes]
                )
            except (
                ValueError,
                TypeError,
                OverflowError,
                msgpack.UnpackException,
            ) as error:
                raise MalformedBinary(
                    f"metadata is not msgpack: {error}", where="hsaco"
                ) from error
            kernels = None
            if isinstance(metadata, dict):
                kernels = metadata.get("amdhsa.kernels")
            if not isinstance(kernels, list) or not all(
                isinstance(kernel, dict) for kernel in kernels
            ):
                raise MalformedBinary(
                    "metadata without a list of kernels", where="hsaco"
                )
            return kernels
    raise MalformedBinary("no AMDGPU metadata note", where="hsaco")


# Cubins of NVIDIA GPUs.


NV_INFO = ("SHT_LOPROC", str(0x70000000))
ATTRIBUTE = struct.Struct("<BBH")
OF_FUNCTION = struct.Struct("<II")
EIFMT_SVAL = 0x04
EIATTR_FRAME_SIZE = 0x11
EIATTR_REGCOUNT = 0x2F
"""Names of `cuobjdump -elf` in `.nv.info`.

The format of a sized value; frame and registers of a function.
"""
PROPERTIES = re.compile(
    r"Function properties for (\S+)\s*\n"
    r"\s*\d{1,15} bytes stack frame, (\d{1,15}) bytes spill stores, (\d{1,15}) bytes"
    r" spill loads[ \t]*"
    r"(?:\n[^\n]*: Used (\d{1,15}) registers)?"
)


def read_cubin(data: bytes) -> Reading:
    """Read a cubin, as parts per kind of section, with the machine code as `text`.

    It has an entry point for each function that has a section.
    """
    if not CUBIN.accepts(data):
        raise MalformedBinary("not an ELF file for CUDA", where="cubin")
    elf = parse_elf(data)
    by_section = dict[int, list[str]]()
    for symbol in elf.symbols(STT_FUNC):
        section = elf.sections.get(symbol.section)
        # A function's section begins with it: what stands behind it there are its own
        # helpers.
        if (
            section is not None
            and section.flags & SHF_EXECINSTR
            and symbol.value == section.address
        ):
            by_section.setdefault(section.index, []).append(symbol.name)
    counted = {
        names[0]: elf.sections[index].span.of(data)
        for index, names in by_section.items()
        if len(names) == 1
    }
    attributes = _attributes(elf)
    entries = tuple(
        EntryPoint(
            name,
            code_bytes=len(code),
            stack_bytes=attributes.get((name, EIATTR_FRAME_SIZE)),
            code=code_digest(code),
            registers=attributes.get((name, EIATTR_REGCOUNT)),
        )
        for name, code in counted.items()
    )
    return Reading(
        format="cubin", size_bytes=len(data), parts=elf.parts, entry_points=entries
    )


def _attributes(elf: Elf) -> dict[tuple[str, int], int]:
    """Return function and attribute → value.

    These are the attributes of the file that are a number of a function.
    """
    sections = elf.sections.values()
    # `.nv.info.<function>`, which has that flag, tells of one function; `.nv.info` of
    # them all.
    info = next(
        (
            section
            for section in sections
            if section.type in NV_INFO and not section.flags & SHF_INFO_LINK
        ),
        None,
    )
    data = info.span.of(elf.data) if info else b""
    symbols = elf.symbols()
    offset = 0
    values: dict[tuple[str, int], int] = {}
    while offset + ATTRIBUTE.size <= len(data):
        form, kind, size = ATTRIBUTE.unpack_from(data, offset)
        offset += ATTRIBUTE.size
        if form != EIFMT_SVAL:  # its value is the size
            continue
        if size == OF_FUNCTION.size and offset + size <= len(data):
            symbol, value = OF_FUNCTION.unpack_from(data, offset)
            if symbol < len(symbols):
                values[symbols[symbol].name, kind] = value
        offset += size
    return values


def read_assembled(assembled: Assembled) -> Reading:
    """Return what one module became, with all its functions.

    Functions that are only called have no registers of their own.

    Raises `MalformedBinary`, also where cubin and print name different functions.
    """
    reading = read_cubin(assembled.cubin)
    functions = dict[str, EntryPoint]()
    sizes = {entry.name: entry.code_bytes for entry in reading.entry_points}
    rows = PROPERTIES.findall(assembled.said)
    if len(rows) != assembled.said.count("Function properties for "):
        raise MalformedBinary(
            "ptxas prints the properties of a function in an unknown form",
            where="ptxas",
        )
    for name, stores, loads, used in rows:
        registers = int(used) if used else None
        spill_bytes = int(stores) + int(loads)
        functions[name] = EntryPoint(
            name,
            registers=registers,
            spill_bytes=spill_bytes,
            sass_bytes=sizes.get(name),
        )
    if missing := sizes.keys() - functions.keys():
        raise MalformedBinary(
            f"ptxas prints nothing about {min(missing)[:80]!r}", where="cubin"
        )
    return replace(reading, entry_points=tuple(functions.values()))


ELF = Reader(lambda data: data.startswith(MAGIC), read_elf)
"""The reader of ELF files of any machine."""
CODE_OBJECT = Reader(
    lambda data: data.startswith(MAGIC) and data[MACHINE] == EM_AMDGPU, read_code_object
)
CUBIN = Reader(
    lambda data: data.startswith(MAGIC) and data[MACHINE] == EM_CUDA, read_cubin
)
"""The reader of cubins, which no artifact holds: an assembler makes them."""
