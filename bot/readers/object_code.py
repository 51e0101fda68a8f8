"""Code as a digest, the same for the same code whatever it is called; and the functions of relocatable objects.

What is left out are names and the ordinals in them, which move when the program gains a dispatch elsewhere. A function
of an object is its bytes and its relocations. What a relocation refers to counts by content where that is constant
data, as constants of all functions share sections in which each has a place of its own, and by name where it is another
function. Format: System V ABI, chapter "Relocation", https://gabi.xinuos.com; the types are numbers of each machine.
"""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from bot.core.record import require_counts
from bot.core.snapshot import written
from bot.errors import MalformedBinary
from bot.readers.elf import (
    MACHINE,
    SHF_ALLOC,
    SHF_EXECINSTR,
    STT_FUNC,
    STT_SECTION,
    Budget,
    Section,
    Symbol,
    parse_elf,
)

ORDINAL = re.compile(r"(?<=_dispatch_)\d+")
"""What the compiler counts up in the name of a dispatch, `main_dispatch_12_matmul_4x8_f32`."""
_PART_OF_A_NAME = re.compile(rb"[\w$%.]")
_BEHIND_A_NAME = re.compile(rb"_param_|[^\w$]|\Z")
SHF_MERGE, SHF_STRINGS = 0x10, 0x20
RELOCATION_FORMAT = {32: ("IIi", 8), 64: ("QQq", 32)}
"""ELF class → the fields of a relocation, and by how many bits `r_info` has the symbol above the type."""
EM_X86_64, X86_RELATIVE, X86_FIELD_BYTES = (62).to_bytes(2, "little"), (2, 4), 4
"""x86-64 psABI, "Relocation Types": R_X86_64_PC32 and R_X86_64_PLT32, both of 32-bit fields."""
RELOCATION_WORK_BYTES = 32  # what a relocation costs, in bytes read
MAX_DEPTH = 2  # constant data that refers to data (a table of tables) is followed this far


def code_digest(*pieces: bytes) -> str:
    """The whole digest, as text; where one piece ends and the next begins counts too."""
    return written(fingerprint(*pieces))


def fingerprint(*pieces: bytes) -> bytes:
    """The same as bytes, for what many digests have in common."""
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(len(piece).to_bytes(8, "little"))
        whole.update(piece)
    return whole.digest()


def without_name(text: bytes, name: bytes) -> bytes:
    """Source text with `@` for the name, also where it starts the name of a parameter (PTX: `NAME_param_0`).

    No pattern is made of the name: a module has thousands of them, and to compile one costs more than to look for it.
    """
    pieces, copied_to, start = list[bytes](), 0, text.find(name)
    while name and start >= 0:
        end = start + len(name)
        if _BEHIND_A_NAME.match(text, end) and not (start and _PART_OF_A_NAME.match(text, start - 1)):
            pieces.append(text[copied_to:start])
            copied_to = end
        start = text.find(name, end if copied_to == end else start + 1)
    return b"@".join([*pieces, text[copied_to:]])


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """The code of one name: its size, and digest as in `bot.core.snapshot.Dispatch`."""

    size_bytes: int
    code: str | None

    def __post_init__(self) -> None:
        """Raise where the size is no count."""
        require_counts({"size_bytes": self.size_bytes}, "function")


def function_codes(object_bytes: bytes) -> dict[str, FunctionCode]:
    """Function → size (`st_size`) and digest in a relocatable object; raises `MalformedBinary`.

    Local functions may share a name; they then count together.
    """
    whole, by_name = _Object(object_bytes), dict[str, list[Symbol]]()
    for symbol in whole.functions:
        by_name.setdefault(symbol.name, []).append(symbol)
    return {name: whole.code_of(namesakes) for name, namesakes in by_name.items()}


class _Relocation(NamedTuple):
    """One place to fill in: its offset in its section, how, and with the address of what."""

    offset: int
    type: int
    symbol: Symbol
    addend: int
    bias: int
    """What an addend lacks to be an offset: x86-64 counts from the end of the field, which ends the instruction."""


def _offset(relocation: _Relocation) -> int:
    return relocation.offset


class _Object:
    """An object's sections by index, and the relocations of each, by rising offset."""

    def __init__(self, data: bytes) -> None:
        self.elf = parse_elf(data)
        self.sections, self.budget = self.elf.sections, Budget(len(data), "elf")
        self.known = dict[tuple[object, ...], bytes]()  # constants by place; by function where they refer to something
        with_addends = [section for section in self.sections.values() if section.type == "SHT_RELA"]
        raw = {section.info: list(self._rows(section)) for section in with_addends}
        self.symbols, self.functions = self.elf.symbols(), self.elf.symbols(STT_FUNC)
        starts: dict[int, set[int]] = {}  # section → offsets that a symbol or relocation names
        for symbol in self.symbols:
            starts.setdefault(symbol.section, set()).add(symbol.value)
        self.relocations: dict[int, list[_Relocation]] = {}
        for section, rows in raw.items():
            self.relocations[section] = sorted(map(self._relocation, rows), key=_offset)
            for each in self.relocations[section]:
                if each.symbol.kind == STT_SECTION:
                    starts.setdefault(each.symbol.section, set()).add(each.addend + each.bias)
        self.starts = {section: sorted(offsets) for section, offsets in starts.items()}
        # What a relocation against a section itself means is its first function.
        self.names = {symbol.section: symbol.name for symbol in reversed(self.functions)}
        # The addends of these are hidden in their bytes.
        self.unknown = {section.info for section in self.sections.values() if section.type == "SHT_REL"}

    def _rows(self, section: Section) -> Iterator[tuple[int, ...]]:
        target = self.sections.get(section.info)
        layout = struct.Struct(self.elf.byte_order + RELOCATION_FORMAT[self.elf.bits][0])
        if section.span.size % layout.size:
            raise MalformedBinary(f"relocations of {section.span.size} bytes", where="elf")
        if target is not None and target.flags & SHF_ALLOC:
            yield from layout.iter_unpack(section.span.of(self.elf.data))

    def _relocation(self, row: tuple[int, ...]) -> _Relocation:
        offset, info, addend = row
        shift = RELOCATION_FORMAT[self.elf.bits][1]
        symbol, type_ = info >> shift, info & ((1 << shift) - 1)
        if symbol >= len(self.symbols):
            raise MalformedBinary(f"no symbol {symbol}", where="elf")
        is_relative = self.elf.data[MACHINE] == EM_X86_64 and type_ in X86_RELATIVE
        return _Relocation(offset, type_, self.symbols[symbol], addend, X86_FIELD_BYTES if is_relative else 0)

    def code_of(self, namesakes: list[Symbol]) -> FunctionCode:
        """Size and digest of the functions of one name."""
        size_bytes = sum(symbol.size_bytes for symbol in namesakes)
        for symbol in namesakes:
            section = self.sections.get(symbol.section)
            is_inside = section is not None and symbol.value + symbol.size_bytes <= section.span.size
            if not is_inside or symbol.section in self.unknown:
                return FunctionCode(size_bytes, None)
        pieces = (self._range(each, each.section, each.value, each.size_bytes, 0) for each in namesakes)
        return FunctionCode(size_bytes, code_digest(*chain.from_iterable(pieces)))

    def _range(self, function: Symbol, index: int, start: int, size: int, depth: int) -> tuple[bytes, bytes]:
        """A part of a section, as the function refers to it: its bytes, and its relocations as text."""
        first, inside = self.sections[index].span.start + start, self._inside(index, start, size)
        self.budget.spend(size + RELOCATION_WORK_BYTES * len(inside))
        lines = (f"{each.offset - start} {each.type} {self._target(function, each, depth)}\n" for each in inside)
        return self.elf.data[first : first + size], "".join(lines).encode()

    def _inside(self, index: int, start: int, size: int) -> list[_Relocation]:
        relocations = self.relocations.get(index, [])
        ends = (bisect_left(relocations, place, key=_offset) for place in (start, start + size))
        return relocations[slice(*ends)]

    def _target(self, function: Symbol, relocation: _Relocation, depth: int) -> str:
        symbol, section = relocation.symbol, self.sections.get(relocation.symbol.section)
        place = symbol.value + relocation.addend
        if symbol.section == function.section and not (symbol.kind == STT_FUNC and symbol.name != function.name):
            return f"@{place - function.value:+}"
        if section is None or section.flags & SHF_EXECINSTR or depth == MAX_DEPTH:
            # Without the ordinal: the name as it is in every program that has this dispatch.
            return f"{ORDINAL.sub('', symbol.name or self.names.get(symbol.section, ''))}{place:+}"
        return self._constant(function, section, relocation, depth + 1)

    def _constant(self, function: Symbol, section: Section, relocation: _Relocation, depth: int) -> str:
        """Digest of the constant data a relocation refers to, made once for all that do, and where in it."""
        symbol, bias = relocation.symbol, relocation.bias
        start, size, offset = symbol.value, symbol.size_bytes, relocation.addend
        if symbol.kind == STT_SECTION:
            start, size, offset = relocation.addend + bias, 0, -bias
        if not size and section.flags & SHF_MERGE and not section.flags & SHF_STRINGS:
            size = section.item_bytes
        elif not size:  # nothing tells: all up to the next start
            starts = self.starts[section.index]
            after = bisect_right(starts, start)
            size = max((starts[after] if after < len(starts) else section.span.size) - start, 0)
        if not 0 <= start <= section.span.size - size:
            raise MalformedBinary(f"a constant of {size} bytes at offset {start} of its section", where="elf")
        key: tuple[object, ...] = (section.index, start, size)
        if self._inside(section.index, start, size):
            key = (*key, function, depth)
        if key not in self.known:
            self.known[key] = fingerprint(*self._range(function, section.index, start, size, depth))
        return f"{self.known[key].hex()}{offset:+}"
