"""AMD code objects: an ELF file whose metadata note describes each kernel's memory and registers.

Format: "User Guide for AMDGPU Backend", Code Object V3 to V6 metadata: the note `AMDGPU` of type
NT_AMDGPU_METADATA (32) holds a msgpack map whose `amdhsa.kernels` lists one map per kernel,
https://llvm.org/docs/AMDGPUUsage.html#code-object-v3-metadata. Scratch (`.private_segment_fixed_size`) and LDS
(`.group_segment_fixed_size`) are bytes per work-item and per workgroup. Each kernel has a descriptor of 64 bytes, the
object `<name>.kd`, with the modes and registers it starts with ("Kernel Descriptor" there).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import msgpack

from bot.core.reading import EntryPoint, Reading
from bot.errors import MalformedBinary
from bot.readers.elf import MACHINE, MAGIC, STT_FUNC, STT_OBJECT, Budget, Elf, Symbol, parse_elf
from bot.readers.object_code import code_digest

EM_AMDGPU = (224).to_bytes(2, "little")
NOTE_OWNER, NT_AMDGPU_METADATA = b"AMDGPU\0", 32
NOTE_HEADER = struct.Struct("<III")
MAX_METADATA_BYTES = 1 << 22
"""A kernel takes about 800; one byte of msgpack can become an object of 64, so more is refused."""
ENTRY_OFFSET = slice(16, 24)  # where a kernel descriptor has the distance to the code, which is a matter of layout
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


def accepts(data: bytes) -> bool:
    """True for a little-endian ELF of the AMDGPU machine."""
    return data.startswith(MAGIC) and data[MACHINE] == EM_AMDGPU


def read(data: bytes) -> Reading:
    """Parts per kind of section; an entry point per kernel of the metadata."""
    elf = parse_elf(data)
    symbols = {symbol.name: symbol for kind in (STT_OBJECT, STT_FUNC) for symbol in elf.symbols(kind)}
    budget = Budget(len(data), "hsaco")
    entries = tuple(_entry_point(elf, kernel, symbols, budget) for kernel in _kernels(elf))
    return Reading("hsaco", len(data), elf.parts, entries)


def _entry_point(elf: Elf, kernel: Mapping[str, Any], symbols: Mapping[str, Symbol], budget: Budget) -> EntryPoint:
    name, values = kernel.get(".name"), {field: kernel.get(key) for field, key in FIELDS.items()}
    if not isinstance(name, str):
        raise MalformedBinary("a kernel without a name", where="hsaco")
    for field, value in values.items():
        if value is not None and (type(value) is not int or value < 0):
            raise MalformedBinary(f"{FIELDS[field]} is {str(value)[:40]!r}", where="hsaco")
    kind = "dynamic" if kernel.get(".uses_dynamic_stack") is True else "static"
    function, descriptor = symbols.get(name), symbols.get(f"{name}.kd")
    machine_code, start_state = (elf.contents(each) if each else None for each in (function, descriptor))
    code = None
    if machine_code is not None and start_state is not None:
        budget.spend(len(machine_code) + len(start_state))
        code = code_digest(machine_code, start_state[: ENTRY_OFFSET.start], start_state[ENTRY_OFFSET.stop :])
    return EntryPoint(
        name,
        code_bytes=function.size_bytes if function else None,
        stack_kind=None if values["stack_bytes"] is None else kind,
        code=code,
        **values,
    )


def _kernels(elf: Elf) -> list[Mapping[str, Any]]:
    """What the first note of metadata says of each kernel."""
    for section in elf.sections.values():
        data, at = section.span.of(elf.data) if section.type == "SHT_NOTE" else b"", 0
        while at + NOTE_HEADER.size <= len(data):
            owner_bytes, content_bytes, kind = NOTE_HEADER.unpack_from(data, at)
            owner_at = at + NOTE_HEADER.size
            content_at = owner_at + -(-owner_bytes // 4) * 4
            at = content_at + -(-content_bytes // 4) * 4
            if content_at + content_bytes > len(data):
                raise MalformedBinary("a note beyond its section", where="hsaco")
            if data[owner_at : owner_at + owner_bytes] == NOTE_OWNER and kind == NT_AMDGPU_METADATA:
                return _kernel_list(data[content_at : content_at + content_bytes])
    raise MalformedBinary("no AMDGPU metadata note", where="hsaco")


def _kernel_list(packed: bytes) -> list[Mapping[str, Any]]:
    if len(packed) > MAX_METADATA_BYTES:
        raise MalformedBinary(f"metadata of {len(packed)} bytes", where="hsaco")
    try:
        metadata = msgpack.unpackb(packed)  # which bounds every claimed count by the length of its input
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        raise MalformedBinary(f"metadata is no msgpack: {error}", where="hsaco") from error
    kernels = metadata.get("amdhsa.kernels") if isinstance(metadata, dict) else None
    if not isinstance(kernels, list) or not all(isinstance(kernel, dict) for kernel in kernels):
        raise MalformedBinary("metadata without a list of kernels", where="hsaco")
    return kernels
