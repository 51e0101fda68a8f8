"""Read the functions of cubins of NVIDIA GPUs, and what ptxas prints of them.

A cubin has sections `.text.<function>` of machine code (SASS), padded with
no-operations to whole cache lines, as the listings of `cuobjdump -elf` name them
(https://docs.nvidia.com/cuda/cuda-binary-utilities). What else is in the file (names,
symbols, tables for the driver and the debugger) does not run. `ptxas -v` prints
"Function properties for" each function, its frame and spills on the next line, and for
an entry point the registers on the one after.
"""

from __future__ import annotations

import re
import struct

from msgspec.structs import replace

from bot.core.reading import Assembled, EntryPoint, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import (
    code_digest,
)
from bot.readers.elf import MACHINE, MAGIC, SHF_EXECINSTR, STT_FUNC, Elf, parse_elf

EM_CUDA = (190).to_bytes(2, "little")
SHF_INFO_LINK = 0x40
NV_INFO = ("SHT_LOPROC", str(0x70000000))
ATTRIBUTE = struct.Struct("<BBH")
OF_FUNCTION = struct.Struct("<II")
EIFMT_SVAL = 0x04
EIATTR_FRAME_SIZE = 0x11
EIATTR_REGCOUNT = 0x2F
"""Numbers that `cuobjdump -elf` names in `.nv.info`.

They are the format of a sized value, and frame and registers of a function.
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
    attributes = _attributes(elf)
    entries = dict[str, EntryPoint]()
    for index, names in by_section.items():
        name = names[0]
        if len(names) == 1:
            code = elf.sections[index].span.of(data)
            entries[name] = EntryPoint(
                name,
                code_bytes=len(code),
                stack_bytes=attributes.get((name, EIATTR_FRAME_SIZE)),
                code=code_digest(code),
                registers=attributes.get((name, EIATTR_REGCOUNT)),
            )
    return elf.reading("cubin", entries.values())


def _attributes(elf: Elf) -> dict[tuple[str, int], int]:
    """Return function and attribute → value.

    These are the attributes of the file that are a number of a function.
    """
    data = b""
    for section in elf.sections.values():
        # `.nv.info.<function>`, which has that flag, tells of one function; `.nv.info`
        # of them all.
        if section.type in NV_INFO and not section.flags & SHF_INFO_LINK:
            data = section.span.of(elf.data)
            break
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
    """Return the assembled code of one module, with all its functions.

    Functions that are only called have no registers of their own. Raises
    `MalformedBinary`, also if cubin and print name different functions.
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


CUBIN = Reader(
    lambda data: data.startswith(MAGIC) and data[MACHINE] == EM_CUDA, read_cubin
)
"""The reader of cubins, which no artifact holds: an assembler makes them."""
