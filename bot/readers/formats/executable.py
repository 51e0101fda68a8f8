"""Executables of the GPU targets: a flatbuffer that carries the modules for the driver, with or without a header.

Format: `runtime/src/iree/base/internal/flatcc/parsing.h` (64 bytes of header: magic, version, 64-bit content size,
zeros) and `runtime/src/iree/schemas/{cuda,hip,vulkan,metal}_executable_def.fbs` of https://github.com/iree-org/iree.
The header's magic is the flatbuffer's file identifier; up to 3.8 there is no header. The slots below held from 3.5
to 3.13.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from bot.core.values.reading import EntryPoint, Reading
from bot.errors import MalformedBinary
from bot.readers.formats.flatbuffer import IDENTIFIER_BYTES, OFFSET_BYTES, UINT32, Table, identifier, root_table
from bot.readers.formats.hsaco import HsacoReader
from bot.readers.formats.msl import MslReader
from bot.readers.formats.ptx import read_ptx
from bot.readers.formats.spirv import WORD_BYTES, SpirvReader
from bot.readers.spans import Span, label_sizes, require_disjoint, span_inside

HEADER = struct.Struct("<4sIQ48s")
"""iree_flatbuffer_file_header_t: magic, version, bytes of content after the header, reserved (zero)."""
RESERVED_AT, RESERVED = 16, bytes(48)
SOURCE_CONTENT, DEBUG_NAME = 1, 0
EXPORTS, EXPORT_MODULE, EXPORT_KERNEL = 0, 0, 1
"""Slots that all containers share: the exports in the root, and each one's module ordinal and kernel name."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How one kind of container is laid out, as slots of its tables.

    Attributes:
        format: of the modules in it.
        modules: slot of the modules in the root.
        sources: slot of the embedded source files in the root.
        debug: slot of an export's debug information.
        module_span: module table → where the module is; None where it has none that can be read.
        read: module → its reading.
        opaque: slots of a module's contents that only the driver reads.
        name: slot of the program's name of an export, where it is apart from the debug information.
        launch: slot of the workgroup memory that an export's launch asks for.
    """

    format: str
    modules: int
    sources: int
    debug: int
    module_span: Callable[[Table], Span | None]
    read: Callable[[bytes], Reading]
    opaque: tuple[int, ...] = ()
    name: int | None = None
    launch: int | None = None


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
        tables = tuple(root.tables(layout.modules))
        spans = tuple(layout.module_span(table) for table in tables)
        # Disjoint first: then no byte is read twice, whatever the tables claim.
        labelled = _labelled(layout, root, tables, start)
        require_disjoint({*labelled, *filter(None, spans)}, layout.format)
        modules = {span: _module(layout, span, data) for span in dict.fromkeys(spans)}
        parts = _sum_parts(
            [
                label_sizes(labelled, layout.format),
                *(module.reading.parts for module in modules.values() if module.reading),
            ]
        )
        entries = _entry_points(layout, root, [modules[span] for span in spans])
        return Reading(layout.format, len(data), parts, tuple(entries))


def _has_header(data: bytes) -> bool:
    # Constants may be all zeros, or anything else: only letters and digits name a container.
    named = data[:IDENTIFIER_BYTES].isalnum() and data[RESERVED_AT : HEADER.size] == RESERVED
    return named and identifier(data, HEADER.size) == data[:IDENTIFIER_BYTES]


def _is_bare(data: bytes) -> bool:
    """True for a known identifier before a root with exports: four bytes alone may be a constant's."""
    if identifier(data, 0) not in LAYOUTS:
        return False
    try:
        return root_table(data, 0, identifier(data, 0), "executable").span(EXPORTS, OFFSET_BYTES) is not None
    except MalformedBinary:
        return False


def _open(data: bytes, start: int) -> tuple[Layout, Table]:
    magic = identifier(data, start)
    version = _header_version(data, start)
    layout = LAYOUTS.get(magic)
    if layout is None or version != 0:
        raise MalformedBinary(f"unknown container {magic!r}, version {version}", where="executable")
    return layout, root_table(data, start, magic, layout.format)


def _header_version(data: bytes, start: int) -> int:
    """What the header in front says, 0 without one; raises `MalformedBinary` where its content is cut short."""
    if not start:
        return 0
    _, version, content_bytes, _ = HEADER.unpack_from(data)
    span_inside(start, content_bytes, len(data), "executable")
    return int(version)


def _labelled(layout: Layout, root: Table, modules: Iterable[Table], header_bytes: int) -> dict[Span, str]:
    """What the container holds besides readable modules."""
    sources = (source.span(SOURCE_CONTENT) for source in root.tables(layout.sources))
    opaque = (module.span(slot) for module in modules for slot in layout.opaque)
    labelled = {Span(0, header_bytes): "header"}
    labelled |= {span: "sources" for span in sources if span}
    return labelled | {span: "metallib" for span in opaque if span}


def _module(layout: Layout, span: Span | None, data: bytes) -> Module:
    if span is None:
        return Module(None, {})
    reading = layout.read(span.of(data))
    return Module(reading, {entry.name: entry for entry in reading.entry_points})


def _sum_parts(readings: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for parts in readings:
        for label, size_bytes in parts.items():
            total[label] = total.get(label, 0) + size_bytes
    return total


def _entry_points(layout: Layout, root: Table, modules: list[Module]) -> Iterator[EntryPoint]:
    """The exports in their own order, under the names by which the program knows them."""
    for export in root.tables(EXPORTS):
        kernel, ordinal = export.text(EXPORT_KERNEL), export.scalar(EXPORT_MODULE, UINT32)
        if ordinal >= len(modules):
            raise MalformedBinary(f"export {kernel[:80]!r} names module {ordinal}", where=layout.format)
        entry = _entry_point(modules[ordinal], kernel, layout.format)
        launch_bytes = 0 if layout.launch is None else export.scalar(layout.launch, UINT32)
        workgroup = None if entry.workgroup_bytes is None else entry.workgroup_bytes + launch_bytes
        yield replace(entry, name=_program_name(layout, export) or kernel, workgroup_bytes=workgroup)


def _entry_point(module: Module, kernel: str, where: str) -> EntryPoint:
    if module.reading is None:
        return EntryPoint(kernel)
    if kernel not in module.entries:
        raise MalformedBinary(f"export {kernel[:80]!r} is not in its module", where=where)
    return module.entries[kernel]


def _program_name(layout: Layout, export: Table) -> str:
    own = "" if layout.name is None else export.text(layout.name)
    debug = export.table(layout.debug)
    return own or (debug.text(DEBUG_NAME) if debug else "")


def _string(table: Table) -> Span | None:
    return table.span(0)


def _word_vector(table: Table) -> Span | None:
    return table.span(0, WORD_BYTES)


def _metal_source(table: Table) -> Span | None:
    source = table.table(0)
    return source.span(1) if source else None


LAYOUTS = {
    b"CDA1": Layout("ptx", 1, 2, 6, _string, partial(read_ptx, launch_known=True), launch=3),
    b"HIP1": Layout("hsaco", 1, 2, 6, _string, HsacoReader().read, launch=3),
    b"VKE1": Layout("spirv", 3, 4, 4, _word_vector, SpirvReader().read),
    b"MTL1": Layout("msl", 1, 2, 7, _metal_source, MslReader().read, opaque=(1, 2), name=8),
}
"""Identifier → layout."""
