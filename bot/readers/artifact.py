"""IREE VM modules: the flatbuffer of bytecode and read-only data that vmvx executables and whole artifacts share.

Format: `runtime/src/iree/schemas/bytecode_module_def.fbs` and `runtime/src/iree/vm/bytecode/archive.c` of
https://github.com/iree-org/iree: an optional ZIP local header, a 32-bit size, the flatbuffer `IREE` of that size and,
from the next multiple of 64 bytes on, the external read-only segments. The fields below stood so from 3.5 to 3.13.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from bot.core.reading import ArtifactReading, EntryPoint, PtxModule, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.budget import Budget
from bot.readers.elf import ElfReader, Span, label_sizes, require_disjoint, span_inside
from bot.readers.executable import ExecutableReader
from bot.readers.executable import ptx_modules as modules_of
from bot.readers.flatbuffer import INT32, OFFSET_BYTES, UINT64, Table, has_identifier, root_table
from bot.readers.hsaco import HsacoReader
from bot.readers.msl import MslReader
from bot.readers.object_code import code_digest
from bot.readers.ptx import PtxReader
from bot.readers.spirv import SpirvReader

IDENTIFIER = b"IREE"
SEGMENT_ALIGNMENT = 64
ZIP_MAGIC = b"PK\x03\x04"
ZIP_LENGTHS = struct.Struct("<HH")
ZIP_LENGTHS_AT, ZIP_HEADER_BYTES = 26, 30
"""Where a ZIP local header has the lengths of its name and extra field, and its size without them (APPNOTE 4.3.7)."""

MODULE = """name version requirements attrs types dependencies imported_functions exported_functions function_signatures
    rodata_segments rwdata_segments module_state function_descriptors bytecode_version bytecode_data"""
IMPORT, EXPORT = "full_name", "local_name internal_ordinal"
SEGMENT = "compression_type_type compression_type embedded_data external_data_offset external_data_length"
DESCRIPTOR = struct.Struct("<iiIHHHH")
"""FunctionDescriptor: bytecode offset and length, requirements, reserved, blocks, i32 and ref registers."""
EXECUTABLE_CALL = re.compile(r"hal\w*\.executable\.")
"""Functions of the runtime that take executables, `hal.executable.create` above all."""
PRIVATE_PREFIX = "__"
"""Exports such as `__init` are the loader's, no entry points."""


@dataclass(frozen=True, slots=True)
class VmModule:
    """Where a module keeps its bytes.

    Attributes:
        flatbuffer: without the size in front of it.
        segments: read-only data in the module's order, embedded or external, each span once.
    """

    root: Table
    flatbuffer: Span
    bytecode: Span
    segments: tuple[Span, ...]


class VmBytecodeReader:
    """VM modules used as executables (vmvx)."""

    def accepts(self, data: bytes) -> bool:
        """True for a size-prefixed flatbuffer with the identifier `IREE`."""
        return has_identifier(data, OFFSET_BYTES, IDENTIFIER)

    def read(self, data: bytes) -> Reading:
        """Parts `bytecode` and `rodata`; an entry point per exported function."""
        module = parse_module(data)
        labelled = {module.bytecode: "bytecode"} | dict.fromkeys(module.segments, "rodata")
        parts = label_sizes(labelled, "vm-bytecode")
        return Reading("vm-bytecode", len(data), parts, tuple(_entry_points(module)))


def parse_module(data: bytes) -> VmModule:
    """The outline of a module; raises `MalformedBinary`."""
    start = OFFSET_BYTES
    if data.startswith(ZIP_MAGIC):
        if len(data) < ZIP_HEADER_BYTES:
            raise MalformedBinary("a ZIP header that is cut short", where="VM module")
        start += ZIP_HEADER_BYTES + sum(ZIP_LENGTHS.unpack_from(data, ZIP_LENGTHS_AT))
    size = int.from_bytes(data[start - OFFSET_BYTES : start], "little")
    flatbuffer = span_inside(start, size, len(data), "VM module")
    root = root_table(data, start, IDENTIFIER, "VM module", MODULE)
    bytecode = root.span("bytecode_data") or Span(start, 0)
    external_at = -(-flatbuffer.end // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT
    segments: dict[Span, None] = {}
    for table in root.tables("rodata_segments", SEGMENT):
        span = table.span("embedded_data")
        if span is None:
            offset, length = table.scalar("external_data_offset", UINT64), table.scalar("external_data_length", UINT64)
            span = span_inside(external_at + offset if length else 0, length, len(data), "VM module")
        segments[span] = None
    return VmModule(root, flatbuffer, bytecode, tuple(segment for segment in segments if segment.size))


def _entry_points(module: VmModule) -> Iterator[EntryPoint]:
    descriptors = module.root.span("function_descriptors", DESCRIPTOR.size) or Span(0, 0)
    budget = Budget(len(module.root.data), "VM module")
    for export in module.root.tables("exported_functions", EXPORT):
        name, ordinal = export.text("local_name"), export.scalar("internal_ordinal", INT32)
        if not 0 <= ordinal * DESCRIPTOR.size < descriptors.size:
            raise MalformedBinary(f"export {name[:80]!r} names function {ordinal}", where="VM module")
        offset, length, *_ = DESCRIPTOR.unpack_from(module.root.data, descriptors.start + ordinal * DESCRIPTOR.size)
        inside = span_inside(offset, length, module.bytecode.size, "VM module")
        if not name.startswith(PRIVATE_PREFIX):
            budget.spend(length)
            code = Span(module.bytecode.start + inside.start, length).of(module.root.data)
            yield EntryPoint(name, code_bytes=length, code=code_digest(code))


# The artifact (`.vmfb`): every byte of it under exactly one of four labels.
#
# An artifact is an IREE VM module (its format stands above). Its bytecode is `vm_bytes`; a
# read-only segment that is an executable counts whole as `executable_bytes`, any other as `rodata_bytes`; the tables of
# the flatbuffer and padding are `unattributed_bytes`. A module that loads executables, none of which is of a known
# format, has neither of the two middle figures: any of its segments may be one.


EMBEDDED: tuple[Reader, ...] = (HsacoReader(), ElfReader(), ExecutableReader(), VmBytecodeReader())
"""Formats that an artifact embeds as they are, each with an unmistakable magic; code objects before other ELF."""
READERS: tuple[Reader, ...] = (*EMBEDDED, SpirvReader(), PtxReader(), MslReader())
"""All formats; those of the second row come inside containers."""
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
    imports = module.root.tables("imported_functions", IMPORT)
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
    container = ExecutableReader()
    executables = [segment.of(data) for segment in sorted(parse_module(data).segments)]
    return tuple(each for one in executables if container.accepts(one) for each in modules_of(one))


def is_executable(data: bytes) -> bool:
    """True where a segment of an artifact is an executable, and not constant data."""
    return any(reader.accepts(data) for reader in EMBEDDED)


def read_executable(data: bytes) -> Reading:
    """Read a binary of any known format; raises `MalformedBinary`, also for unknown ones."""
    for reader in READERS:
        if reader.accepts(data):
            return reader.read(data)
    raise MalformedBinary(f"{len(data)} bytes of an unknown format, starting {data[:8].hex(' ')}", where="executable")
