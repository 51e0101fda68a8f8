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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from bot.core.values.reading import EntryPoint, PtxModule, Reading
from bot.errors import MalformedBinary
from bot.readers.formats.flatbuffer import IDENTIFIER_BYTES, OFFSET_BYTES, UINT32, Table, identifier, root_table
from bot.readers.formats.hsaco import HsacoReader
from bot.readers.formats.msl import MslReader
from bot.readers.formats.ptx import device_of, read_ptx
from bot.readers.formats.spirv import WORD_BYTES, SpirvReader
from bot.readers.spans import Span, label_sizes, require_disjoint, span_inside

HEADER = struct.Struct("<4sIQ48s")
"""iree_flatbuffer_file_header_t: magic, version, bytes of content after the header, reserved (zero)."""
RESERVED_AT, RESERVED = 16, bytes(48)
ROOT = "exports modules source_files"
VULKAN_ROOT = "exports descriptor_set_layouts pipeline_layouts modules source_files"
EXPORT = "ordinal kernel block_dims block_shared_memory_size constant_count binding_flags debug_info"
VULKAN_EXPORT = "ordinal kernel pipeline_layout_ordinal subgroup_size debug_info"
METAL_EXPORT = """ordinal kernel max_threads_per_threadgroup threadgroup_size threadgroup_size_aligned constant_count
    binding_flags debug_info name"""
METAL_LIBRARY, METAL_SOURCE = "source metallib metallibsym", "version code"
SOURCE_FILE, DEBUG_INFO = "path content", "name"


@dataclass(frozen=True, slots=True)
class Layout:
    """How one kind of container is laid out.

    Attributes:
        format: of the modules in it.
        root, module, export: the fields of these tables.
        module_span: module table → where the module is; None where it has none that can be read.
        read: module → its reading.
    """

    format: str
    root: str
    module: str
    export: str
    module_span: Callable[[Table], Span | None]
    read: Callable[[bytes], Reading]


@dataclass(frozen=True, slots=True)
class Module:
    """One module for the driver: its reading, and its entry points by name; both empty for opaque ones."""

    reading: Reading | None
    entries: dict[str, EntryPoint]


class ExecutableReader:
    """All containers: with a header of any identifier, without one those of a known identifier."""

    def accepts(self, data: bytes) -> bool:
        """True for any identifier that stands twice, so that an unknown one is refused by `read`, not overlooked."""
        return _has_header(data) or _is_bare(data)

    def read(self, data: bytes) -> Reading:
        """Parts of all modules, `header`, `sources`, `metallib`; names, strings and tables are unattributed."""
        start = HEADER.size if _has_header(data) else 0
        layout, root = _open(data, start)
        tables = tuple(root.tables("modules", layout.module))
        spans = tuple(layout.module_span(table) for table in tables)
        # Disjoint first: then no byte is read twice, whatever the tables claim.
        labelled = _labelled(root, tables, start)
        require_disjoint({*labelled, *filter(None, spans)}, layout.format)
        modules = {span: _module(layout, span, data) for span in dict.fromkeys(spans)}
        parts = Counter(label_sizes(labelled, layout.format))
        for module in modules.values():
            parts.update(module.reading.parts if module.reading else {})
        entries = _entry_points(layout, root, [modules[span] for span in spans])
        return Reading(layout.format, len(data), dict(parts), tuple(entries))


def ptx_modules(data: bytes) -> tuple[PtxModule, ...]:
    """The PTX modules of one executable, in its order; none for another format. Raises `MalformedBinary`."""
    layout, root = _open(data, HEADER.size if _has_header(data) else 0)
    if layout.format != "ptx":
        return ()
    spans = dict.fromkeys(filter(None, map(layout.module_span, root.tables("modules", layout.module))))
    require_disjoint(spans, layout.format)
    texts = (span.of(data).rstrip(b"\0") for span in spans)
    return tuple(PtxModule(device_of(text), text) for text in texts)


def _has_header(data: bytes) -> bool:
    # Constants may be all zeros, or anything else: only letters and digits name a container.
    named = data[:IDENTIFIER_BYTES].isalnum() and data[RESERVED_AT : HEADER.size] == RESERVED
    return named and identifier(data, HEADER.size) == data[:IDENTIFIER_BYTES]


def _is_bare(data: bytes) -> bool:
    """True for a known identifier before a root with exports: four bytes alone may be a constant's."""
    if identifier(data, 0) not in LAYOUTS:
        return False
    try:
        return _open(data, 0)[1].span("exports", OFFSET_BYTES) is not None
    except MalformedBinary:
        return False


def _open(data: bytes, start: int) -> tuple[Layout, Table]:
    magic = identifier(data, start)
    version = _header_version(data, start)
    layout = LAYOUTS.get(magic)
    if layout is None or version != 0:
        raise MalformedBinary(f"unknown container {magic!r}, version {version}", where="executable")
    return layout, root_table(data, start, magic, layout.format, layout.root)


def _header_version(data: bytes, start: int) -> int:
    """What the header in front says, 0 without one; raises `MalformedBinary` where its content is cut short."""
    if not start:
        return 0
    _, version, content_bytes, _ = HEADER.unpack_from(data)
    span_inside(start, content_bytes, len(data), "executable")
    return int(version)


def _labelled(root: Table, modules: Iterable[Table], header_bytes: int) -> dict[Span, str]:
    """What the container holds besides readable modules: a Metal library only the driver reads."""
    sources = (source.span("content") for source in root.tables("source_files", SOURCE_FILE))
    opaque = (module.span(name) for module in modules for name in ("metallib", "metallibsym"))
    labelled = {Span(0, header_bytes): "header"}
    labelled |= {span: "sources" for span in sources if span}
    return labelled | {span: "metallib" for span in opaque if span}


def _module(layout: Layout, span: Span | None, data: bytes) -> Module:
    if span is None:
        return Module(None, {})
    reading = layout.read(span.of(data))
    return Module(reading, {entry.name: entry for entry in reading.entry_points})


def _entry_points(layout: Layout, root: Table, modules: list[Module]) -> Iterator[EntryPoint]:
    """The exports in their own order, under the names by which the program knows them."""
    for export in root.tables("exports", layout.export):
        kernel, ordinal = export.text("kernel"), export.scalar("ordinal", UINT32)
        if ordinal >= len(modules):
            raise MalformedBinary(f"export {kernel[:80]!r} names module {ordinal}", where=layout.format)
        entry = _entry_point(modules[ordinal], kernel, layout.format)
        launch_bytes = export.scalar("block_shared_memory_size", UINT32)
        workgroup = None if entry.workgroup_bytes is None else entry.workgroup_bytes + launch_bytes
        debug = export.table("debug_info", DEBUG_INFO)
        name = export.text("name") or (debug.text("name") if debug else "") or kernel
        yield replace(entry, name=name, workgroup_bytes=workgroup)


def _entry_point(module: Module, kernel: str, where: str) -> EntryPoint:
    if module.reading is None:
        return EntryPoint(kernel)
    if kernel not in module.entries:
        raise MalformedBinary(f"export {kernel[:80]!r} is not in its module", where=where)
    return module.entries[kernel]


def _image(module: Table) -> Span | None:
    return module.span("image")


def _word_vector(module: Table) -> Span | None:
    return module.span("spirv_code", WORD_BYTES)


def _metal_source(library: Table) -> Span | None:
    source = library.table("source", METAL_SOURCE)
    return source.span("code") if source else None


LAYOUTS = {
    b"CDA1": Layout("ptx", ROOT, "image", EXPORT, _image, partial(read_ptx, launch_known=True)),
    b"HIP1": Layout("hsaco", ROOT, "image", EXPORT, _image, HsacoReader().read),
    b"VKE1": Layout("spirv", VULKAN_ROOT, "spirv_code", VULKAN_EXPORT, _word_vector, SpirvReader().read),
    b"MTL1": Layout("msl", ROOT, METAL_LIBRARY, METAL_EXPORT, _metal_source, MslReader().read),
}
"""Identifier → layout."""
