"""All readers of executables, in one table; the first that accepts the bytes reads them."""

from __future__ import annotations

from bot.core.values.reading import Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.formats.elf import ElfReader
from bot.readers.formats.executable import ExecutableReader
from bot.readers.formats.hsaco import HsacoReader
from bot.readers.formats.msl import MslReader
from bot.readers.formats.ptx import PtxReader
from bot.readers.formats.spirv import SpirvReader
from bot.readers.formats.vm_bytecode import VmBytecodeReader

EMBEDDED: tuple[Reader, ...] = (HsacoReader(), ElfReader(), ExecutableReader(), VmBytecodeReader())
"""Formats that an artifact embeds as they are, each with an unmistakable magic; code objects before other ELF."""
READERS: tuple[Reader, ...] = (*EMBEDDED, SpirvReader(), PtxReader(), MslReader())
"""All formats; those of the second row come inside containers."""


def is_executable(data: bytes) -> bool:
    """True where a segment of an artifact is an executable, and not constant data."""
    return any(reader.accepts(data) for reader in EMBEDDED)


def read_executable(data: bytes) -> Reading:
    """Read a binary of any known format; raises `MalformedBinary`, also for unknown ones."""
    for reader in READERS:
        if reader.accepts(data):
            return reader.read(data)
    raise MalformedBinary(f"{len(data)} bytes of an unknown format, starting {data[:8].hex(' ')}", where="executable")
