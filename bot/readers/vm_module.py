"""Read VM modules: vmvx executables, and whole artifacts.

Format: `runtime/src/iree/schemas/bytecode_module_def.fbs` and
`runtime/src/iree/vm/bytecode/archive.c` of https://github.com/iree-org/iree: a 32-bit
size, the flatbuffer `IREE` of that size and, from the next multiple of 64 bytes on, the
external read-only segments. By default the compiler writes a polyglot: a ZIP whose
first file is the flatbuffer, so that the header of a ZIP's local file comes first
(https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.7). ZIP headers and
its directory are unattributed. All fields stood so from 3.5 to 3.13.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bot.core.reading import EntryPoint, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import (
    ByteSpan,
    WorkLimit,
    code_digest,
    label_sizes,
    span_inside,
)
from bot.readers.flatbuffer_table import (
    INT32,
    OFFSET_BYTES,
    UINT64,
    FlatBufferTable,
    identifier,
    root_table,
)

VM_IDENTIFIER = b"IREE"
WHERE = "VM module"
SEGMENT_ALIGNMENT = 64
MODULE = (
    "name version requirements attrs types dependencies imported_functions"
    " exported_functions function_signatures rodata_segments rwdata_segments"
    " module_state function_descriptors bytecode_version bytecode_data"
)
VM_EXPORT = "local_name internal_ordinal"
SEGMENT = (
    "compression_type_type compression_type embedded_data external_data_offset"
    " external_data_length"
)
DESCRIPTOR = struct.Struct("<iiIHHHH")
"""FunctionDescriptor: the fields of one function.

Bytecode offset and length, requirements, reserved, blocks, i32 and ref registers.
"""
LOADER_PREFIX = "__"
"""The beginning of functions such as `__init`, which the loader calls.

They are not entry points.
"""
ZIP_FILE = struct.Struct("<4s22xHH")
"""The header of a ZIP's local file.

It has the signature, and the lengths of the name and of the extra field after it.
"""
ZIP_SIGNATURE = b"PK\3\4"


@dataclass(frozen=True, slots=True)
class VmModule:
    """The places of a module's bytes.

    `segments`: read-only data in its order, embedded or external, each span once.
    """

    root: FlatBufferTable
    bytecode: ByteSpan
    segments: tuple[ByteSpan, ...]


def read_vm_module(data: bytes) -> Reading:
    """Read a module that is an executable, as the parts `bytecode` and `rodata`.

    It has an entry point for each exported function.
    """
    module = parse_module(data)
    labelled = {module.bytecode: "bytecode"} | dict.fromkeys(module.segments, "rodata")
    return Reading(
        format="vm-bytecode",
        size_bytes=len(data),
        parts=label_sizes(labelled, "vm-bytecode"),
        entry_points=tuple(_vm_functions(module)),
    )


def parse_module(data: bytes) -> VmModule:
    """Return the outline of a module; raises `MalformedBinary`."""
    start = module_start(data)
    size = int.from_bytes(data[start : start + OFFSET_BYTES], "little")
    flatbuffer = span_inside(
        start + OFFSET_BYTES, size=size, whole_bytes=len(data), where=WHERE
    )
    root = root_table(
        data, start=flatbuffer.start, expected=VM_IDENTIFIER, where=WHERE, fields=MODULE
    )
    bytecode = root.span("bytecode_data") or ByteSpan(OFFSET_BYTES, 0)
    external_at = -(-flatbuffer.end // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT
    segments: dict[ByteSpan, None] = {}
    for table in root.tables("rodata_segments", SEGMENT):
        span = table.span("embedded_data")
        if span is None:
            offset = table.scalar("external_data_offset", UINT64)
            length = table.scalar("external_data_length", UINT64)
            span = span_inside(
                external_at + offset if length else 0,
                size=length,
                whole_bytes=len(data),
                where=WHERE,
            )
        segments[span] = None
    return VmModule(
        root, bytecode, tuple(segment for segment in segments if segment.size)
    )


def module_start(data: bytes) -> int:
    """Return the offset of a module's size.

    It is after the header of a ZIP's first file, else 0.
    """
    if len(data) < ZIP_FILE.size:
        return 0
    signature, name_bytes, extra_bytes = ZIP_FILE.unpack_from(data)
    if signature != ZIP_SIGNATURE:
        return 0
    return ZIP_FILE.size + int(name_bytes) + int(extra_bytes)


def _is_vm_module(data: bytes) -> bool:
    return identifier(data, module_start(data) + OFFSET_BYTES) == VM_IDENTIFIER


def exported_functions(data: bytes) -> tuple[str, ...]:
    """Return the functions of an artifact that a program can call.

    Functions that the loader calls are left out. Raises `MalformedBinary`.
    """
    exports = parse_module(data).root.tables("exported_functions", VM_EXPORT)
    names = (export.text("local_name") for export in exports)
    return tuple(name for name in names if not name.startswith(LOADER_PREFIX))


def _vm_functions(module: VmModule) -> Iterator[EntryPoint]:
    data = module.root.data
    descriptors = module.root.span("function_descriptors", DESCRIPTOR.size) or ByteSpan(
        0, 0
    )
    budget = WorkLimit(len(data), WHERE)
    for export in module.root.tables("exported_functions", VM_EXPORT):
        name = export.text("local_name")
        ordinal = export.scalar("internal_ordinal", INT32)
        if not 0 <= ordinal * DESCRIPTOR.size < descriptors.size:
            raise MalformedBinary(
                f"export {name[:80]!r} names function {ordinal}", where=WHERE
            )
        offset, length, *_ = DESCRIPTOR.unpack_from(
            data, descriptors.start + ordinal * DESCRIPTOR.size
        )
        inside = span_inside(
            offset, size=length, whole_bytes=module.bytecode.size, where=WHERE
        )
        if not name.startswith(LOADER_PREFIX):
            budget.spend(length)
            code = ByteSpan(module.bytecode.start + inside.start, length).of(data)
            yield EntryPoint(name, code_bytes=length, code=code_digest(code))


VM_MODULE = Reader(_is_vm_module, read_vm_module)
