"""The artifact (`.vmfb`): every byte of it under exactly one of four labels.

An artifact is an IREE VM module (see `bot.measure.vm_bytecode` for the format). Its bytecode is `vm_bytes`; a
read-only segment that is an executable counts whole as `executable_bytes`, any other as `rodata_bytes`; the tables of
the flatbuffer and padding are `unattributed_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.core.reading import ArtifactReading, Reading
from bot.errors import MalformedBinary
from bot.measure.readers import is_executable, read_executable
from bot.measure.spans import Span, require_disjoint
from bot.measure.vm_bytecode import parse_module


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
    rodata_bytes = sum(segment.size for segment in module.segments) - executable_bytes
    readings, unread = _read_all(data, sorted(executables))
    return ArtifactReading(
        artifact_bytes=len(data),
        executable_bytes=executable_bytes,
        vm_bytes=module.bytecode.size,
        rodata_bytes=rodata_bytes,
        unattributed_bytes=len(data) - executable_bytes - module.bytecode.size - rodata_bytes,
        executables=readings,
        unread=unread,
    )


def _read_all(data: bytes, segments: Iterable[Span]) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
    readings: list[Reading] = []
    unread: list[str] = []
    for segment in segments:
        try:
            readings.append(read_executable(segment.of(data)))
        except MalformedBinary as error:
            unread.append(f"executable of {segment.size} bytes at offset {segment.start}: {error.line}")
    return tuple(readings), tuple(unread)
