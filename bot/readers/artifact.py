"""Read the artifact (`.vmfb`), a VM module, with the executables in it.

Every byte of it is under exactly one of four labels.

Its bytecode is `vm_bytes`; a read-only segment that is an executable counts whole as
`executable_bytes`, any other as `rodata_bytes`; the tables of the flatbuffer and
padding are `unattributed_bytes`. A module that loads executables, none of which is of a
known format, has neither of the two middle figures: any of its segments may be one.

VM modules, of vmvx executables and whole artifacts:
`runtime/src/iree/schemas/bytecode_module_def.fbs` and
`runtime/src/iree/vm/bytecode/archive.c` of https://github.com/iree-org/iree: a 32-bit
size, the flatbuffer `IREE` of that size and, from the next multiple of 64 bytes on, the
external read-only segments. By default the compiler writes a polyglot: a ZIP whose
first file is the flatbuffer, so that the header of a ZIP's local file comes first
(https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.7). ZIP headers and
its directory are unattributed.

Executables of the GPU targets are flatbuffers that carry the modules for the driver,
with or without a header: `runtime/src/iree/base/internal/flatcc/parsing.h` (64 bytes of
header: magic, version, 64-bit content size, zeros) and
`runtime/src/iree/schemas/{cuda,hip,vulkan,metal}_executable_def.fbs`. The header's
magic is the flatbuffer's file identifier; up to 3.8 there is no header.

All fields below stood so from 3.5 to 3.13, and have the schemas' names but for what
each container calls otherwise: `exports`, `modules`, an export's `ordinal` and
`kernel`, a module's `image`. Flatbuffers' own library trusts its input, and imports
numpy wherever it is installed. Here every offset and count is checked against the
buffer before it is followed (https://flatbuffers.dev/internals/: tables, vtables,
vectors; all little-endian, offsets relative to the place where they are stored).
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.reading import ArtifactReading, EntryPoint, PtxModule, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import (
    ByteSpan,
    WorkLimit,
    code_digest,
    label_sizes,
    require_disjoint,
    span_inside,
)
from bot.readers.elf import CODE_OBJECT, ELF
from bot.readers.elf import MAGIC as ELF_MAGIC
from bot.readers.kernel_text import METAL, PTX, device_of, read_ptx
from bot.readers.spirv import SPIRV, WORD_BYTES

INT32 = struct.Struct("<i")
UINT16 = struct.Struct("<H")
UINT32 = struct.Struct("<I")
UINT64 = struct.Struct("<Q")
OFFSET_BYTES = 4
MAX_TABLES = 1 << 16
"""The most tables in one vector.

More are refused: crafted vectors may name one table a million times.
"""
MAX_TEXT_BYTES = 1024  # longer names are refused: a million tables may share one


@dataclass(frozen=True, slots=True)
class FlatBufferTable:
    """One table of a schema."""

    data: bytes  # the buffer, or the file that holds it; spans are relative to its first byte
    position: int  # offset of the table in `data`
    where: str
    # their names in the order of the schema, with blanks between, up to the last that
    # is read; a union takes two. A name that is not among them is that of a field which
    # the table does not have
    fields: str

    def scalar(self, name: str, layout: struct.Struct) -> int:
        """Return the number in the field, 0 where the table does not have it."""
        offset = self._field(name, layout.size)
        if offset is None:
            return 0
        return self._number(offset, layout)

    def span(self, name: str, item_bytes: int = 1) -> ByteSpan | None:
        """Return the contents of a vector or a string, without its count.

        The items of the vector have `item_bytes` each.
        """
        offset = self._field(name, OFFSET_BYTES)
        if offset is None:
            return None
        start = offset + self._number(offset, UINT32)
        count = self._number(start, UINT32)
        return span_inside(
            start + OFFSET_BYTES,
            size=count * item_bytes,
            whole_bytes=len(self.data),
            where=self.where,
        )

    def text(self, name: str) -> str:
        """Return the string in the field, empty where the table does not have it."""
        span = self.span(name) or ByteSpan(0, 0)
        if span.size > MAX_TEXT_BYTES:
            raise MalformedBinary(f"a name of {span.size} bytes", where=self.where)
        return span.of(self.data).decode("utf-8", "replace")

    def table(self, name: str, fields: str) -> FlatBufferTable | None:
        """Return the table in the field, which has these fields itself."""
        offset = self._field(name, OFFSET_BYTES)
        if offset is None:
            return None
        return FlatBufferTable(
            data=self.data,
            position=offset + self._number(offset, UINT32),
            where=self.where,
            fields=fields,
        )

    def tables(self, name: str, fields: str) -> Iterator[FlatBufferTable]:
        """Return the tables of a vector, in order, each with these fields."""
        span = self.span(name, OFFSET_BYTES) or ByteSpan(0, 0)
        if span.size > MAX_TABLES * OFFSET_BYTES:
            raise MalformedBinary(
                f"a vector of {span.size // OFFSET_BYTES} tables", where=self.where
            )
        for offset in range(span.start, span.end, OFFSET_BYTES):
            yield FlatBufferTable(
                data=self.data,
                position=offset + self._number(offset, UINT32),
                where=self.where,
                fields=fields,
            )

    def _field(self, name: str, size_bytes: int) -> int | None:
        """Offset of the field's value, None where the vtable does not have it."""
        vtable = self.position - self._number(self.position, INT32)
        slot = _slot(self.fields, name)
        if slot is None or slot * 2 + 4 >= self._number(vtable, UINT16):
            return None
        offset = self._number(vtable + slot * 2 + 4, UINT16)
        start = self.position + offset
        if offset:
            return span_inside(
                start, size=size_bytes, whole_bytes=len(self.data), where=self.where
            ).start
        return None

    def _number(self, offset: int, layout: struct.Struct) -> int:
        span_inside(
            offset, size=layout.size, whole_bytes=len(self.data), where=self.where
        )
        return int(layout.unpack_from(self.data, offset)[0])


@cache
def _slot(fields: str, name: str) -> int | None:
    names = fields.split()
    if name in names:
        return names.index(name)
    return None


def root_table(
    data: bytes, start: int, expected: bytes, where: str, fields: str
) -> FlatBufferTable:
    """Return the root of the buffer that starts at `start`.

    Raises `MalformedBinary` where the file identifier is not `expected`, the four bytes
    of the schema's `file_identifier`.
    """
    if start < 0 or identifier(data, start) != expected:
        raise MalformedBinary(
            f"no flatbuffer with the identifier {expected!r}", where=where
        )
    return FlatBufferTable(
        data=data,
        position=start + int.from_bytes(data[start : start + OFFSET_BYTES], "little"),
        where=where,
        fields=fields,
    )


def identifier(data: bytes, start: int) -> bytes:
    """Return what stands in the place of the file identifier of a buffer.

    It is the four bytes behind the root's offset, which is at `start`.
    """
    return data[start + OFFSET_BYTES : start + 2 * OFFSET_BYTES]


# VM modules.


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
"""How `__init` and its like begin, which the loader calls: no entry points."""
ZIP_FILE = struct.Struct("<4s22xHH")
"""Header of a ZIP's local file.

It has the signature, and the bytes of the name and of the extra field that follow.
"""
ZIP_SIGNATURE = b"PK\3\4"


@dataclass(frozen=True, slots=True)
class VmModule:
    """Where a module has its bytes.

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

    It is behind the header of a ZIP's first file, else 0.
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


# Containers of the GPU targets.


HEADER = struct.Struct("<4sIQ48s")
"""iree_flatbuffer_file_header_t.

Magic, version, bytes of content after the header, reserved (zero).
"""
RESERVED_AT = 16
ROOT = "exports modules source_files"
VULKAN_ROOT = "exports descriptor_set_layouts pipeline_layouts modules source_files"
EXPORT = (
    "ordinal kernel block_dims block_shared_memory_size constant_count binding_flags"
    " debug_info"
)
VULKAN_EXPORT = "ordinal kernel pipeline_layout_ordinal subgroup_size debug_info"
METAL_EXPORT = (
    "ordinal kernel max_threads_per_threadgroup threadgroup_size"
    " threadgroup_size_aligned constant_count binding_flags debug_info name"
)


class Layout(NamedTuple):
    """How one kind of container is laid out.

    `format` and `read` are those of the modules in it.
    """

    format: str
    root: str
    module: str
    export: str
    read: Callable[[bytes], Reading]

    def span(self, module: FlatBufferTable) -> ByteSpan | None:
        """Where a module is.

        None where it has none that can be read: a Metal library only the driver reads.
        """
        if self.format == "msl":
            source = module.table("source", "version code")
            if source:
                return source.span("code")
            return None
        return module.span(self.module, WORD_BYTES if self.format == "spirv" else 1)


LAYOUTS = {
    b"CDA1": Layout(
        format="ptx",
        root=ROOT,
        module="image",
        export=EXPORT,
        read=partial(read_ptx, launch_known=True),
    ),
    b"HIP1": Layout(
        format="hsaco", root=ROOT, module="image", export=EXPORT, read=CODE_OBJECT.read
    ),
    b"VKE1": Layout(
        format="spirv",
        root=VULKAN_ROOT,
        module="spirv_code",
        export=VULKAN_EXPORT,
        read=SPIRV.read,
    ),
    b"MTL1": Layout(
        format="msl",
        root=ROOT,
        module="source metallib metallibsym",
        export=METAL_EXPORT,
        read=METAL.read,
    ),
}
"""Identifier → layout."""


def is_container(data: bytes) -> bool:
    """Return True for any identifier that stands twice.

    So an unknown one is refused, not overlooked. True, too, for a known one before a
    root with exports: four bytes alone may be a constant's.
    """
    if _has_header(data) or identifier(data, 0) not in LAYOUTS:
        return _has_header(data)
    try:
        return _open(data)[1].span("exports", OFFSET_BYTES) is not None
    except MalformedBinary:
        return False


def read_container(data: bytes) -> Reading:
    """Read a container: the parts of all modules, `header`, `sources` and `metallib`.

    Names, strings and tables are unattributed.
    """
    layout, root = _open(data)
    tables = tuple(root.tables("modules", layout.module))
    spans = tuple(map(layout.span, tables))
    labelled = {ByteSpan(0, HEADER.size if _has_header(data) else 0): "header"}
    sources = (
        source.span("content") for source in root.tables("source_files", "path content")
    )
    labelled |= {span: "sources" for span in sources if span}
    opaque = (
        table.span(name) for table in tables for name in ("metallib", "metallibsym")
    )
    labelled |= {span: "metallib" for span in opaque if span}
    # Disjoint first: then no byte is read twice, whatever the tables claim.
    require_disjoint({*labelled, *filter(None, spans)}, layout.format)
    readings = {
        span: layout.read(span.of(data)) if span else None
        for span in dict.fromkeys(spans)
    }
    parts = Counter(label_sizes(labelled, layout.format))
    for reading in filter(None, readings.values()):
        parts.update(reading.parts)
    entries = _entry_points(layout, root, [readings[span] for span in spans])
    return Reading(
        format=layout.format,
        size_bytes=len(data),
        parts=dict(parts),
        entry_points=tuple(entries),
    )


def _has_header(data: bytes) -> bool:
    # Constants may be all zeros, or anything else: only letters and digits name a
    # container.
    magic = data[:4]
    has_zeros = data[RESERVED_AT : HEADER.size] == bytes(HEADER.size - RESERVED_AT)
    return magic.isalnum() and has_zeros and identifier(data, HEADER.size) == magic


def _open(data: bytes) -> tuple[Layout, FlatBufferTable]:
    """Return the layout and the root.

    Raises `MalformedBinary`, also for content that is shorter than the header says.
    """
    start = HEADER.size if _has_header(data) else 0
    magic = identifier(data, start)
    version = 0
    if start:
        _, version, content_bytes, _ = HEADER.unpack_from(data)
        span_inside(
            start, size=content_bytes, whole_bytes=len(data), where="executable"
        )
    layout = LAYOUTS.get(magic)
    if layout is None or version != 0:
        raise MalformedBinary(
            f"unknown container {magic!r}, version {version}", where="executable"
        )
    return layout, root_table(
        data, start=start, expected=magic, where=layout.format, fields=layout.root
    )


def _entry_points(
    layout: Layout, root: FlatBufferTable, modules: list[Reading | None]
) -> Iterator[EntryPoint]:
    """Yield the exports in their own order.

    They have the names by which the program knows them.
    """
    entries_by_module = list[dict[str, EntryPoint] | None]()
    for reading in modules:
        if reading:
            entries_by_module.append(
                {entry.name: entry for entry in reading.entry_points}
            )
        else:
            entries_by_module.append(None)
    for export in root.tables("exports", layout.export):
        kernel = export.text("kernel")
        ordinal = export.scalar("ordinal", UINT32)
        if ordinal >= len(modules):
            raise MalformedBinary(
                f"export {kernel[:80]!r} names module {ordinal}", where=layout.format
            )
        entries = entries_by_module[ordinal]
        entry: EntryPoint | None = EntryPoint(kernel)
        if entries is not None:
            entry = entries.get(kernel)
        if entry is None:
            raise MalformedBinary(
                f"export {kernel[:80]!r} is not in its module", where=layout.format
            )
        launch_bytes = export.scalar("block_shared_memory_size", UINT32)
        if entry.workgroup_bytes is None:
            workgroup = None
        else:
            workgroup = entry.workgroup_bytes + launch_bytes
        debug = export.table("debug_info", "name")
        name = export.text("name") or (debug.text("name") if debug else "") or kernel
        yield replace(entry, name=name, workgroup_bytes=workgroup)


CONTAINER = Reader(is_container, read_container)
VM_MODULE = Reader(_is_vm_module, read_vm_module)
EMBEDDED = (CODE_OBJECT, ELF, CONTAINER, VM_MODULE)
"""Formats that an artifact embeds as they are, each with an unmistakable magic.

Code objects come before other ELF files. `_begins_like_executable` knows how each of
them begins.
"""
READERS = (*EMBEDDED, SPIRV, PTX, METAL)
"""All formats; those that are not embedded come inside containers."""
HEAD_BYTES = HEADER.size + 2 * OFFSET_BYTES
"""So many bytes show whether a segment begins like one of the formats in `EMBEDDED`."""
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
    executables = [
        segment for segment in module.segments if _is_executable_at(segment, data)
    ]
    executable_bytes = sum(segment.size for segment in executables)
    segment_bytes = sum(segment.size for segment in module.segments)
    imports = module.root.tables("imported_functions", "full_name")
    hidden = not executables and any(
        EXECUTABLE_CALL.match(import_.text("full_name")) for import_ in imports
    )
    readings = list[Reading]()
    unread = list[str]()
    for segment in sorted(executables):
        try:
            readings.append(read_executable(segment.of(data)))
        except MalformedBinary as error:
            unread.append(
                f"executable of {segment.size} bytes at offset {segment.start}:"
                f" {error.line}"
            )
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
    module = parse_module(data)
    executables = [
        segment
        for segment in sorted(module.segments)
        if _is_executable_at(segment, data)
    ]
    for executable in (segment.of(data) for segment in executables):
        layout, root = _open(executable) if is_container(executable) else (None, None)
        if layout is None or root is None or layout.format != "ptx":
            continue
        spans = dict.fromkeys(
            filter(None, map(layout.span, root.tables("modules", layout.module)))
        )
        require_disjoint(spans, layout.format)
        modules += [
            PtxModule(device_of(text), text)
            for text in (span.of(executable).rstrip(b"\0") for span in spans)
        ]
    return tuple(modules)


def _is_executable_at(segment: ByteSpan, data: bytes) -> bool:
    """Return True where this segment of an artifact is an executable.

    Segments can be as large as the artifact. Only a segment that begins like an
    executable is copied.
    """
    head = ByteSpan(segment.start, min(segment.size, HEAD_BYTES)).of(data)
    return _begins_like_executable(head) and is_executable(segment.of(data))


def _begins_like_executable(head: bytes) -> bool:
    if _has_header(head) or identifier(head, 0) in LAYOUTS:
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
