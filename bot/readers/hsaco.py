"""AMD code objects: an ELF file whose metadata note describes each kernel's memory and registers.

Format: "User Guide for AMDGPU Backend", Code Object V3 to V6 metadata: the note `AMDGPU` of type
NT_AMDGPU_METADATA (32) holds a msgpack map whose `amdhsa.kernels` lists one map per kernel,
https://llvm.org/docs/AMDGPUUsage.html#code-object-v3-metadata. Scratch (`.private_segment_fixed_size`) and LDS
(`.group_segment_fixed_size`) are bytes per work-item and per workgroup. Each kernel has a descriptor of 64 bytes, the
object `<name>.kd`, with the modes and registers it starts with ("Kernel Descriptor" there).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import msgpack

from bot.core.reading import EntryPoint, Reading
from bot.errors import MalformedBinary
from bot.readers.budget import Budget
from bot.readers.elf import MACHINE_AT, MAGIC, STT_OBJECT, Elf, Symbol, contents, defined, functions, parse_elf
from bot.readers.object_code import code_digest

EM_AMDGPU = (224).to_bytes(2, "little")
NOTE_OWNER = b"AMDGPU\0"
NT_AMDGPU_METADATA = 32
NOTE_HEADER = struct.Struct("<III")
NOTE_ALIGNMENT = 4
MAX_METADATA_BYTES = 1 << 22
"""A kernel takes about 800; one byte of msgpack can become an object of 64, so more is refused."""

DESCRIPTOR_SUFFIX = ".kd"
ENTRY_OFFSET = slice(16, 24)
"""Where a kernel descriptor has the distance to the code, which is a matter of layout."""

FIELDS = {
    "stack_bytes": ".private_segment_fixed_size",
    "workgroup_bytes": ".group_segment_fixed_size",
    "vgprs": ".vgpr_count",
    "sgprs": ".sgpr_count",
    "vgpr_spills": ".vgpr_spill_count",
    "sgpr_spills": ".sgpr_spill_count",
    "agprs": ".agpr_count",
}
"""Field of an entry point → key in a kernel's metadata; accumulation registers only from gfx90a on."""


class HsacoReader:
    """Code objects of AMD GPUs."""

    def accepts(self, data: bytes) -> bool:
        """True for a little-endian ELF of the AMDGPU machine."""
        return data.startswith(MAGIC) and data[MACHINE_AT : MACHINE_AT + 2] == EM_AMDGPU

    def read(self, data: bytes) -> Reading:
        """Parts per kind of section; an entry point per kernel of the metadata."""
        elf = parse_elf(data)
        symbols = {symbol.name: symbol for symbol in (*defined(elf, STT_OBJECT), *functions(elf))}
        budget = Budget(len(data), "hsaco")
        entries = tuple(_entry_point(elf, kernel, symbols, budget) for kernel in _kernels(elf))
        return Reading("hsaco", len(data), elf.parts, entries)


def _entry_point(elf: Elf, kernel: Mapping[str, Any], symbols: Mapping[str, Symbol], budget: Budget) -> EntryPoint:
    name = kernel.get(".name")
    if not isinstance(name, str):
        raise MalformedBinary("a kernel without a name", where="hsaco")
    values = {field: _count(kernel, key) for field, key in FIELDS.items()}
    dynamic = kernel.get(".uses_dynamic_stack") is True
    kind = None if values["stack_bytes"] is None else "dynamic" if dynamic else "static"
    function = symbols.get(name)
    return EntryPoint(
        name,
        code_bytes=function.size_bytes if function else None,
        stack_kind=kind,
        code=_code(elf, function, symbols.get(name + DESCRIPTOR_SUFFIX), budget),
        **values,
    )


def _code(elf: Elf, function: Symbol | None, descriptor: Symbol | None, budget: Budget) -> str | None:
    """Digest of machine code and descriptor; None where the object lacks either."""
    if function is None or descriptor is None:
        return None
    machine_code, start_state = contents(elf, function), contents(elf, descriptor)
    if machine_code is None or start_state is None:
        return None
    budget.spend(len(machine_code) + len(start_state))
    return code_digest(machine_code, start_state[: ENTRY_OFFSET.start], start_state[ENTRY_OFFSET.stop :])


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
