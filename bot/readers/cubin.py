"""Cubins: machine code of NVIDIA GPUs, an ELF file with one executable section per function.

Format: sections `.text.<function>` of machine code (SASS), padded with no-operations to whole cache lines, as the
listings of `cuobjdump -elf` name them (https://docs.nvidia.com/cuda/cuda-binary-utilities); what else is in the file
(names, symbols, tables for the driver and the debugger) does not run. What `ptxas -v` prints: "Function properties for"
each function, its frame and spills on the next line, and for an entry point the registers on the one after.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from bot.core.reading import Assembled, EntryPoint, Reading
from bot.core.record import require_counts
from bot.errors import MalformedBinary
from bot.readers.elf import MACHINE_AT, MAGIC, SHF_EXECINSTR, Elf, functions, parse_elf, symbols
from bot.readers.object_code import code_digest

EM_CUDA = (190).to_bytes(2, "little")
MAX_DIGITS = 15
NV_INFO = frozenset({"SHT_LOPROC", str(0x70000000)})
SHF_INFO_LINK = 0x40
"""Of `.nv.info.<function>`, which tells of one function; `.nv.info` tells of them all."""
ATTRIBUTE, OF_FUNCTION = struct.Struct("<BBH"), struct.Struct("<II")
EIFMT_SVAL, EIATTR_FRAME_SIZE, EIATTR_REGCOUNT = 0x04, 0x11, 0x2F
"""As `cuobjdump -elf` names them: a value of so many bytes; frame and registers of a function."""
PROPERTIES = re.compile(
    r"Function properties for (?P<name>\S+)\s*\n"
    r"\s*\d{1,15} bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads[ \t]*"
    r"(?:\n[^\n]*: Used (?P<registers>\d+) registers)?"
)


@dataclass(frozen=True, slots=True)
class MachineCode:
    """One function of a cubin.

    Attributes:
        registers: None for a function that is only called: its entry points count them.
        sass_bytes: of its section; None where it has none of its own.
    """

    name: str
    registers: int | None
    spill_bytes: int
    sass_bytes: int | None


@dataclass(frozen=True, slots=True)
class Module:
    """One assembled module: machine code of all its functions, and each of them."""

    sass_bytes: int
    functions: tuple[MachineCode, ...]


class CubinReader:
    """Cubins, which no artifact holds: an assembler makes them."""

    def accepts(self, data: bytes) -> bool:
        """True for a little-endian ELF of the CUDA machine."""
        return data.startswith(MAGIC) and data[MACHINE_AT : MACHINE_AT + 2] == EM_CUDA

    def read(self, data: bytes) -> Reading:
        """Parts per kind of section, `text` the machine code; an entry point per function that has a section."""
        if not self.accepts(data):
            raise MalformedBinary("no ELF of the CUDA machine", where="cubin")
        elf, by_section = parse_elf(data), dict[int, list[str]]()
        for symbol in functions(elf):
            section = elf.by_index.get(symbol.section)
            # A function's section begins with it: what stands behind it there are its own helpers.
            if section is not None and section.flags & SHF_EXECINSTR and symbol.value == section.address:
                by_section.setdefault(section.index, []).append(symbol.name)
        alone = {names[0]: elf.by_index[index].span.of(data) for index, names in by_section.items() if len(names) == 1}
        told = _attributes(elf)
        entries = tuple(
            EntryPoint(
                name,
                code_bytes=len(code),
                stack_bytes=told.get((name, EIATTR_FRAME_SIZE)),
                stack_kind="static" if (name, EIATTR_FRAME_SIZE) in told else None,
                code=code_digest(code),
                registers=told.get((name, EIATTR_REGCOUNT)),
            )
            for name, code in alone.items()
        )
        return Reading("cubin", len(data), elf.parts, entries)


def _attributes(elf: Elf) -> dict[tuple[str, int], int]:
    """Function and attribute → value, of those attributes of the file that are a number of a function."""
    info = next((one for one in elf.sections if one.type in NV_INFO and not one.flags & SHF_INFO_LINK), None)
    data, names, at = info.span.of(elf.data) if info else b"", symbols(elf), 0
    told: dict[tuple[str, int], int] = {}
    while at + ATTRIBUTE.size <= len(data):
        form, kind, size = ATTRIBUTE.unpack_from(data, at)
        at += ATTRIBUTE.size
        if form != EIFMT_SVAL:  # its value is the size
            continue
        if size == OF_FUNCTION.size and at + size <= len(data):
            symbol, value = OF_FUNCTION.unpack_from(data, at)
            if symbol < len(names):
                told[names[symbol].name, kind] = value
        at += size
    return told


def read_assembled(assembled: Assembled) -> Module:
    """What one module became; raises `MalformedBinary`, also where cubin and print tell of different functions."""
    reading = CubinReader().read(assembled.cubin)
    sizes = {entry.name: entry.code_bytes for entry in reading.entry_points}
    printed = {
        match["name"]: MachineCode(
            name=match["name"],
            registers=_number(match, "registers"),
            spill_bytes=(_number(match, "stores") or 0) + (_number(match, "loads") or 0),
            sass_bytes=sizes.get(match["name"]),
        )
        for match in PROPERTIES.finditer(assembled.said)
    }
    if missing := sizes.keys() - printed.keys():
        raise MalformedBinary(f"ptxas says nothing of {min(missing)[:80]!r}", where="cubin")
    return Module(reading.parts.get("text", 0), tuple(printed.values()))


def _number(match: re.Match[str], what: str) -> int | None:
    digits = match[what]
    if digits is None:
        return None
    if len(digits) > MAX_DIGITS:
        raise MalformedBinary(f"{what} of {len(digits)} digits", where="ptxas")
    require_counts({what: int(digits)}, "ptxas")
    return int(digits)
