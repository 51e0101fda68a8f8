"""Read PTX, which the driver of NVIDIA GPUs compiles.

"Parallel Thread Execution ISA", chapters "State Spaces" and "Directives",
https://docs.nvidia.com/cuda/parallel-thread-execution. LLVM's NVPTX back end puts the
frame of a function into one `.local` array `__local_depotN` inside its body, and static
workgroup memory into `.shared` arrays. IREE puts all of its workgroup memory into
`.extern .shared … __dynamic_shared_memory__[]`, whose size the container states per
kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple

from bot.core.mappings import known_values
from bot.core.reading import EntryPoint, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import code_digest, fingerprint
from bot.readers.source_blocks import (
    Block,
    blocks,
    header_pattern,
    outside,
    without_comments,
    without_name,
)

NAME = rb"[A-Za-z_$%][\w$]*"
PTX_HEADER = header_pattern(
    rb"(?:\.(?:visible|weak|common)\s+)?\.(?P<kind>entry|func)\s+(?:\([^()]*\)\s*)?(?P<name>"
    + NAME
    + rb")"
)
PTX_MAGIC = re.compile(rb"(?:\s|//[^\n]*\n)*\.version\s+\d")
PTX_MAGIC_WITHIN_BYTES = 1 << 16
DECLARATION = re.compile(
    rb"\.(?P<space>local|shared)\s+(?:\.align\s+\d+\s+)?(?:\.v(?P<lanes>[24])\s+)?"
    rb"\.(?P<type>[a-z]\w*)\s+(?P<variables>[^;={}]+)"
)
VARIABLE = re.compile(
    rb"\s*(?P<name>"
    + NAME
    + rb")\s*(?P<dimensions>(?:\[\s*(?:\d{1,10}\s*)?\]\s*){0,8})"
)
IDENTIFIER = re.compile(NAME)
OWN_VARIABLE = re.compile(rb"(?<!\.extern )\.(?:const|global|shared)\b[^=]*")
"""The beginning of a module's declaration of its own variable."""
DEVICE = re.compile(
    rb"^[ \t]*\.target[ \t]+(sm_[0-9]{1,4}[a-z]?)[ \t]*(?:[,\r\n]|$)", re.MULTILINE
)
EXTENT = re.compile(rb"\[[^\]]*\]?")
FUNCTION_ORDINAL = re.compile(rb"(?<=BB)\d+(?=_)|(?<=__local_depot)\d+")
"""A number that LLVM counts up over the functions of a module.

It is in the names of labels and frames.
"""
TYPE_BITS = re.compile(rb"(?:[bsuf]|bf)(8|16|32|64|128)(?:x2)?")


class Variable(NamedTuple):
    """A variable in local or shared memory.

    The size is None for an array whose extent the launch decides.
    """

    space: str
    name: bytes
    size_bytes: int | None


def read_ptx(data: bytes, *, launch_known: bool = False) -> Reading:
    """Read PTX as the parts `text`, `functions` and `module`.

    `text` has the kernels, `functions` the functions that they call, and `module`
    has declarations with comments.

    `data`: the module, with or without a closing NUL. `launch_known`: True if the
    caller adds what a launch asks for: `.extern` arrays then count 0 bytes.
    Otherwise workgroup memory is None if a kernel uses one: only the container
    knows its size.
    """
    if not PTX.accepts(data):
        raise MalformedBinary("no .version directive", where="ptx")
    functions = list(blocks(data, PTX_HEADER, "ptx"))
    kernels = [block for block in functions if block.kind == "entry"]
    callees = [block for block in functions if block.kind == "func"]
    declarations = without_comments(outside(data, functions))
    shared = dict[bytes, int | None]()
    for variable in _variables(declarations):
        if variable.space == "shared":
            shared[variable.name] = variable.size_bytes
    if launch_known:
        shared = dict[bytes, int | None](known_values(shared))
    # What stands for a name in a digest: variables first, as each may use those before
    # it; PTX demands that order.
    texts = list(_own_variables(declarations))
    texts += [(block.name.encode(), block.span.of(data)) for block in callees]
    shareable: dict[bytes, bytes] = {}
    for name, text in texts:
        shareable[name] = fingerprint(_nameless(name, text, shareable)).hex().encode()
    entries = [_kernel(data, kernel, shared, shareable) for kernel in kernels]
    text_bytes = sum(block.span.size for block in kernels)
    function_bytes = sum(block.span.size for block in callees)
    parts = {
        "text": text_bytes,
        "functions": function_bytes,
        "module": len(data) - text_bytes - function_bytes,
    }
    return Reading(
        format="ptx", size_bytes=len(data), parts=parts, entry_points=tuple(entries)
    )


def device_of(data: bytes) -> str:
    """Return the device that a module asks for (`sm_80`); raises `MalformedBinary`."""
    device = DEVICE.search(data[:PTX_MAGIC_WITHIN_BYTES])
    if device is None:
        raise MalformedBinary("no .target directive with a device", where="ptx")
    return device[1].decode()


def _kernel(
    data: bytes,
    block: Block,
    module_shared: Mapping[bytes, int | None],
    shareable: Mapping[bytes, bytes],
) -> EntryPoint:
    body = block.body.of(data)
    sizes = [module_shared[name] for name in _used(body, module_shared)]
    stack_bytes = 0
    for variable in _variables(body):
        if variable.space == "shared":
            sizes.append(variable.size_bytes)
        else:
            stack_bytes += variable.size_bytes or 0
    workgroup_bytes = None
    if None not in sizes:
        workgroup_bytes = sum(filter(None, sizes))
    text = _nameless(block.name.encode(), block.span.of(data), shareable)
    return EntryPoint(
        block.name,
        code_bytes=block.span.size,
        stack_bytes=stack_bytes,
        workgroup_bytes=workgroup_bytes,
        code=code_digest(text),
    )


def _own_variables(declarations: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and declaration, with contents, of the module's variables.

    LLVM declares one at a time.
    """
    for statement in declarations.split(b";"):
        head = OWN_VARIABLE.search(statement)
        names = []
        if head:
            names = IDENTIFIER.findall(EXTENT.sub(b"", head[0]))
        if head and names:
            yield names[-1], statement[head.start() :]


def _nameless(name: bytes, text: bytes, renamed: Mapping[bytes, bytes]) -> bytes:
    """Return the text without its own name and ordinals.

    Other names are replaced by the contents that they name.
    """
    own_text = FUNCTION_ORDINAL.sub(b"", without_name(text, name))
    if _used(own_text, renamed):
        return IDENTIFIER.sub(lambda match: renamed.get(match[0], match[0]), own_text)
    return own_text


def _used(body: bytes, names: Mapping[bytes, object]) -> set[bytes]:
    """Return the names that the body has.

    Both sets may be large, their intersection takes the smaller one's time.
    """
    if names:
        return set(IDENTIFIER.findall(body)) & names.keys()
    return set()


def _variables(text: bytes) -> Iterator[Variable]:
    for declaration in DECLARATION.finditer(text):
        bits = TYPE_BITS.fullmatch(declaration["type"])
        if bits is None:
            raise MalformedBinary(
                f"unknown type {declaration['type'][:40]!r}", where="ptx"
            )
        items = (2 if declaration["type"].endswith(b"x2") else 1) * int(
            declaration["lanes"] or 1
        )
        for declared in declaration["variables"].split(b","):
            variable = VARIABLE.fullmatch(declared)
            if variable is None:
                raise MalformedBinary(
                    f"a declaration of {declared[:40]!r}", where="ptx"
                )
            brackets = re.findall(rb"\[([^\]]*)\]", variable["dimensions"])
            extents = list(map(bytes.strip, brackets))
            if b"" in extents:
                size_bytes = None
            else:
                size_bytes = prod(map(int, extents), start=int(bits[1]) // 8 * items)
            yield Variable(declaration["space"].decode(), variable["name"], size_bytes)


PTX = Reader(
    lambda data: PTX_MAGIC.match(data[:PTX_MAGIC_WITHIN_BYTES]) is not None, read_ptx
)
"""The reader of PTX, which begins with the directive `.version`."""
