"""The artifact (`.vmfb`), a VM module: every byte of it under exactly one of four labels.

Its bytecode is `vm_bytes`; a read-only segment that is an executable counts whole as `executable_bytes`, any other as
`rodata_bytes`; the tables of the flatbuffer and padding are `unattributed_bytes`. A module that loads executables, none
of which is of a known format, has neither of the two middle figures: any of its segments may be one.
"""

from __future__ import annotations

import re

from bot.core.reading import ArtifactReading, PtxModule, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers import elf, executable, hsaco, msl, ptx, spirv, vm_module
from bot.readers.elf import require_disjoint
from bot.readers.vm_module import parse_module

EMBEDDED: tuple[Reader, ...] = (hsaco, elf, executable, vm_module)
"""Formats that an artifact embeds as they are, each with an unmistakable magic; code objects before other ELF."""
READERS: tuple[Reader, ...] = (*EMBEDDED, spirv, ptx, msl)
"""All formats; those of the second row come inside containers."""
EXECUTABLE_CALL = re.compile(r"hal\w*\.executable\.")
"""Functions of the runtime that take executables, `hal.executable.create` above all."""
HIDDEN = "no reader knows the format of its executables, so they cannot be told apart from constants"


def read_artifact(data: bytes) -> ArtifactReading:
    """Read a `.vmfb`, with all executables in it.

    An executable that cannot be read keeps its bytes and leaves a line in `unread`.

    Raises:
        MalformedBinary: the artifact itself is damaged: cut short, or with overlapping parts.
    """
    module = parse_module(data)
    require_disjoint((module.bytecode, *module.segments), "artifact")
    executables = [segment for segment in module.segments if is_executable(segment.of(data))]
    executable_bytes = sum(segment.size for segment in executables)
    segment_bytes = sum(segment.size for segment in module.segments)
    imports = module.root.tables("imported_functions", "full_name")
    hidden = not executables and any(EXECUTABLE_CALL.match(each.text("full_name")) for each in imports)
    readings, unread = list[Reading](), list[str]()
    for segment in sorted(executables):
        try:
            readings.append(read_executable(segment.of(data)))
        except MalformedBinary as error:
            unread.append(f"executable of {segment.size} bytes at offset {segment.start}: {error.line}")
    return ArtifactReading(
        artifact_bytes=len(data),
        executable_bytes=None if hidden else executable_bytes,
        vm_bytes=module.bytecode.size,
        rodata_bytes=None if hidden else segment_bytes - executable_bytes,
        unattributed_bytes=len(data) - module.bytecode.size - segment_bytes,
        executables=tuple(readings),
        unread=(HIDDEN,) if hidden else tuple(unread),
    )


def ptx_modules(data: bytes) -> tuple[PtxModule, ...]:
    """All PTX modules of an artifact, in file order; raises `MalformedBinary`."""
    executables = [segment.of(data) for segment in sorted(parse_module(data).segments)]
    return tuple(each for one in executables if executable.accepts(one) for each in executable.ptx_modules(one))


def is_executable(data: bytes) -> bool:
    """True where a segment of an artifact is an executable, and not constant data."""
    return any(reader.accepts(data) for reader in EMBEDDED)


def read_executable(data: bytes) -> Reading:
    """Read a binary of any known format; raises `MalformedBinary`, also for unknown ones."""
    for reader in READERS:
        if reader.accepts(data):
            return reader.read(data)
    raise MalformedBinary(f"{len(data)} bytes of an unknown format, starting {data[:8].hex(' ')}", where="executable")
