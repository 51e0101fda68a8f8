"""Read the kernels of code objects of AMD GPUs.

"User Guide for AMDGPU Backend", Code Object V3 to V6 metadata: the note `AMDGPU` of
type NT_AMDGPU_METADATA (32) holds a msgpack map whose `amdhsa.kernels` lists one map
per kernel, https://llvm.org/docs/AMDGPUUsage.html#code-object-v3-metadata. Scratch
(`.private_segment_fixed_size`) and LDS (`.group_segment_fixed_size`) are bytes per
work-item and per workgroup. Each kernel has a descriptor of 64 bytes, the object
`<name>.kd`, with the modes and registers it starts with ("Kernel Descriptor" there).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import msgpack

from bot.core.reading import EntryPoint, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import (
    WorkLimit,
    code_digest,
)
from bot.readers.elf import MACHINE, MAGIC, STT_FUNC, Elf, Symbol, parse_elf

EM_AMDGPU = (224).to_bytes(2, "little")
STT_OBJECT = 1
NOTE_OWNER = b"AMDGPU\0"
NT_AMDGPU_METADATA = 32
NOTE_HEADER = struct.Struct("<III")
MAX_METADATA_BYTES = 1 << 22
"""The most bytes of metadata that are read.

A kernel takes about 800. One byte of msgpack can become an object of 64, so more is
refused.
"""
# where a kernel descriptor has the distance to the code, which is a matter of layout
ENTRY_OFFSET = slice(16, 24)
FIELDS = {
    "stack_bytes": ".private_segment_fixed_size",
    "workgroup_bytes": ".group_segment_fixed_size",
    "vgprs": ".vgpr_count",
    "sgprs": ".sgpr_count",
    "vgpr_spills": ".vgpr_spill_count",
    "sgpr_spills": ".sgpr_spill_count",
    "agprs": ".agpr_count",
}
"""Field of an entry point → its key in a kernel's metadata.

Only gfx90a and later have accumulation registers.
"""


def read_code_object(data: bytes) -> Reading:
    """Read an AMD code object, as parts per kind of section.

    It has an entry point for each kernel of the metadata.
    """
    elf = parse_elf(data)
    all_symbols = elf.symbols(STT_OBJECT) + elf.symbols(STT_FUNC)
    symbols = {symbol.name: symbol for symbol in all_symbols}
    budget = WorkLimit(len(data), "hsaco")
    entries = [_entry_point(elf, kernel, symbols, budget) for kernel in _kernels(elf)]
    return elf.reading("hsaco", entries)


def _entry_point(
    elf: Elf,
    kernel: Mapping[str, Any],
    symbols: Mapping[str, Symbol],
    budget: WorkLimit,
) -> EntryPoint:
    name = kernel.get(".name")
    values = {field: kernel.get(key) for field, key in FIELDS.items()}
    if not isinstance(name, str):
        raise MalformedBinary("a kernel without a name", where="hsaco")
    for field, value in values.items():
        if value is not None and (type(value) is not int or value < 0):
            raise MalformedBinary(
                f"{FIELDS[field]} is {str(value)[:40]!r}", where="hsaco"
            )
    function = symbols.get(name)
    descriptor = symbols.get(f"{name}.kd")
    machine_code = None
    if function is not None:
        elf.require_inside(function)
        machine_code = elf.contents(function)
    start_state = None
    if descriptor is not None:
        start_state = elf.contents(descriptor)
    code = None
    if machine_code is not None and start_state is not None:
        budget.spend(len(machine_code) + len(start_state))
        code = code_digest(
            machine_code,
            start_state[: ENTRY_OFFSET.start],
            start_state[ENTRY_OFFSET.stop :],
        )
    return EntryPoint(
        name,
        code_bytes=function.size_bytes if function else None,
        code=code,
        **values,
    )


def _kernels(elf: Elf) -> list[Mapping[str, Any]]:
    """Return what the first note of metadata says of each kernel."""
    for section in elf.of_type("SHT_NOTE"):
        data = section.span.of(elf.data)
        offset = 0
        while offset + NOTE_HEADER.size <= len(data):
            owner_bytes, content_bytes, kind = NOTE_HEADER.unpack_from(data, offset)
            owner_at = offset + NOTE_HEADER.size
            content_at = owner_at + -(-owner_bytes // 4) * 4
            offset = content_at + -(-content_bytes // 4) * 4
            if content_at + content_bytes > len(data):
                raise MalformedBinary("a note beyond its section", where="hsaco")
            if (
                data[owner_at : owner_at + owner_bytes] != NOTE_OWNER
                or kind != NT_AMDGPU_METADATA
            ):
                continue
            if content_bytes > MAX_METADATA_BYTES:
                raise MalformedBinary(
                    f"metadata of {content_bytes} bytes", where="hsaco"
                )
            try:  # it bounds every claimed count by the length of its input
                metadata = msgpack.unpackb(
                    data[content_at : content_at + content_bytes]
                )
            except (
                ValueError,
                TypeError,
                OverflowError,
                msgpack.UnpackException,
            ) as error:
                raise MalformedBinary(
                    f"metadata is not msgpack: {error}", where="hsaco"
                ) from error
            kernels = None
            if isinstance(metadata, dict):
                kernels = metadata.get("amdhsa.kernels")
            if not isinstance(kernels, list) or {*map(type, kernels)} - {dict}:
                raise MalformedBinary(
                    "metadata without a list of kernels", where="hsaco"
                )
            return kernels
    raise MalformedBinary("no AMDGPU metadata note", where="hsaco")


CODE_OBJECT = Reader(
    lambda data: data.startswith(MAGIC) and data[MACHINE] == EM_AMDGPU, read_code_object
)
