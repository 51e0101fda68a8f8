"""How device code becomes a digest: the same code gives the same one, whatever it is called.

What the readers leave out are names and the ordinals in them, which move when the program gains a dispatch elsewhere.
"""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from bot.core.record import require_counts
from bot.core.snapshot import written
from bot.errors import MalformedBinary
from bot.readers.budget import Budget
from bot.readers.elf import MACHINE_AT, SHF_EXECINSTR, STT_SECTION, Elf, Section, Symbol, functions, parse_elf, symbols

LENGTH_BYTES = 8
ORDINAL = re.compile(r"(?<=_dispatch_)\d+")
"""What the compiler counts up in the name of a dispatch, `main_dispatch_12_matmul_4x8_f32`."""


def code_digest(*pieces: bytes) -> str:
    """The whole digest, as text; where one piece ends and the next begins counts too."""
    return written(fingerprint(*pieces))


def fingerprint(*pieces: bytes) -> bytes:
    """The same as bytes, for what many digests have in common."""
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(len(piece).to_bytes(LENGTH_BYTES, "little"))
        whole.update(piece)
    return whole.digest()


_PART_OF_A_NAME = re.compile(rb"[\w$%.]")
_BEHIND_A_NAME = re.compile(rb"_param_|[^\w$]|\Z")


def without_name(text: bytes, name: bytes) -> bytes:
    """Source text with `@` for the name, also where it starts the name of a parameter (PTX: `NAME_param_0`).

    No pattern is made of the name: a module has thousands of them, and to compile one costs more than to look for it.
    """
    pieces, kept_to, start = list[bytes](), 0, text.find(name)
    while name and start >= 0:
        end = start + len(name)
        if _BEHIND_A_NAME.match(text, end) and not (start and _PART_OF_A_NAME.match(text, start - 1)):
            pieces.append(text[kept_to:start])
            kept_to = end
        start = text.find(name, end if kept_to == end else start + 1)
    return b"@".join([*pieces, text[kept_to:]])


# The functions of a relocatable object: their sizes, and digests of their code up to names and places.
#
# A function is its bytes and its relocations. What a relocation refers to counts by content where that is constant
# data, as constants of all functions share sections in which each has a place of its own, and by name where it is
# another function. Format: System V ABI, chapter "Relocation", https://gabi.xinuos.com; the types are numbers of each
# machine.


SHF_MERGE, SHF_STRINGS = 0x10, 0x20
WITH_ADDENDS, WITHOUT_ADDENDS = "SHT_RELA", "SHT_REL"
RELOCATION_FORMAT = {32: "IIi", 64: "QQq"}
SYMBOL_SHIFT = {32: 8, 64: 32}
"""ELF class → by how many bits `r_info` has the symbol above the type."""
EM_X86_64, X86_RELATIVE, X86_FIELD_BYTES = 62, (2, 4), 4
"""x86-64 psABI, "Relocation Types": R_X86_64_PC32 and R_X86_64_PLT32, both of 32-bit fields."""
RELOCATION_WORK_BYTES = 32
"""What a relocation costs, in bytes read."""
MAX_DEPTH = 2
"""Constant data that refers to data (a table of tables) is followed this far."""
SELF = "@"


@dataclass(frozen=True, slots=True)
class FunctionCode:
    """The code of one name: its size, and digest as in `bot.core.snapshot.Dispatch`."""

    size_bytes: int
    code: str | None

    def __post_init__(self) -> None:
        """Raise where the size is no count."""
        require_counts({"size_bytes": self.size_bytes}, "function")


@dataclass(frozen=True, slots=True)
class Relocation:
    """One place to fill in: its offset in its section, how, and with the address of what."""

    offset: int
    type: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class Object:
    """An object's sections by index, and the relocations of each, by rising offset.

    Attributes:
        names: section → its first function, which a relocation against the section itself means.
        unknown: sections whose addends are hidden in their bytes.
        starts: section → offsets that a symbol or relocation names, by rising offset.
        known: digests of constants, by place; those that refer to something also by the function that they stand for.
    """

    elf: Elf
    symbols: tuple[Symbol, ...]
    sections: Mapping[int, Section]
    relocations: Mapping[int, list[Relocation]]
    names: Mapping[int, str]
    unknown: frozenset[int]
    starts: Mapping[int, list[int]]
    budget: Budget
    known: dict[tuple[object, ...], bytes] = field(default_factory=dict)


def function_codes(object_bytes: bytes) -> dict[str, FunctionCode]:
    """Function → size (`st_size`) and digest in a relocatable object; raises `MalformedBinary`.

    Local functions may share a name; they then count together.
    """
    elf = parse_elf(object_bytes)
    with_addends = [section for section in elf.sections if section.type == WITH_ADDENDS]
    relocations = {section.info: sorted(_relocations(elf, section), key=_offset) for section in with_addends}
    every, own = symbols(elf), functions(elf)
    starts: dict[int, set[int]] = {}
    for symbol in every:
        starts.setdefault(symbol.section, set()).add(symbol.value)
    for relocation in chain.from_iterable(relocations.values()):
        symbol = _symbol(every, relocation)
        if symbol.kind == STT_SECTION:
            starts.setdefault(symbol.section, set()).add(relocation.addend + _bias(elf, relocation))
    whole = Object(
        elf=elf,
        symbols=every,
        sections=elf.by_index,
        relocations=relocations,
        names={symbol.section: symbol.name for symbol in reversed(own)},
        unknown=frozenset(section.info for section in elf.sections if section.type == WITHOUT_ADDENDS),
        starts={section: sorted(offsets) for section, offsets in starts.items()},
        budget=Budget(len(elf.data), "elf"),
    )
    by_name: dict[str, list[Symbol]] = {}
    for symbol in own:
        by_name.setdefault(symbol.name, []).append(symbol)
    return {name: _function_code(whole, namesakes) for name, namesakes in by_name.items()}


def _symbol(every: tuple[Symbol, ...], relocation: Relocation) -> Symbol:
    if relocation.symbol >= len(every):
        raise MalformedBinary(f"no symbol {relocation.symbol}", where="elf")
    return every[relocation.symbol]


def _bias(elf: Elf, relocation: Relocation) -> int:
    """What an addend lacks to be an offset: x86-64 counts from the end of the field, which ends the instruction."""
    machine = int.from_bytes(elf.data[MACHINE_AT : MACHINE_AT + 2], "little")
    return X86_FIELD_BYTES if machine == EM_X86_64 and relocation.type in X86_RELATIVE else 0


def _offset(relocation: Relocation) -> int:
    return relocation.offset


def _relocations(elf: Elf, section: Section) -> Iterator[Relocation]:
    target = elf.by_index.get(section.info)
    layout = struct.Struct(elf.byte_order + RELOCATION_FORMAT[elf.bits])
    shift = SYMBOL_SHIFT[elf.bits]
    if section.span.size % layout.size:
        raise MalformedBinary(f"relocations of {section.span.size} bytes", where="elf")
    if target is None or not target.allocated:
        return
    for offset, info, addend in layout.iter_unpack(section.span.of(elf.data)):
        yield Relocation(offset, info & ((1 << shift) - 1), info >> shift, addend)


def _function_code(whole: Object, namesakes: list[Symbol]) -> FunctionCode:
    size_bytes = sum(symbol.size_bytes for symbol in namesakes)
    for symbol in namesakes:
        section = whole.sections.get(symbol.section)
        is_inside = section is not None and symbol.value + symbol.size_bytes <= section.span.size
        if not is_inside or symbol.section in whole.unknown:
            return FunctionCode(size_bytes, None)
    # of each function its bytes, and its relocations as text
    pieces = (_range(whole, each, each.section, each.value, each.size_bytes, 0) for each in namesakes)
    return FunctionCode(size_bytes, code_digest(*chain.from_iterable(pieces)))


def _range(whole: Object, function: Symbol, index: int, start: int, size: int, depth: int) -> tuple[bytes, bytes]:
    """A part of a section, as the function refers to it."""
    first = whole.sections[index].span.start + start
    inside = _relocations_inside(whole, index, start, size)
    whole.budget.spend(size + RELOCATION_WORK_BYTES * len(inside))
    lines = (f"{each.offset - start} {each.type} {_target(whole, function, each, depth)}\n" for each in inside)
    return whole.elf.data[first : first + size], "".join(lines).encode()


def _relocations_inside(whole: Object, index: int, start: int, size: int) -> list[Relocation]:
    relocations = whole.relocations.get(index, [])
    ends = (bisect_left(relocations, place, key=_offset) for place in (start, start + size))
    return relocations[slice(*ends)]


def _target(whole: Object, function: Symbol, relocation: Relocation, depth: int) -> str:
    symbol = _symbol(whole.symbols, relocation)
    section = whole.sections.get(symbol.section)
    place = symbol.value + relocation.addend
    if symbol.section == function.section and not (symbol.is_function and symbol.name != function.name):
        return f"{SELF}{place - function.value:+}"
    if section is None or section.flags & SHF_EXECINSTR or depth == MAX_DEPTH:
        # Without the ordinal: the name as it is in every program that has this dispatch.
        return f"{ORDINAL.sub('', symbol.name or whole.names.get(symbol.section, ''))}{place:+}"
    return _content(whole, function, section, relocation, depth)


def _content(whole: Object, function: Symbol, section: Section, relocation: Relocation, depth: int) -> str:
    """Digest of the constant data a relocation refers to, made once for all that do, and where in it."""
    symbol, bias = _symbol(whole.symbols, relocation), _bias(whole.elf, relocation)
    if symbol.kind == STT_SECTION:
        start, size, offset = relocation.addend + bias, 0, -bias
    else:
        start, size, offset = symbol.value, symbol.size_bytes, relocation.addend
    if not size and section.flags & SHF_MERGE and not section.flags & SHF_STRINGS:
        size = section.item_bytes
    elif not size:  # nothing tells: all up to the next start
        starts = whole.starts[section.index]
        after = bisect_right(starts, start)
        size = max((starts[after] if after < len(starts) else section.span.size) - start, 0)
    if not 0 <= start <= section.span.size - size:
        raise MalformedBinary(f"a constant of {size} bytes at offset {start} of its section", where="elf")
    key: tuple[object, ...] = (section.index, start, size)
    if _relocations_inside(whole, section.index, start, size):
        key = (*key, function, depth + 1)
    if key not in whole.known:
        whole.known[key] = fingerprint(*_range(whole, function, section.index, start, size, depth + 1))
    return f"{whole.known[key].hex()}{offset:+}"
