"""Read Metal's shading language, which the driver of Apple GPUs compiles.

"Metal Shading Language Specification", sections 2.1 to 2.3 with tables 2.1 to 2.4
(sizes and alignments of types: a vector of three takes the space of four) and 4.4
(`threadgroup` address space),
https://developer.apple.com/metal/Metal-Shading-Language-Specification.pdf. The compiler
makes it with SPIRV-Cross, which writes arrays as `spvUnsafeArray<T, N>`. Source does
not say what a kernel's frame takes: the driver decides.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bot.core.reading import EntryPoint, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import code_digest, fingerprint
from bot.readers.source_blocks import (
    blocks,
    header_pattern,
    outside,
    without_comments,
    without_name,
)

METAL_HEADER = header_pattern(rb"\b(?P<kind>kernel\s+void|struct)\s+(?P<name>\w+)")
METAL_MAGIC = b"#include <metal_stdlib>"
METAL_MAGIC_WITHIN_BYTES = 1 << 12
THREADGROUP = re.compile(rb"\bthreadgroup\s(?P<declaration>[^;(){}]*)(?P<end>;?)")
"""The declaration of a threadgroup variable.

Without an end it is no declaration; the pattern fits all the same, so that none of it
is looked at twice.
"""
THREADGROUP_ARGUMENT = re.compile(rb"\[\[\s*threadgroup\s*\(")
ARRAY_TEMPLATE = "spvUnsafeArray"
SCALAR_BYTES = {
    "bool": 1,
    "char": 1,
    "uchar": 1,
    "int8_t": 1,
    "uint8_t": 1,
    "short": 2,
    "ushort": 2,
    "half": 2,
    "bfloat": 2,
    "int16_t": 2,
    "uint16_t": 2,
    "int": 4,
    "uint": 4,
    "float": 4,
    "int32_t": 4,
    "uint32_t": 4,
    "atomic_int": 4,
    "atomic_uint": 4,
    "long": 8,
    "ulong": 8,
    "int64_t": 8,
    "uint64_t": 8,
    "size_t": 8,
}
MAX_DEPTH = 16  # how deep array templates may nest
MAX_DECLARATION = 1000  # characters; longer ones are not looked into
MAX_BYTES = 1 << 48
VECTOR = re.compile(r"(?P<scalar>[a-z]+?)(?P<lanes>[234])")
ARRAY = re.compile(
    rf"{ARRAY_TEMPLATE}\s*<(?P<item>.*),\s*(?P<count>\d{{1,10}})u?\s*>", re.DOTALL
)
METAL_DECLARATION = re.compile(
    r"(?P<type>[\w:]+(?:\s*<[^;=]*>)?)\s+(?P<name>\w+)\s*(?P<extents>(?:\[\s*\d{1,10}u?\s*\]\s*){0,8})(?:=.*)?",
    re.DOTALL,
)


def read_metal(data: bytes) -> Reading:
    """Read Metal as the parts `text` and `module`.

    `text` has the kernels; `module` has types, helpers and comments. Stacks are
    None.
    """
    if not METAL.accepts(data):
        raise MalformedBinary("no Metal source", where="msl")
    outermost = list(blocks(data, METAL_HEADER, "msl"))
    kernels = [block for block in outermost if block.kind != "struct"]
    sizes = TypeSizes()
    for block in outermost:
        if block.kind == "struct" and block.name != ARRAY_TEMPLATE:
            sizes.define_struct(
                block.name,
                without_comments(block.body.of(data)).decode("utf-8", "replace"),
            )
    # Types, constants and helpers: the compiler makes a module per kernel, so they are
    # the kernel's own.
    shared = fingerprint(without_comments(outside(data, kernels)))
    entries = []
    for kernel in kernels:
        text = kernel.span.of(data)
        code = code_digest(without_name(text, kernel.name.encode()), shared)
        workgroup_bytes = _threadgroup_bytes(text, sizes)
        entries.append(
            EntryPoint(
                kernel.name,
                code_bytes=len(text),
                workgroup_bytes=workgroup_bytes,
                code=code,
            )
        )
    text_bytes = sum(kernel.span.size for kernel in kernels)
    parts = {"text": text_bytes, "module": len(data) - text_bytes}
    return Reading(
        format="msl", size_bytes=len(data), parts=parts, entry_points=tuple(entries)
    )


def _threadgroup_bytes(kernel: bytes, sizes: TypeSizes) -> int | None:
    """Return the sum of the kernel's threadgroup variables.

    None if a type has no known size, or if the launch decides it.
    """
    if THREADGROUP_ARGUMENT.search(kernel):
        return None
    total = 0
    for match in THREADGROUP.finditer(without_comments(kernel)):
        if not match["end"]:
            continue
        size = sizes.declared(match["declaration"].decode("utf-8", "replace"))
        if size is None:
            return None
        total += size.size_bytes
    return total


class Size(NamedTuple):
    """Size and alignment of a type, in bytes."""

    size_bytes: int
    alignment_bytes: int

    def times(self, count: int) -> Size | None:
        """Return the size of an array of `count`; None if it is absurdly large."""
        whole = _aligned(self.size_bytes, self.alignment_bytes) * count
        if whole <= MAX_BYTES:
            return Size(whole, self.alignment_bytes)
        return None


class TypeSizes:
    """Sizes of the types of one source; structs may use those defined before them."""

    def __init__(self) -> None:
        self.structs: dict[str, Size | None] = {}

    def define_struct(self, name: str, body: str) -> None:
        """Define a struct by its members.

        Its size is None if one of them has no known size.
        """
        end = 0
        alignment = 1
        for member in filter(None, map(str.strip, body.split(";"))):
            size = self.declared(member)
            if size is None:
                self.structs[name] = None
                return
            alignment = max(alignment, size.alignment_bytes)
            end = _aligned(end, size.alignment_bytes) + size.size_bytes
        self.structs[name] = Size(_aligned(end, alignment), alignment)

    def declared(self, declaration: str) -> Size | None:
        """Return the size of what `type name[n]…` declares; None for anything else."""
        text = declaration.strip()
        match = None
        if len(text) <= MAX_DECLARATION:
            match = METAL_DECLARATION.fullmatch(text)
        size = self.of(match["type"]) if match else None
        for extent in re.findall(r"\d+", match["extents"]) if match else ():
            size = size and size.times(int(extent))
        return size

    def of(self, type_name: str, depth: int = 0) -> Size | None:
        """Return the size of a type; None if it is not known."""
        name = type_name.strip()
        array = ARRAY.fullmatch(name)
        if array and depth < MAX_DEPTH:
            item = self.of(array["item"], depth + 1)
            return item and item.times(int(array["count"]))
        if name in SCALAR_BYTES:
            return Size(SCALAR_BYTES[name], SCALAR_BYTES[name])
        if name in self.structs:
            match = None
        else:
            match = VECTOR.fullmatch(name)
        if match is None or match["scalar"] not in SCALAR_BYTES:
            return self.structs.get(name)
        size_bytes = SCALAR_BYTES[match["scalar"]] * (2 if match["lanes"] == "2" else 4)
        return Size(size_bytes, size_bytes)


def _aligned(size_bytes: int, alignment: int) -> int:
    return -(-size_bytes // alignment) * alignment


METAL = Reader(lambda data: METAL_MAGIC in data[:METAL_MAGIC_WITHIN_BYTES], read_metal)
