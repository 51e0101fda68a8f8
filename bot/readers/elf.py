"""Read the sections and symbols of ELF files of all machines.

llvm-cpu makes two such files: a relocatable object that still has its symbols, and the
linked, stripped library inside the artifact. Format: System V ABI, generic part,
chapters "Object Files" and "Symbol Table" (figures of the 32- and 64-bit layouts),
https://gabi.xinuos.com. Headers are parsed by pyelftools; symbols, of which there are
many, in one `struct` sweep.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from bot.core.reading import EntryPoint, Reader, Reading
from bot.errors import ImpossibleBinary, MalformedBinary
from bot.readers.binary import (
    ByteSpan,
    label_sizes,
    require_disjoint,
    span_inside,
)

MAGIC = b"\x7fELF"
MACHINE = slice(18, 20)  # where both layouts have `e_machine`
SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00
SHF_WRITE = 1
SHF_ALLOC = 2
SHF_EXECINSTR = 4
STT_FUNC = 2
LOADER_FUNCTION = "iree_hal_executable_library_query"
"""The function that the runtime's loader calls in a CPU library.

It is not an entry point of the program.
"""
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
        """Return the part that the section counts as.

        If its type says so, the type decides, else how it is mapped.
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

    def of_type(self, name: str) -> list[Section]:
        """Return the sections of a type (`SHT_…`)."""
        return [section for section in self.sections.values() if section.type == name]

    def symbols(self, kind: int | None = None) -> tuple[Symbol, ...]:
        """Return the symbols of the symbol table by index.

        A file has at most one such table. With a kind, only its defined symbols
        are returned.
        """
        tables = self.of_type("SHT_SYMTAB")
        if not tables:
            return ()
        table = tables[0]
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

    def reading(self, form: str, entries: Iterable[EntryPoint]) -> Reading:
        """Return the reading of the file, with these entry points."""
        return Reading(
            format=form,
            size_bytes=len(self.data),
            parts=self.parts,
            entry_points=tuple(entries),
        )

    def require_inside(self, symbol: Symbol) -> None:
        """Raise `ImpossibleBinary` for a function with bytes outside of its section."""
        if symbol.size_bytes and self._place(symbol) is None:
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

        None if its section has no such bytes.
        """
        start = self._place(symbol)
        if start is None:
            return None
        return self.data[start : start + symbol.size_bytes]

    def _place(self, symbol: Symbol) -> int | None:
        """Return where the bytes of a symbol begin in a linked file.

        None if its section has no such bytes.
        """
        section = self.sections.get(symbol.section)
        if (
            section is None
            or not 0
            <= symbol.value - section.address
            <= section.span.size - symbol.size_bytes
        ):
            return None
        return section.span.start + symbol.value - section.address


def read_elf(data: bytes) -> Reading:
    """Read an ELF file, as parts per kind of section.

    It has an entry point for each function symbol (a stripped library has none).
    """
    elf = parse_elf(data)
    entries = list[EntryPoint]()
    for symbol in elf.symbols(STT_FUNC):
        if symbol.name != LOADER_FUNCTION:
            elf.require_inside(symbol)
            entries.append(EntryPoint(symbol.name, code_bytes=symbol.size_bytes))
    return elf.reading("elf", entries)


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
        # A file of more than 65,279 sections has the count 0 here. No supported compiler
        # makes one. All its bytes but the headers would be unattributed.
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
                sections[index] = Section(
                    index=index,
                    type=str(row.sh_type),
                    flags=row.sh_flags,
                    span=span,
                    address=row.sh_addr,
                    link=row.sh_link,
                    info=row.sh_info,
                    item_bytes=row.sh_entsize,
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


ELF = Reader(lambda data: data.startswith(MAGIC), read_elf)
"""The reader of ELF files of any machine."""
