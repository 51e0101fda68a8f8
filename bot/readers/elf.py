"""Byte ranges of a binary and the proof that no byte is counted twice."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from bot.core.reading import EntryPoint, Reading
from bot.errors import MalformedBinary


@dataclass(frozen=True, slots=True, order=True)
class Span:
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


# ELF files: bytes per kind of section, and the symbols of functions and data.
#
# llvm-cpu makes two of them: a relocatable object that still has its symbols, and the linked, stripped library inside
# the artifact. Format: System V ABI, generic part, chapters "Object Files" and "Symbol Table" (figures of the 32- and
# 64-bit layouts), https://gabi.xinuos.com. Headers are parsed by pyelftools; symbols, of which there are many, in one
# `struct` sweep.


MAGIC = b"\x7fELF"
MACHINE_AT = 18
"""Offset of `e_machine` in both layouts."""

SHN_UNDEF, SHN_LORESERVE = 0, 0xFF00
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
STT_OBJECT, STT_FUNC, STT_SECTION = 1, 2, 3
LOADER_FUNCTION = "iree_hal_executable_library_query"
"""What the runtime's loader calls in a CPU library; no entry point of the program."""
EMPTY_TYPES = frozenset({"SHT_NULL", "SHT_NOBITS"})
"""Section types without bytes in the file."""

MAX_NAME_BYTES = 1024
"""Symbols may share one long name; longer ones are refused rather than copied for each of them."""

HEADER_BYTES = {32: (52, 32, 40), 64: (64, 56, 64)}
"""ELF class → bytes of the file header, of one program header, of one section header."""
SYMBOL_FORMAT = {32: "IIIBBH", 64: "IBBHQQ"}
SYMBOL_FIELDS = {32: (0, 1, 2, 3, 5), 64: (0, 4, 5, 1, 3)}
"""ELF class → positions of name, value, size, info and section index in a symbol."""

LABEL_BY_TYPE = {
    "SHT_SYMTAB": "symbols",
    "SHT_SYMTAB_SHNDX": "symbols",
    "SHT_DYNSYM": "dynamic",
    "SHT_HASH": "dynamic",
    "SHT_GNU_HASH": "dynamic",
    "SHT_DYNAMIC": "dynamic",
    "SHT_RELA": "relocations",
    "SHT_REL": "relocations",
    "SHT_RELR": "relocations",
    "SHT_NOTE": "notes",
}


@dataclass(frozen=True, slots=True)
class Section:
    """One section with bytes in the file.

    Attributes:
        type: `SHT_…`, or the number where the type has no name.
        address: where it is mapped; 0 in a relocatable object.
        link: index of the section it refers to, a symbol table's strings.
        info: index of the section that relocations are for.
        item_bytes: size of each entry where all have one size.
    """

    index: int
    type: str
    flags: int
    span: Span
    address: int
    link: int
    info: int
    item_bytes: int

    @property
    def allocated(self) -> bool:
        """True where the section is mapped when the code runs."""
        return bool(self.flags & SHF_ALLOC)


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol.

    Attributes:
        name: empty for sections.
        value: offset in its section of a relocatable object, else the address.
        section: index of its section, or a special one (`SHN_…`).
    """

    name: str
    value: int
    size_bytes: int
    kind: int
    section: int

    @property
    def is_function(self) -> bool:
        """True for functions."""
        return self.kind == STT_FUNC


@dataclass(frozen=True, slots=True)
class Elf:
    """The outline of one file.

    Attributes:
        byte_order: as `struct` writes it.
        sections: those with bytes in the file; no two share a byte.
        parts: label → bytes over all sections and headers.
    """

    data: bytes
    bits: int
    byte_order: str
    sections: tuple[Section, ...]
    parts: dict[str, int]
    by_index: Mapping[int, Section]


class ElfReader:
    """ELF of any machine that has no reader of its own."""

    def accepts(self, data: bytes) -> bool:
        """True for the ELF magic."""
        return data.startswith(MAGIC)

    def read(self, data: bytes) -> Reading:
        """Parts per kind of section; an entry point per function symbol (a stripped library has none)."""
        elf = parse_elf(data)
        symbols = (symbol for symbol in functions(elf) if symbol.name != LOADER_FUNCTION)
        entries = tuple(EntryPoint(symbol.name, code_bytes=symbol.size_bytes) for symbol in symbols)
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
        sections = []
        for index, offset in enumerate(range(table.start, table.end, section_bytes)):
            row: Any = struct_parse(file.structs.Elf_Shdr, file.stream, stream_pos=offset)
            if row.sh_type not in EMPTY_TYPES and row.sh_size:
                span = span_inside(row.sh_offset, row.sh_size, len(data), "elf")
                places = (row.sh_addr, row.sh_link, row.sh_info, row.sh_entsize)
                sections.append(Section(index, str(row.sh_type), row.sh_flags, span, *places))
    except (ELFError, ConstructError) as error:
        raise MalformedBinary(f"no valid ELF: {error}", where="elf") from error
    require_disjoint([section.span for section in sections], "elf")
    labelled = dict.fromkeys((Span(0, file_bytes), programs, table), "headers")
    labelled |= {section.span: _label(section) for section in sections}
    by_index = {section.index: section for section in sections}
    order = "<" if file.little_endian else ">"
    return Elf(data, file.elfclass, order, tuple(sections), label_sizes(labelled, "elf"), by_index)


def functions(elf: Elf) -> tuple[Symbol, ...]:
    """The defined functions of the symbol table, in its order."""
    return defined(elf, STT_FUNC)


def defined(elf: Elf, kind: int) -> tuple[Symbol, ...]:
    """The defined symbols of one kind (`STT_…`), in the order of the symbol table."""
    *_, info_at, section_at = SYMBOL_FIELDS[elf.bits]
    names, rows = _symbol_table(elf)
    wanted = (row for row in rows if row[info_at] & 0xF == kind and SHN_UNDEF < row[section_at] < SHN_LORESERVE)
    return tuple(_symbol(elf, names, row) for row in wanted)


def symbols(elf: Elf) -> tuple[Symbol, ...]:
    """All symbols of the symbol table, by index."""
    names, rows = _symbol_table(elf)
    return tuple(_symbol(elf, names, row) for row in rows)


def _symbol_table(elf: Elf) -> tuple[bytes, Iterator[tuple[int, ...]]]:
    """The names, and the fields of each symbol; a file has at most one such table."""
    table = next((section for section in elf.sections if section.type == "SHT_SYMTAB"), None)
    if table is None:
        return b"", iter(())
    layout = struct.Struct(elf.byte_order + SYMBOL_FORMAT[elf.bits])
    if table.span.size % layout.size:
        raise MalformedBinary(f"a symbol table of {table.span.size} bytes", where="elf")
    names = elf.by_index.get(table.link)
    return names.span.of(elf.data) if names else b"", layout.iter_unpack(table.span.of(elf.data))


def contents(elf: Elf, symbol: Symbol) -> bytes | None:
    """What a linked file has for a symbol; None where its section has no such bytes."""
    section = elf.by_index.get(symbol.section)
    if section is None or not 0 <= symbol.value - section.address <= section.span.size - symbol.size_bytes:
        return None
    start = section.span.start + symbol.value - section.address
    return elf.data[start : start + symbol.size_bytes]


def _label(section: Section) -> str:
    """The part a section counts as: by type where that says it, else by how it is mapped."""
    if section.type in LABEL_BY_TYPE:
        return LABEL_BY_TYPE[section.type]
    if section.type == "SHT_STRTAB":
        return "dynamic" if section.flags & SHF_ALLOC else "symbols"
    if not section.flags & SHF_ALLOC:
        return "metadata"
    if section.flags & SHF_EXECINSTR:
        return "text"
    return "data" if section.flags & SHF_WRITE else "rodata"


def _symbol(elf: Elf, names: bytes, fields: tuple[int, ...]) -> Symbol:
    start, value, size, info, section = (fields[at] for at in SYMBOL_FIELDS[elf.bits])
    end = names.find(b"\0", start, start + MAX_NAME_BYTES)
    if end < 0:
        raise MalformedBinary(f"a name at offset {start} of {len(names)} bytes of names", where="elf")
    return Symbol(names[start:end].decode("utf-8", "replace"), value, size, info & 0xF, section)
