"""AMD code objects: an ELF file whose metadata note describes each kernel's memory and registers.

Format: "User Guide for AMDGPU Backend", Code Object V3 to V6 metadata: the note `AMDGPU` of type
NT_AMDGPU_METADATA (32) holds a msgpack map whose `amdhsa.kernels` lists one map per kernel,
https://llvm.org/docs/AMDGPUUsage.html#code-object-v3-metadata. Scratch (`.private_segment_fixed_size`) and LDS
(`.group_segment_fixed_size`) are bytes per work-item and per workgroup.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import msgpack

from bot.core.reading import EntryPoint, Reading
from bot.errors import MalformedBinary
from bot.measure.elf import MACHINE_AT, MAGIC, Elf, functions, parse_elf

EM_AMDGPU = (224).to_bytes(2, "little")
NOTE_OWNER = b"AMDGPU\0"
NT_AMDGPU_METADATA = 32
NOTE_HEADER = struct.Struct("<III")
NOTE_ALIGNMENT = 4
MAX_METADATA_BYTES = 1 << 22
"""A kernel takes about 800; one byte of msgpack can become an object of 64, so more is refused."""

FIELDS = {
    "stack_bytes": ".private_segment_fixed_size",
    "workgroup_bytes": ".group_segment_fixed_size",
    "vgprs": ".vgpr_count",
    "sgprs": ".sgpr_count",
    "vgpr_spills": ".vgpr_spill_count",
    "sgpr_spills": ".sgpr_spill_count",
}
"""Field of an entry point → key in a kernel's metadata."""


class HsacoReader:
    """Code objects of AMD GPUs."""

    def accepts(self, data: bytes) -> bool:
        """True for a little-endian ELF of the AMDGPU machine."""
        return data.startswith(MAGIC) and data[MACHINE_AT : MACHINE_AT + 2] == EM_AMDGPU

    def read(self, data: bytes) -> Reading:
        """Parts per kind of section; an entry point per kernel of the metadata."""
        elf = parse_elf(data)
        code_bytes = {symbol.name: symbol.size_bytes for symbol in functions(elf)}
        entries = tuple(_entry_point(kernel, code_bytes) for kernel in _kernels(elf))
        return Reading("hsaco", len(data), elf.parts, entries)


def _entry_point(kernel: Mapping[str, Any], code_bytes: Mapping[str, int]) -> EntryPoint:
    name = kernel.get(".name")
    if not isinstance(name, str):
        raise MalformedBinary("a kernel without a name", where="hsaco")
    values = {field: _count(kernel, key) for field, key in FIELDS.items()}
    dynamic = kernel.get(".uses_dynamic_stack") is True
    kind = None if values["stack_bytes"] is None else "dynamic" if dynamic else "static"
    return EntryPoint(name, code_bytes=code_bytes.get(name), stack_kind=kind, **values)


def _count(kernel: Mapping[str, Any], key: str) -> int | None:
    value = kernel.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise MalformedBinary(f"{key} is {str(value)[:40]!r}", where="hsaco")
    return value


def _kernels(elf: Elf) -> list[Mapping[str, Any]]:
    for section in elf.sections:
        if section.type == "SHT_NOTE":
            for owner, kind, contents in _notes(section.span.of(elf.data)):
                if owner == NOTE_OWNER and kind == NT_AMDGPU_METADATA:
                    return _kernel_list(contents)
    raise MalformedBinary("no AMDGPU metadata note", where="hsaco")


def _notes(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Owner, type and contents of every note of a section."""
    at = 0
    while at + NOTE_HEADER.size <= len(data):
        owner_bytes, content_bytes, kind = NOTE_HEADER.unpack_from(data, at)
        owner_at = at + NOTE_HEADER.size
        content_at = owner_at + _aligned(owner_bytes)
        at = content_at + _aligned(content_bytes)
        if content_at + content_bytes > len(data):
            raise MalformedBinary("a note beyond its section", where="hsaco")
        yield data[owner_at : owner_at + owner_bytes], kind, data[content_at : content_at + content_bytes]


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // NOTE_ALIGNMENT) * NOTE_ALIGNMENT


def _kernel_list(packed: bytes) -> list[Mapping[str, Any]]:
    if len(packed) > MAX_METADATA_BYTES:
        raise MalformedBinary(f"metadata of {len(packed)} bytes", where="hsaco")
    try:
        # msgpack itself bounds every claimed count by the length of its input.
        metadata = msgpack.unpackb(packed)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        raise MalformedBinary(f"metadata is no msgpack: {error}", where="hsaco") from error
    kernels = metadata.get("amdhsa.kernels") if isinstance(metadata, dict) else None
    if not isinstance(kernels, list) or not all(isinstance(kernel, dict) for kernel in kernels):
        raise MalformedBinary("metadata without a list of kernels", where="hsaco")
    return kernels
