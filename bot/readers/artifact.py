"""Read the artifact (`.vmfb`), a VM module, with the executables in it.

Every byte of it is under exactly one of four labels. Its bytecode is `vm_bytes`. A
read-only segment that is an executable counts whole as `executable_bytes`, any other as
`rodata_bytes`. The tables of the flatbuffer and padding are `unattributed_bytes`. A
module that loads executables, none of which is of a known format, has neither of the
two middle figures: any of its segments may be an executable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.core.reading import ArtifactReading, PtxModule, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import (
    ByteSpan,
    require_disjoint,
)
from bot.readers.code_object import CODE_OBJECT
from bot.readers.container import (
    CONTAINER,
    HEADER,
    LAYOUTS,
    has_header,
    is_container,
    open_container,
)
from bot.readers.elf import ELF
from bot.readers.elf import MAGIC as ELF_MAGIC
from bot.readers.flatbuffer_table import (
    OFFSET_BYTES,
    identifier,
)
from bot.readers.metal import METAL
from bot.readers.ptx import PTX, device_of
from bot.readers.spirv import SPIRV
from bot.readers.vm_module import (
    VM_IDENTIFIER,
    VM_MODULE,
    ZIP_SIGNATURE,
    VmModule,
    parse_module,
)

EMBEDDED = (CODE_OBJECT, ELF, CONTAINER, VM_MODULE)
"""Formats that an artifact embeds as they are, each with an unmistakable magic.

Code objects come before other ELF files. `_begins_like_executable` knows how each of
them begins.
"""
READERS = (*EMBEDDED, SPIRV, PTX, METAL)
"""All formats; those that are not embedded come inside containers."""
HEAD_BYTES = HEADER.size + 2 * OFFSET_BYTES
"""How many bytes show whether a segment begins like a format in `EMBEDDED`."""
EXECUTABLE_CALL = re.compile(r"hal\w*\.executable\.")
"""Functions of the runtime that take executables, `hal.executable.create` above all."""
HIDDEN = (
    "the bot cannot read its executables, so they cannot be separated from constants"
)


def read_artifact(data: bytes) -> ArtifactReading:
    """Read a `.vmfb`, with all executables in it.

    An executable that cannot be read keeps its bytes and leaves a line in `unread`.

    Raises:
        MalformedBinary: the artifact itself is damaged: cut short, or with overlapping
            parts.
    """
    module = parse_module(data)
    require_disjoint((module.bytecode, *module.segments), "artifact")
    segment_bytes = sum(segment.size for segment in module.segments)
    executable_bytes = 0
    readings = list[Reading]()
    unread = list[str]()
    executables = _executables(module, data)
    for segment in executables:
        executable_bytes += segment.size
        try:
            readings.append(read_executable(segment.of(data)))
        except MalformedBinary as error:
            unread.append(
                f"executable of {segment.size} bytes at offset {segment.start}:"
                f" {error.line}"
            )
    hidden = not executables and _takes_executables(module)
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
    """Return all PTX modules of an artifact in file order; raises `MalformedBinary`."""
    modules = list[PtxModule]()
    for segment in _executables(parse_module(data), data):
        executable = segment.of(data)
        if not is_container(executable):
            continue
        layout, root = open_container(executable)
        if layout.format != "ptx":
            continue
        tables = root.tables("modules", layout.module)
        spans = dict.fromkeys(filter(None, map(layout.span, tables)))
        require_disjoint(spans, layout.format)
        for span in spans:
            text = span.of(executable).rstrip(b"\0")
            modules.append(PtxModule(device_of(text), text))
    return tuple(modules)


def _executables(module: VmModule, data: bytes) -> list[ByteSpan]:
    """Return the segments that are executables, in file order."""
    segments = sorted(module.segments)
    return [segment for segment in segments if _is_executable_at(segment, data)]


def _takes_executables(module: VmModule) -> bool:
    """Return True where the program calls functions that take executables."""
    for function in module.root.tables("imported_functions", "full_name"):
        if EXECUTABLE_CALL.match(function.text("full_name")):
            return True
    return False


def _is_executable_at(segment: ByteSpan, data: bytes) -> bool:
    """Return True if this segment of an artifact is an executable.

    Segments can be as large as the artifact. Only a segment that begins like an
    executable is copied.
    """
    head = ByteSpan(segment.start, min(segment.size, HEAD_BYTES)).of(data)
    return _begins_like_executable(head) and is_executable(segment.of(data))


def _begins_like_executable(head: bytes) -> bool:
    if has_header(head) or identifier(head, 0) in LAYOUTS:
        return True
    return (
        head.startswith((ELF_MAGIC, ZIP_SIGNATURE))
        or identifier(head, OFFSET_BYTES) == VM_IDENTIFIER
    )


def is_executable(data: bytes) -> bool:
    """Return True where a segment is an executable, and not constant data."""
    return any(reader.accepts(data) for reader in EMBEDDED)


def read_executable(
    data: bytes, readers: Iterable[Reader] = READERS, where: str = "executable"
) -> Reading:
    """Read a binary of any known format.

    Raises `MalformedBinary`, also for a binary of an unknown format.
    """
    for reader in readers:
        if reader.accepts(data):
            return reader.read(data)
    raise MalformedBinary(
        f"{len(data)} bytes of an unknown format, starting {data[:8].hex(' ')}",
        where=where,
    )
