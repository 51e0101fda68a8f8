"""PTX: the text of each kernel, and its local and shared memory.

Format: "Parallel Thread Execution ISA", chapters "State Spaces" and "Directives",
https://docs.nvidia.com/cuda/parallel-thread-execution. LLVM's NVPTX back end puts the frame of a function into one
`.local` array `__local_depotN` inside its body, static workgroup memory into `.shared` arrays, and IREE all of its
workgroup memory into `.extern .shared … __dynamic_shared_memory__[]`, whose size the container states per kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple

from bot.core.reading import EntryPoint, Reading
from bot.errors import MalformedBinary
from bot.readers.blocks import Block, blocks, header_pattern, outside, without_comments
from bot.readers.object_code import code_digest, fingerprint, without_name

NAME = rb"[A-Za-z_$%][\w$]*"
HEADER = header_pattern(
    rb"(?:\.(?:visible|weak|common)\s+)?\.(?P<kind>entry|func)\s+(?:\([^()]*\)\s*)?(?P<name>" + NAME + rb")"
)
MAGIC = re.compile(rb"(?:\s|//[^\n]*\n)*\.version\s+\d")
MAGIC_WITHIN_BYTES = 1 << 16
DECLARATION = re.compile(
    rb"\.(?P<space>local|shared)\s+(?:\.align\s+\d+\s+)?(?:\.v(?P<lanes>[24])\s+)?"
    rb"\.(?P<type>[a-z]\w*)\s+(?P<variables>[^;={}]+)"
)
VARIABLE = re.compile(rb"\s*(?P<name>" + NAME + rb")\s*(?P<dimensions>(?:\[\s*(?:\d{1,10}\s*)?\]\s*){0,8})")
IDENTIFIER = re.compile(NAME)
OWN_VARIABLE = re.compile(rb"(?<!\.extern )\.(?:const|global|shared)\b[^=]*")
"""What a module says of a variable of its own before it says what is in it."""
DEVICE = re.compile(rb"^[ \t]*\.target[ \t]+(sm_[0-9]{1,4}[a-z]?)[ \t]*(?:[,\r\n]|$)", re.MULTILINE)
EXTENT = re.compile(rb"\[[^\]]*\]?")
FUNCTION_ORDINAL = re.compile(rb"(?<=BB)\d+(?=_)|(?<=__local_depot)\d+")
"""What LLVM counts up over the functions of a module, in the names of labels and frames."""
LABELS = {"entry": "text", "func": "functions"}
TYPE_BITS = re.compile(rb"(?:[bsuf]|bf)(8|16|32|64|128)(?:x2)?")


class Variable(NamedTuple):
    """A variable in local or shared memory; the size is None for an array whose extent the launch decides."""

    space: str
    name: bytes
    size_bytes: int | None


def accepts(data: bytes) -> bool:
    """True where `.version` is the first directive."""
    return MAGIC.match(data[:MAGIC_WITHIN_BYTES]) is not None


def read(data: bytes) -> Reading:
    """Workgroup memory is None where a kernel uses an `.extern` array: only the container knows its size."""
    return read_ptx(data)


def read_ptx(data: bytes, *, launch_known: bool = False) -> Reading:
    """A module's kernels: bytes of their text, of their own frame and of their shared memory.

    `data`: the module, with or without a closing NUL; `launch_known`: True where the caller adds what a launch asks
    for; `.extern` arrays then count 0 bytes.

    Returns:
        Parts `text` (kernels), `functions` (what they call) and `module` (declarations, comments).

    Raises:
        MalformedBinary: no PTX, or blocks that do not close.
    """
    if not accepts(data):
        raise MalformedBinary("no .version directive", where="ptx")
    functions = list(blocks(data, HEADER, "ptx"))
    declarations = without_comments(outside(data, functions))
    shared = {each.name: each.size_bytes for each in _variables(declarations) if each.space == "shared"}
    if launch_known:
        shared = {name: size_bytes for name, size_bytes in shared.items() if size_bytes is not None}
    # What stands for a name in a digest: variables first, as each may use those before it; PTX demands that order.
    shareable: dict[bytes, bytes] = {}
    callees = ((block.name.encode(), block.span.of(data)) for block in functions if block.kind == "func")
    for name, text in (*_own_variables(declarations), *callees):
        shareable[name] = fingerprint(_nameless(name, text, shareable)).hex().encode()
    entries = tuple(_entry_point(data, block, shared, shareable) for block in functions if block.kind == "entry")
    parts = {label: sum(each.span.size for each in functions if each.kind == kind) for kind, label in LABELS.items()}
    return Reading("ptx", len(data), {**parts, "module": len(data) - sum(parts.values())}, entries)


def device_of(data: bytes) -> str:
    """The device that a module asks for (`sm_80`); raises `MalformedBinary`."""
    device = DEVICE.search(data[:MAGIC_WITHIN_BYTES])
    if device is None:
        raise MalformedBinary("no .target directive with a device", where="ptx")
    return device[1].decode()


def _entry_point(
    data: bytes, block: Block, module_shared: Mapping[bytes, int | None], shareable: Mapping[bytes, bytes]
) -> EntryPoint:
    body = block.body.of(data)
    own = tuple(_variables(body))
    sizes = [variable.size_bytes for variable in own if variable.space == "shared"]
    sizes += [module_shared[name] for name in _used(body, module_shared)]
    return EntryPoint(
        block.name,
        code_bytes=block.span.size,
        stack_bytes=sum(variable.size_bytes or 0 for variable in own if variable.space == "local"),
        stack_kind="static",
        workgroup_bytes=None if None in sizes else sum(size for size in sizes if size),
        code=code_digest(_nameless(block.name.encode(), block.span.of(data), shareable)),
    )


def _own_variables(declarations: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and declaration, with contents, of the module's variables; LLVM declares one at a time."""
    for statement in declarations.split(b";"):
        head = OWN_VARIABLE.search(statement)
        names = IDENTIFIER.findall(EXTENT.sub(b"", head[0])) if head else []
        if head and names:
            yield names[-1], statement[head.start() :]


def _nameless(name: bytes, text: bytes, known: Mapping[bytes, bytes]) -> bytes:
    """The text without its own name and ordinals, and with the contents of all else that it names."""
    own = FUNCTION_ORDINAL.sub(b"", without_name(text, name))
    return IDENTIFIER.sub(lambda match: known.get(match[0], match[0]), own) if _used(own, known) else own


def _used(body: bytes, names: Mapping[bytes, object]) -> set[bytes]:
    """Those of the names that the body has; both sets may be large, their intersection takes the smaller one's time."""
    return set(IDENTIFIER.findall(body)) & names.keys() if names else set()


def _variables(text: bytes) -> Iterator[Variable]:
    for declaration in DECLARATION.finditer(text):
        bits = TYPE_BITS.fullmatch(declaration["type"])
        if bits is None:
            raise MalformedBinary(f"unknown type {declaration['type'][:40]!r}", where="ptx")
        items = (2 if declaration["type"].endswith(b"x2") else 1) * int(declaration["lanes"] or 1)
        for declared in declaration["variables"].split(b","):
            variable = VARIABLE.fullmatch(declared)
            if variable is None:
                raise MalformedBinary(f"a declaration of {declared[:40]!r}", where="ptx")
            extents = [extent.strip() for extent in re.findall(rb"\[([^\]]*)\]", variable["dimensions"])]
            size_bytes = None if b"" in extents else prod(map(int, extents), start=int(bits[1]) // 8 * items)
            yield Variable(declaration["space"].decode(), variable["name"], size_bytes)
