"""Read the code of functions in relocatable objects.

Names and the ordinals in them are left out: they move when the program gains a dispatch
elsewhere. A function is its bytes and its relocations. A relocation counts by content
where it refers to constant data, as the constants of all functions share sections in
which each has a place of its own. It counts by name where it refers to another
function. The types of relocations are numbers of each machine. Format: System V ABI,
generic part, chapter "Relocation", https://gabi.xinuos.com.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from bot.core.reading import EntryPoint
from bot.errors import MalformedBinary
from bot.readers.binary import (
    WorkLimit,
    code_digest,
    fingerprint,
)
from bot.readers.elf import (
    MACHINE,
    SHF_ALLOC,
    SHF_EXECINSTR,
    STT_FUNC,
    Section,
    Symbol,
    parse_elf,
)

EM_X86_64 = (62).to_bytes(2, "little")
SHF_MERGE = 0x10
SHF_STRINGS = 0x20
STT_SECTION = 3
ORDINAL = re.compile(r"(?<=_dispatch_)\d+")
"""The number that the compiler counts up in the name of a dispatch.

An example is 12 in `main_dispatch_12_matmul_4x8_f32`.
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
    """A place that the linker fills in.

    It has its offset in its section, the way to fill it, and the target's address.
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
        for section in self.elf.of_type("SHT_RELA"):
            rows = sorted(self._relocations(section), key=_OFFSET)
            self.relocations[section.info] = rows
            for row in rows:
                if row.symbol.kind == STT_SECTION:
                    start = row.addend + row.bias
                    starts.setdefault(row.symbol.section, set()).add(start)
        self.starts = {section: sorted(offsets) for section, offsets in starts.items()}
        # What a relocation against a section itself means is its first function.
        self.names = dict[int, str]()
        for symbol in self.functions:
            self.names.setdefault(symbol.section, symbol.name)
        # The addends of these are hidden in their bytes.
        self.unknown = {section.info for section in self.elf.of_type("SHT_REL")}

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
        """Return size and digest of the functions of one name."""
        name = namesakes[0].name
        size_bytes = sum(symbol.size_bytes for symbol in namesakes)
        for symbol in namesakes:
            self.elf.require_inside(symbol)
            if symbol.section not in self.sections or symbol.section in self.unknown:
                return EntryPoint(name, code_bytes=size_bytes)
        pieces = list[bytes]()
        for symbol in namesakes:
            pieces += self._range(
                symbol,
                index=symbol.section,
                start=symbol.value,
                size=symbol.size_bytes,
                depth=0,
            )
        return EntryPoint(name, code_bytes=size_bytes, code=code_digest(*pieces))

    def _range(
        self, function: Symbol, index: int, start: int, size: int, depth: int
    ) -> tuple[bytes, bytes]:
        """Return a part of a section as the function refers to it.

        It has the part's bytes, and its relocations as text.
        """
        first = self.sections[index].span.start + start
        inside = self._inside(index, start, size)
        self.budget.spend(size + RELOCATION_WORK_BYTES * len(inside))
        lines = ""
        for relocation in inside:
            target = self._target(function, relocation, depth)
            lines += f"{relocation.offset - start} {relocation.type} {target}\n"
        return self.elf.data[first : first + size], lines.encode()

    def _inside(self, index: int, start: int, size: int) -> list[_Relocation]:
        relocations = self.relocations.get(index, [])
        first = bisect_left(relocations, start, key=_OFFSET)
        end = bisect_left(relocations, start + size, key=_OFFSET)
        return relocations[first:end]

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

        It is made once for all that refer to it. The place in the data follows it.
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
            end = starts[after] if after < len(starts) else section.span.size
            size = max(end - start, 0)
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
