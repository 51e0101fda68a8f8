"""IREE VM modules: the flatbuffer of bytecode and read-only data that vmvx executables and whole artifacts share.

Format: `runtime/src/iree/schemas/bytecode_module_def.fbs` and `runtime/src/iree/vm/bytecode/archive.c` of
https://github.com/iree-org/iree: an optional ZIP local header, a 32-bit size, the flatbuffer `IREE` of that size and,
from the next multiple of 64 bytes on, the external read-only segments. The fields below stood so from 3.5 to 3.13.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bot.core.reading import EntryPoint, Reading
from bot.errors import MalformedBinary
from bot.readers.elf import Budget, Span, label_sizes, span_inside
from bot.readers.flatbuffer import INT32, OFFSET_BYTES, UINT64, Table, identifier, root_table
from bot.readers.object_code import code_digest

IDENTIFIER, WHERE = b"IREE", "VM module"
SEGMENT_ALIGNMENT = 64
ZIP_MAGIC = b"PK\x03\x04"
ZIP_LENGTHS, ZIP_LENGTHS_AT, ZIP_HEADER_BYTES = struct.Struct("<HH"), 26, 30
"""Where a ZIP local header has the lengths of its name and extra field, and its size without them (APPNOTE 4.3.7)."""
MODULE = """name version requirements attrs types dependencies imported_functions exported_functions function_signatures
    rodata_segments rwdata_segments module_state function_descriptors bytecode_version bytecode_data"""
EXPORT = "local_name internal_ordinal"
SEGMENT = "compression_type_type compression_type embedded_data external_data_offset external_data_length"
DESCRIPTOR = struct.Struct("<iiIHHHH")
"""FunctionDescriptor: bytecode offset and length, requirements, reserved, blocks, i32 and ref registers."""


@dataclass(frozen=True, slots=True)
class VmModule:
    """Where a module has its bytes; `segments`: read-only data in its order, embedded or external, each span once."""

    root: Table
    bytecode: Span
    segments: tuple[Span, ...]


def accepts(data: bytes) -> bool:
    """True for a size-prefixed flatbuffer with the identifier `IREE`."""
    return identifier(data, OFFSET_BYTES) == IDENTIFIER


def read(data: bytes) -> Reading:
    """A module that is an executable: parts `bytecode` and `rodata`; an entry point per exported function."""
    module = parse_module(data)
    labelled = {module.bytecode: "bytecode"} | dict.fromkeys(module.segments, "rodata")
    return Reading("vm-bytecode", len(data), label_sizes(labelled, "vm-bytecode"), tuple(_entry_points(module)))


def parse_module(data: bytes) -> VmModule:
    """The outline of a module; raises `MalformedBinary`."""
    start = OFFSET_BYTES
    if data.startswith(ZIP_MAGIC):
        if len(data) < ZIP_HEADER_BYTES:
            raise MalformedBinary("a ZIP header that is cut short", where=WHERE)
        start += ZIP_HEADER_BYTES + sum(ZIP_LENGTHS.unpack_from(data, ZIP_LENGTHS_AT))
    size = int.from_bytes(data[start - OFFSET_BYTES : start], "little")
    flatbuffer = span_inside(start, size, len(data), WHERE)
    root = root_table(data, start, IDENTIFIER, WHERE, MODULE)
    bytecode = root.span("bytecode_data") or Span(start, 0)
    external_at = -(-flatbuffer.end // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT
    segments: dict[Span, None] = {}
    for table in root.tables("rodata_segments", SEGMENT):
        span = table.span("embedded_data")
        if span is None:
            offset, length = table.scalar("external_data_offset", UINT64), table.scalar("external_data_length", UINT64)
            span = span_inside(external_at + offset if length else 0, length, len(data), WHERE)
        segments[span] = None
    return VmModule(root, bytecode, tuple(segment for segment in segments if segment.size))


def _entry_points(module: VmModule) -> Iterator[EntryPoint]:
    data, descriptors = module.root.data, module.root.span("function_descriptors", DESCRIPTOR.size) or Span(0, 0)
    budget = Budget(len(data), WHERE)
    for export in module.root.tables("exported_functions", EXPORT):
        name, ordinal = export.text("local_name"), export.scalar("internal_ordinal", INT32)
        if not 0 <= ordinal * DESCRIPTOR.size < descriptors.size:
            raise MalformedBinary(f"export {name[:80]!r} names function {ordinal}", where=WHERE)
        offset, length, *_ = DESCRIPTOR.unpack_from(data, descriptors.start + ordinal * DESCRIPTOR.size)
        inside = span_inside(offset, length, module.bytecode.size, WHERE)
        if not name.startswith("__"):  # `__init` and its like are the loader's, no entry points
            budget.spend(length)
            code = Span(module.bytecode.start + inside.start, length).of(data)
            yield EntryPoint(name, code_bytes=length, code=code_digest(code))
