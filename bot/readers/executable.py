"""Executables of the GPU targets: a flatbuffer that carries the modules for the driver, with or without a header.

Format: `runtime/src/iree/base/internal/flatcc/parsing.h` (64 bytes of header: magic, version, 64-bit content size,
zeros) and `runtime/src/iree/schemas/{cuda,hip,vulkan,metal}_executable_def.fbs` of https://github.com/iree-org/iree.
The header's magic is the flatbuffer's file identifier; up to 3.8 there is no header. The fields below stood so from 3.5
to 3.13, and have the schemas' names but for what each of them calls otherwise: `exports`, `modules`, an export's
`ordinal` and `kernel`, a module's `image`.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.reading import EntryPoint, PtxModule, Reading
from bot.errors import MalformedBinary
from bot.readers import hsaco, msl, spirv
from bot.readers.elf import Span, label_sizes, require_disjoint, span_inside
from bot.readers.flatbuffer import OFFSET_BYTES, UINT32, Table, identifier, root_table
from bot.readers.ptx import device_of, read_ptx

HEADER = struct.Struct("<4sIQ48s")
"""iree_flatbuffer_file_header_t: magic, version, bytes of content after the header, reserved (zero)."""
RESERVED_AT = 16
ROOT = "exports modules source_files"
VULKAN_ROOT = "exports descriptor_set_layouts pipeline_layouts modules source_files"
EXPORT = "ordinal kernel block_dims block_shared_memory_size constant_count binding_flags debug_info"
VULKAN_EXPORT = "ordinal kernel pipeline_layout_ordinal subgroup_size debug_info"
METAL_EXPORT = """ordinal kernel max_threads_per_threadgroup threadgroup_size threadgroup_size_aligned constant_count
    binding_flags debug_info name"""


class Layout(NamedTuple):
    """How one kind of container is laid out; `format` and `read` are those of the modules in it."""

    format: str
    root: str
    module: str
    export: str
    read: Callable[[bytes], Reading]

    def span(self, module: Table) -> Span | None:
        """Where a module is; None where it has none that can be read: a Metal library only the driver reads."""
        if self.format == "msl":
            source = module.table("source", "version code")
            return source.span("code") if source else None
        return module.span(self.module, spirv.WORD_BYTES if self.format == "spirv" else 1)


LAYOUTS = {
    b"CDA1": Layout("ptx", ROOT, "image", EXPORT, partial(read_ptx, launch_known=True)),
    b"HIP1": Layout("hsaco", ROOT, "image", EXPORT, hsaco.read),
    b"VKE1": Layout("spirv", VULKAN_ROOT, "spirv_code", VULKAN_EXPORT, spirv.read),
    b"MTL1": Layout("msl", ROOT, "source metallib metallibsym", METAL_EXPORT, msl.read),
}
"""Identifier → layout."""


def accepts(data: bytes) -> bool:
    """True for any identifier that stands twice, so that an unknown one is refused by `read`, not overlooked.

    True, too, for a known one before a root with exports: four bytes alone may be a constant's.
    """
    if _has_header(data) or identifier(data, 0) not in LAYOUTS:
        return _has_header(data)
    try:
        return _open(data)[1].span("exports", OFFSET_BYTES) is not None
    except MalformedBinary:
        return False


def read(data: bytes) -> Reading:
    """Parts of all modules, `header`, `sources`, `metallib`; names, strings and tables are unattributed."""
    layout, root = _open(data)
    tables = tuple(root.tables("modules", layout.module))
    spans = tuple(map(layout.span, tables))
    labelled = {Span(0, HEADER.size if _has_header(data) else 0): "header"}
    sources = (source.span("content") for source in root.tables("source_files", "path content"))
    labelled |= {span: "sources" for span in sources if span}
    opaque = (table.span(name) for table in tables for name in ("metallib", "metallibsym"))
    labelled |= {span: "metallib" for span in opaque if span}
    # Disjoint first: then no byte is read twice, whatever the tables claim.
    require_disjoint({*labelled, *filter(None, spans)}, layout.format)
    readings = {span: layout.read(span.of(data)) if span else None for span in dict.fromkeys(spans)}
    parts = Counter(label_sizes(labelled, layout.format))
    for reading in filter(None, readings.values()):
        parts.update(reading.parts)
    entries = _entry_points(layout, root, [readings[span] for span in spans])
    return Reading(layout.format, len(data), dict(parts), tuple(entries))


def ptx_modules(data: bytes) -> tuple[PtxModule, ...]:
    """The PTX modules of one executable, in its order; none for another format. Raises `MalformedBinary`."""
    layout, root = _open(data)
    if layout.format != "ptx":
        return ()
    spans = dict.fromkeys(filter(None, map(layout.span, root.tables("modules", layout.module))))
    require_disjoint(spans, layout.format)
    texts = (span.of(data).rstrip(b"\0") for span in spans)
    return tuple(PtxModule(device_of(text), text) for text in texts)


def _has_header(data: bytes) -> bool:
    # Constants may be all zeros, or anything else: only letters and digits name a container.
    magic = data[:4]
    has_zeros = data[RESERVED_AT : HEADER.size] == bytes(HEADER.size - RESERVED_AT)
    return magic.isalnum() and has_zeros and identifier(data, HEADER.size) == magic


def _open(data: bytes) -> tuple[Layout, Table]:
    """The layout and the root; raises `MalformedBinary`, also for content that is shorter than the header says."""
    start = HEADER.size if _has_header(data) else 0
    magic, version = identifier(data, start), 0
    if start:
        _, version, content_bytes, _ = HEADER.unpack_from(data)
        span_inside(start, content_bytes, len(data), "executable")
    layout = LAYOUTS.get(magic)
    if layout is None or version != 0:
        raise MalformedBinary(f"unknown container {magic!r}, version {version}", where="executable")
    return layout, root_table(data, start, magic, layout.format, layout.root)


def _entry_points(layout: Layout, root: Table, modules: list[Reading | None]) -> Iterator[EntryPoint]:
    """The exports in their own order, under the names by which the program knows them."""
    known = [{entry.name: entry for entry in reading.entry_points} if reading else None for reading in modules]
    for export in root.tables("exports", layout.export):
        kernel, ordinal = export.text("kernel"), export.scalar("ordinal", UINT32)
        if ordinal >= len(modules):
            raise MalformedBinary(f"export {kernel[:80]!r} names module {ordinal}", where=layout.format)
        entries = known[ordinal]
        entry = EntryPoint(kernel) if entries is None else entries.get(kernel)
        if entry is None:
            raise MalformedBinary(f"export {kernel[:80]!r} is not in its module", where=layout.format)
        launch_bytes = export.scalar("block_shared_memory_size", UINT32)
        workgroup = None if entry.workgroup_bytes is None else entry.workgroup_bytes + launch_bytes
        debug = export.table("debug_info", "name")
        name = export.text("name") or (debug.text("name") if debug else "") or kernel
        yield replace(entry, name=name, workgroup_bytes=workgroup)
