"""Cubins: machine code of NVIDIA GPUs, an ELF file with one executable section per function.

Format: sections `.text.<function>` of machine code (SASS), padded with no-operations to whole cache lines, as the
listings of `cuobjdump -elf` name them (https://docs.nvidia.com/cuda/cuda-binary-utilities); what else is in the file
(names, symbols, tables for the driver and the debugger) does not run. What `ptxas -v` prints: "Function properties for"
each function, its frame and spills on the next line, and for an entry point the registers on the one after.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from bot.core.reading import Assembled, EntryPoint, Reading
from bot.errors import MalformedBinary
from bot.readers.elf import MACHINE, MAGIC, SHF_EXECINSTR, STT_FUNC, Elf, parse_elf
from bot.readers.object_code import code_digest

EM_CUDA = (190).to_bytes(2, "little")
NV_INFO = ("SHT_LOPROC", str(0x70000000))
SHF_INFO_LINK = 0x40  # of `.nv.info.<function>`, which tells of one function; `.nv.info` tells of them all
ATTRIBUTE, OF_FUNCTION = struct.Struct("<BBH"), struct.Struct("<II")
EIFMT_SVAL, EIATTR_FRAME_SIZE, EIATTR_REGCOUNT = 0x04, 0x11, 0x2F
"""As `cuobjdump -elf` names them: a value of so many bytes; frame and registers of a function."""
MAX_DIGITS = 15
PROPERTIES = re.compile(
    r"Function properties for (?P<name>\S+)\s*\n"
    r"\s*\d{1,15} bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads[ \t]*"
    r"(?:\n[^\n]*: Used (?P<registers>\d+) registers)?"
)


class MachineCode(NamedTuple):
    """One function of a cubin."""

    name: str
    registers: int | None  # None for a function that is only called: its entry points count them
    spill_bytes: int
    sass_bytes: int | None  # of its section; None where it has none of its own


class Module(NamedTuple):
    """One assembled module: machine code of all its functions, and each of them."""

    sass_bytes: int
    functions: tuple[MachineCode, ...]


def accepts(data: bytes) -> bool:
    """True for a little-endian ELF of the CUDA machine; no artifact holds one: an assembler makes them."""
    return data.startswith(MAGIC) and data[MACHINE] == EM_CUDA


def read(data: bytes) -> Reading:
    """Parts per kind of section, `text` the machine code; an entry point per function that has a section."""
    if not accepts(data):
        raise MalformedBinary("no ELF of the CUDA machine", where="cubin")
    elf, by_section = parse_elf(data), dict[int, list[str]]()
    for symbol in elf.symbols(STT_FUNC):
        section = elf.sections.get(symbol.section)
        # A function's section begins with it: what stands behind it there are its own helpers.
        if section is not None and section.flags & SHF_EXECINSTR and symbol.value == section.address:
            by_section.setdefault(section.index, []).append(symbol.name)
    alone = {names[0]: elf.sections[index].span.of(data) for index, names in by_section.items() if len(names) == 1}
    attributes = _attributes(elf)
    entries = tuple(
        EntryPoint(
            name,
            code_bytes=len(code),
            stack_bytes=attributes.get((name, EIATTR_FRAME_SIZE)),
            stack_kind="static" if (name, EIATTR_FRAME_SIZE) in attributes else None,
            code=code_digest(code),
            registers=attributes.get((name, EIATTR_REGCOUNT)),
        )
        for name, code in alone.items()
    )
    return Reading("cubin", len(data), elf.parts, entries)


def _attributes(elf: Elf) -> dict[tuple[str, int], int]:
    """Function and attribute → value, of those attributes of the file that are a number of a function."""
    sections = elf.sections.values()
    info = next((one for one in sections if one.type in NV_INFO and not one.flags & SHF_INFO_LINK), None)
    data, symbols, at = info.span.of(elf.data) if info else b"", elf.symbols(), 0
    values: dict[tuple[str, int], int] = {}
    while at + ATTRIBUTE.size <= len(data):
        form, kind, size = ATTRIBUTE.unpack_from(data, at)
        at += ATTRIBUTE.size
        if form != EIFMT_SVAL:  # its value is the size
            continue
        if size == OF_FUNCTION.size and at + size <= len(data):
            symbol, value = OF_FUNCTION.unpack_from(data, at)
            if symbol < len(symbols):
                values[symbols[symbol].name, kind] = value
        at += size
    return values


def read_assembled(assembled: Assembled) -> Module:
    """What one module became; raises `MalformedBinary`, also where cubin and print tell of different functions."""
    reading, functions = read(assembled.cubin), dict[str, MachineCode]()
    sizes = {entry.name: entry.code_bytes for entry in reading.entry_points}
    for match in PROPERTIES.finditer(assembled.said):
        name, numbers = match["name"], {what: match[what] or "" for what in ("registers", "stores", "loads")}
        for what, digits in numbers.items():
            if len(digits) > MAX_DIGITS:
                raise MalformedBinary(f"{what} of {len(digits)} digits", where="ptxas")
        registers = int(numbers["registers"]) if match["registers"] else None
        spill_bytes = int(numbers["stores"]) + int(numbers["loads"])
        functions[name] = MachineCode(name, registers, spill_bytes, sizes.get(name))
    if missing := sizes.keys() - functions.keys():
        raise MalformedBinary(f"ptxas says nothing of {min(missing)[:80]!r}", where="cubin")
    return Module(reading.parts.get("text", 0), tuple(functions.values()))
