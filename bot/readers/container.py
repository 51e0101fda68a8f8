"""Read the containers of the GPU targets, which carry modules for the driver.

They are flatbuffers with or without a header:
`runtime/src/iree/base/internal/flatcc/parsing.h` (64 bytes of header: magic, version,
64-bit content size, zeros) and
`runtime/src/iree/schemas/{cuda,hip,vulkan,metal}_executable_def.fbs` of
https://github.com/iree-org/iree. The header's magic is the flatbuffer's file identifier;
up to 3.8 there is no header. All fields stood so from 3.5 to 3.13. They have the
schemas' names but for what each container calls otherwise: `exports`, `modules`, an
export's `ordinal` and `kernel`, a module's `image`.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.reading import EntryPoint, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import (
    ByteSpan,
    label_sizes,
    require_disjoint,
    span_inside,
)
from bot.readers.code_object import CODE_OBJECT
from bot.readers.flatbuffer_table import (
    OFFSET_BYTES,
    UINT32,
    FlatBufferTable,
    identifier,
    root_table,
)
from bot.readers.metal import METAL
from bot.readers.ptx import read_ptx
from bot.readers.spirv import SPIRV, WORD_BYTES

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
        """Return the place of a module.

        None if no reader can read the module: only the driver reads a Metal
        library.
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

    So an unknown container is refused, not overlooked. Also return True for a known
    identifier before a root with exports, because four bytes alone may be a
    constant's.
    """
    if has_header(data) or identifier(data, 0) not in LAYOUTS:
        return has_header(data)
    try:
        return open_container(data)[1].span("exports", OFFSET_BYTES) is not None
    except MalformedBinary:
        return False


def read_container(data: bytes) -> Reading:
    """Read a container: the parts of all modules, `header`, `sources` and `metallib`.

    Names, strings and tables are unattributed.
    """
    layout, root = open_container(data)
    tables = tuple(root.tables("modules", layout.module))
    spans = tuple(map(layout.span, tables))
    labels = {ByteSpan(0, HEADER.size if has_header(data) else 0): "header"}
    for source in root.tables("source_files", "path content"):
        if span := source.span("content"):
            labels[span] = "sources"
    for table in tables:
        for name in ("metallib", "metallibsym"):
            if span := table.span(name):
                labels[span] = "metallib"
    # Disjoint first: then no byte is read twice, whatever the tables claim.
    require_disjoint({*labels, *filter(None, spans)}, layout.format)
    readings = dict[ByteSpan | None, Reading | None]({None: None})
    parts = Counter(label_sizes(labels, layout.format))
    for span in spans:
        if span is not None and span not in readings:
            reading = layout.read(span.of(data))
            readings[span] = reading
            parts.update(reading.parts)
    entries = _entry_points(layout, root, [readings[span] for span in spans])
    return Reading(
        format=layout.format,
        size_bytes=len(data),
        parts=dict(parts),
        entry_points=tuple(entries),
    )


def has_header(data: bytes) -> bool:
    """Return True if the data begins with the header of a container.

    Constants may be all zeros, or anything else: only letters and digits count as a
    name.
    """
    magic = data[:4]
    has_zeros = data[RESERVED_AT : HEADER.size] == bytes(HEADER.size - RESERVED_AT)
    return magic.isalnum() and has_zeros and identifier(data, HEADER.size) == magic


def open_container(data: bytes) -> tuple[Layout, FlatBufferTable]:
    """Return the layout and the root.

    Raises `MalformedBinary`, also for content that is shorter than the header says.
    """
    start = HEADER.size if has_header(data) else 0
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
        entries = None
        if reading:
            entries = {entry.name: entry for entry in reading.entry_points}
        entries_by_module.append(entries)
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
