"""ELF files: bytes per kind of section, and the symbols of functions and data; and byte ranges of any binary.

llvm-cpu makes two of them: a relocatable object that still has its symbols, and the linked, stripped library inside
the artifact. Format: System V ABI, generic part, chapters "Object Files" and "Symbol Table" (figures of the 32- and
64-bit layouts), https://gabi.xinuos.com. Headers are parsed by pyelftools; symbols, of which there are many, in one
`struct` sweep.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from bot.core.reading import EntryPoint, Reading
from bot.errors import MalformedBinary

MAGIC = b"\x7fELF"
MACHINE = slice(18, 20)  # where both layouts have `e_machine`
SHN_UNDEF, SHN_LORESERVE = 0, 0xFF00
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
STT_OBJECT, STT_FUNC, STT_SECTION = 1, 2, 3
LOADER_FUNCTION = "iree_hal_executable_library_query"
"""What the runtime's loader calls in a CPU library; no entry point of the program."""
MAX_NAME_BYTES = 1024  # symbols may share one long name; longer ones are refused rather than copied for each of them
WORK_PER_BYTE = 64
"""What a file may cost its reader; real objects need less than one: each byte of code and of constants once."""
HEADER_BYTES = {32: (52, 32, 40), 64: (64, 56, 64)}
"""ELF class → bytes of the file header, of one program header, of one section header."""
SYMBOLS = {32: ("IIIBBH", (0, 1, 2, 3, 5)), 64: ("IBBHQQ", (0, 4, 5, 1, 3))}
"""ELF class → layout of a symbol, and the positions of name, value, size, info and section index in it."""
LABELS = {
    **dict.fromkeys(("SHT_SYMTAB", "SHT_SYMTAB_SHNDX"), "symbols"),
    **dict.fromkeys(("SHT_DYNSYM", "SHT_HASH", "SHT_GNU_HASH", "SHT_DYNAMIC"), "dynamic"),
    **dict.fromkeys(("SHT_RELA", "SHT_REL", "SHT_RELR"), "relocations"),
    "SHT_NOTE": "notes",
}


class Span(NamedTuple):
    """A range of bytes inside a whole; both figures in bytes."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """Offset of the first byte after the span."""
        return self.start + self.size

    def of(self, data: bytes) -> bytes:
        """The bytes of the span; the span is known to lie inside `data`."""
        return data[self.start : self.end]


def span_inside(start: int, size: int, whole_bytes: int, where: str) -> Span:
    """A span that lies inside a whole of `whole_bytes`; raises `MalformedBinary` otherwise."""
    if start < 0 or size < 0 or start + size > whole_bytes:
        raise MalformedBinary(f"{size} bytes at offset {start} exceed the whole of {whole_bytes} bytes", where=where)
    return Span(start, size)


def require_disjoint(spans: Iterable[Span], where: str) -> None:
    """Raises `MalformedBinary` where two spans share a byte."""
    end = 0
    for span in sorted(span for span in spans if span.size):
        if span.start < end:
            raise MalformedBinary(f"two parts share the byte at offset {span.start}", where=where)
        end = span.end


def label_sizes(labelled: Mapping[Span, str], where: str) -> dict[str, int]:
    """Bytes per label, in the order in which labels first appear; raises `MalformedBinary` where spans overlap."""
    require_disjoint(labelled, where)
    sizes: dict[str, int] = {}
    for span, label in labelled.items():
        sizes[label] = sizes.get(label, 0) + span.size
    return {label: size for label, size in sizes.items() if size}


class Budget:
    """Work that is left, in bytes read: a file takes linear time, whatever bytes its tables name over and over."""

    def __init__(self, file_bytes: int, where: str) -> None:
        self._left, self._where = WORK_PER_BYTE * file_bytes, where

    def spend(self, work_bytes: int) -> None:
        """Raises `MalformedBinary` where that is more than is left."""
        self._left -= work_bytes
        if self._left < 0:
            raise MalformedBinary("its tables name the same bytes over and over", where=self._where)


@dataclass(frozen=True, slots=True)
class Section:
    """One section with bytes in the file."""

    index: int
    type: str  # `SHT_…`, or the number where the type has no name
    flags: int
    span: Span
    address: int  # where it is mapped; 0 in a relocatable object
    # link, info: index of a symbol table's strings; of the section that relocations are for
    link: int
    info: int
    item_bytes: int  # size of each entry where all have one size

    @property
    def label(self) -> str:
        """The part it counts as: by type where that says it, else by how it is mapped."""
        allocated = self.flags & SHF_ALLOC
        if self.type in LABELS:
            return LABELS[self.type]
        if self.type == "SHT_STRTAB":
            return "dynamic" if allocated else "symbols"
        if not allocated:
            return "metadata"
        return "text" if self.flags & SHF_EXECINSTR else "data" if self.flags & SHF_WRITE else "rodata"


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
    sections: Mapping[int, Section]  # those with bytes in the file, by index; no two share a byte
    parts: dict[str, int]  # label → bytes over all sections and headers

    def symbols(self, kind: int | None = None) -> tuple[Symbol, ...]:
        """Those of the symbol table, of which a file has at most one, by index; with a kind, its defined ones alone."""
        table = next((section for section in self.sections.values() if section.type == "SHT_SYMTAB"), None)
        if table is None:
            return ()
        fields, places = SYMBOLS[self.bits]
        layout = struct.Struct(self.byte_order + fields)
        if table.span.size % layout.size:
            raise MalformedBinary(f"a symbol table of {table.span.size} bytes", where="elf")
        strings = self.sections.get(table.link)
        names, symbols = strings.span.of(self.data) if strings else b"", []
        for row in layout.iter_unpack(table.span.of(self.data)):
            start, value, size, info, section = (row[place] for place in places)
            if kind is None or (info & 0xF == kind and SHN_UNDEF < section < SHN_LORESERVE):
                end = names.find(b"\0", start, start + MAX_NAME_BYTES)
                if end < 0:
                    what = f"a name at offset {start} of {len(names)} bytes of names"
                    raise MalformedBinary(what, where="elf")
                symbols.append(Symbol(names[start:end].decode("utf-8", "replace"), value, size, info & 0xF, section))
        return tuple(symbols)

    def contents(self, symbol: Symbol) -> bytes | None:
        """What a linked file has for a symbol; None where its section has no such bytes."""
        section = self.sections.get(symbol.section)
        if section is None or not 0 <= symbol.value - section.address <= section.span.size - symbol.size_bytes:
            return None
        start = section.span.start + symbol.value - section.address
        return self.data[start : start + symbol.size_bytes]


def accepts(data: bytes) -> bool:
    """True for an ELF file of any machine; others have readers of their own."""
    return data.startswith(MAGIC)


def read(data: bytes) -> Reading:
    """Parts per kind of section; an entry point per function symbol (a stripped library has none)."""
    elf = parse_elf(data)
    functions = (symbol for symbol in elf.symbols(STT_FUNC) if symbol.name != LOADER_FUNCTION)
    entries = tuple(EntryPoint(symbol.name, code_bytes=symbol.size_bytes) for symbol in functions)
    return Reading("elf", len(data), elf.parts, entries)


def parse_elf(data: bytes) -> Elf:
    """The outline of a file; raises `MalformedBinary`."""
    try:
        file = ELFFile(BytesIO(data))
        header: Any = file.header
        file_bytes, program_bytes, section_bytes = HEADER_BYTES[file.elfclass]
        if header.e_shoff and header.e_shentsize != section_bytes:
            raise MalformedBinary(f"section headers of {header.e_shentsize} bytes", where="elf")
        # Files of more than 65,279 sections, with a count of 0, are not made here and are refused by their residue.
        table = span_inside(header.e_shoff, header.e_shnum * section_bytes, len(data), "elf")
        programs = span_inside(header.e_phoff, header.e_phnum * program_bytes, len(data), "elf")
        sections: dict[int, Section] = {}
        for index, offset in enumerate(range(table.start, table.end, section_bytes)):
            row: Any = struct_parse(file.structs.Elf_Shdr, file.stream, stream_pos=offset)
            if row.sh_type not in ("SHT_NULL", "SHT_NOBITS") and row.sh_size:
                span = span_inside(row.sh_offset, row.sh_size, len(data), "elf")
                places = (row.sh_addr, row.sh_link, row.sh_info, row.sh_entsize)
                sections[index] = Section(index, str(row.sh_type), row.sh_flags, span, *places)
    except (ELFError, ConstructError) as error:
        raise MalformedBinary(f"no valid ELF: {error}", where="elf") from error
    require_disjoint([section.span for section in sections.values()], "elf")
    labelled = dict.fromkeys((Span(0, file_bytes), programs, table), "headers")
    labelled |= {section.span: section.label for section in sections.values()}
    order = "<" if file.little_endian else ">"
    return Elf(data, file.elfclass, order, sections, label_sizes(labelled, "elf"))
