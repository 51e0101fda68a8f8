"""Metal shader source: the text of each kernel and its threadgroup memory.

Format: "Metal Shading Language Specification", sections 2.1 to 2.3 (sizes and alignments of types) and 4.4
(`threadgroup` address space), https://developer.apple.com/metal/Metal-Shading-Language-Specification.pdf. The
compiler makes it with SPIRV-Cross, which writes arrays as `spvUnsafeArray<T, N>`. Source does not say what a kernel's
frame takes: the driver decides.
"""

from __future__ import annotations

import re
from operator import itemgetter

from bot.core.values.reading import EntryPoint, Reading
from bot.errors import MalformedBinary
from bot.readers.code.code_digest import code_digest, fingerprint, without_name
from bot.readers.formats.blocks import Block, blocks, header_pattern, outside, without_comments
from bot.readers.formats.msl_types import ARRAY_TEMPLATE, TypeSizes

HEADER = header_pattern(rb"\b(?P<kind>kernel\s+void|struct)\s+(?P<name>\w+)")
MAGIC = b"#include <metal_stdlib>"
MAGIC_WITHIN_BYTES = 1 << 12
THREADGROUP = re.compile(rb"\bthreadgroup\s(?P<declaration>[^;(){}]*)(?P<end>;?)")
"""Without an end it is no declaration; the pattern fits all the same, so that none of it is looked at twice."""
THREADGROUP_ARGUMENT = re.compile(rb"\[\[\s*threadgroup\s*\(")


class MslReader:
    """Metal source as the compiler embeds it."""

    def accepts(self, data: bytes) -> bool:
        """True where the Metal library is included at the top."""
        return MAGIC in data[:MAGIC_WITHIN_BYTES]

    def read(self, data: bytes) -> Reading:
        """Parts `text` (kernels) and `module` (types, helpers, comments); stacks are None."""
        if not self.accepts(data):
            raise MalformedBinary("no Metal source", where="msl")
        found = list(blocks(data, HEADER, "msl"))
        sizes = _struct_sizes(data, found)
        kernels = [block for block in found if block.kind != "struct"]
        text_bytes = sum(kernel.span.size for kernel in kernels)
        parts = {"text": text_bytes, "module": len(data) - text_bytes}
        # Types, constants and helpers: the compiler makes a module per kernel, so they are the kernel's own.
        shared = fingerprint(without_comments(outside(data, kernels)))
        entries = tuple(_entry_point(data, kernel, sizes, shared) for kernel in kernels)
        return Reading("msl", len(data), parts, entries)


def _struct_sizes(data: bytes, found: list[Block]) -> TypeSizes:
    sizes = TypeSizes()
    for block in found:
        if block.kind == "struct" and block.name != ARRAY_TEMPLATE:
            sizes.define_struct(block.name, without_comments(block.body.of(data)).decode("utf-8", "replace"))
    return sizes


def _entry_point(data: bytes, kernel: Block, sizes: TypeSizes, shared: bytes) -> EntryPoint:
    text = kernel.span.of(data)
    return EntryPoint(
        kernel.name,
        code_bytes=kernel.span.size,
        workgroup_bytes=_threadgroup_bytes(text, sizes),
        code=code_digest(without_name(text, kernel.name.encode()), shared),
    )


def _threadgroup_bytes(kernel: bytes, sizes: TypeSizes) -> int | None:
    """The sum of the kernel's threadgroup variables; None where a type has no known size or the launch decides."""
    if THREADGROUP_ARGUMENT.search(kernel):
        return None
    total = 0
    for match in filter(itemgetter("end"), THREADGROUP.finditer(without_comments(kernel))):
        size = sizes.declared(match["declaration"].decode("utf-8", "replace"))
        if size is None:
            return None
        total += size.size_bytes
    return total
