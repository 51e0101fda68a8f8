"""Kernels as source text, which a driver compiles: PTX, and Metal's shading language.

PTX: "Parallel Thread Execution ISA", chapters "State Spaces" and "Directives",
https://docs.nvidia.com/cuda/parallel-thread-execution. LLVM's NVPTX back end puts the
frame of a function into one `.local` array `__local_depotN` inside its body, static
workgroup memory into `.shared` arrays, and IREE all of its workgroup memory into
`.extern .shared … __dynamic_shared_memory__[]`, whose size the container states per
kernel.

Metal: "Metal Shading Language Specification", sections 2.1 to 2.3 with tables 2.1 to
2.4 (sizes and alignments of types: a vector of three takes the space of four) and 4.4
(`threadgroup` address space),
https://developer.apple.com/metal/Metal-Shading-Language-Specification.pdf. The compiler
makes it with SPIRV-Cross, which writes arrays as `spvUnsafeArray<T, N>`. Source does
not say what a kernel's frame takes: the driver decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from operator import itemgetter
from re import Match, Pattern
from typing import NamedTuple

from bot.core.reading import EntryPoint, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import ByteSpan, code_digest, fingerprint

# Named blocks of C-like text: where each begins and ends, comments and strings
# respected.

SKIPPED = rb'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?'
"""Comments and strings.

Unterminated ones run to the end, so that scanning stays linear.
"""
MAX_NAME_BYTES = 1024  # longer names are refused: a block is searched for its own
INSIDE = re.compile(SKIPPED + rb"|(?P<brace>[{}])", re.DOTALL)


class Block(NamedTuple):
    """One block at the outermost level.

    Its span is from the header's first byte to the closing brace.
    """

    kind: str
    name: str
    span: ByteSpan
    body: ByteSpan


def header_pattern(header: bytes) -> Pattern[bytes]:
    """Make a pattern for `blocks` from a `header` with the groups `kind` and `name`."""
    return re.compile(SKIPPED + rb"|(?P<brace>[{}])|(?P<stop>;)|" + header, re.DOTALL)


def blocks(text: bytes, pattern: Pattern[bytes], where: str) -> Iterator[Block]:
    """Return the outermost blocks with a header, in order.

    A `;` before the brace makes it a mere declaration.

    Raises MalformedBinary for a brace that closes nothing, or is never closed.
    """
    header: Match[bytes] | None = None
    offset = 0
    while token := pattern.search(text, offset):
        offset = token.end()
        if token["brace"]:
            offset = _block_end(text, token, where)
            if header is not None:
                if len(header["name"]) > MAX_NAME_BYTES:
                    raise MalformedBinary(
                        f"a name of {len(header['name'])} bytes", where=where
                    )
                kind = header["kind"].decode("utf-8", "replace")
                name = header["name"].decode("utf-8", "replace")
                body = ByteSpan(token.end(), offset - 1 - token.end())
                yield Block(
                    kind=kind,
                    name=name,
                    span=ByteSpan(header.start(), offset - header.start()),
                    body=body,
                )
            header = None
        elif token["name"] or token["stop"]:
            header = token if token["name"] else None


def _block_end(text: bytes, opening: Match[bytes], where: str) -> int:
    """Offset after the brace that closes the opening one."""
    if opening["brace"] == b"}":
        raise MalformedBinary(
            f"a brace at offset {opening.start()} closes nothing", where=where
        )
    depth = 1
    for token in INSIDE.finditer(text, opening.end()):
        if token["brace"]:
            depth += 1 if token["brace"] == b"{" else -1
            if depth == 0:
                return token.end()
    raise MalformedBinary(
        f"the brace at offset {opening.start()} is never closed", where=where
    )


def outside(text: bytes, inside: list[Block]) -> bytes:
    """Return the text without the blocks, for declarations at the outermost level."""
    starts = [0, *(block.span.end for block in inside)]
    ends = [*(block.span.start for block in inside), len(text)]
    return b"\n".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def without_comments(text: bytes) -> bytes:
    """Return the text with every comment and string as one blank."""
    return re.sub(SKIPPED, b" ", text, flags=re.DOTALL)


def without_name(text: bytes, name: bytes) -> bytes:
    """Return source text with `@` for the name.

    The name may also start the name of a parameter (PTX: `NAME_param_0`).
    """
    return re.sub(
        rb"(?<![\w$%.])" + re.escape(name) + rb"(?=_param_|[^\w$]|\Z)", b"@", text
    )


# PTX.


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
"""What a module says of a variable of its own before it says what is in it."""
DEVICE = re.compile(
    rb"^[ \t]*\.target[ \t]+(sm_[0-9]{1,4}[a-z]?)[ \t]*(?:[,\r\n]|$)", re.MULTILINE
)
EXTENT = re.compile(rb"\[[^\]]*\]?")
FUNCTION_ORDINAL = re.compile(rb"(?<=BB)\d+(?=_)|(?<=__local_depot)\d+")
"""What LLVM counts up over the functions of a module.

It is in the names of labels and frames.
"""
LABELS = {"entry": "text", "func": "functions"}
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

    They are the kernels, what these call, and declarations with comments.

    `data`: the module, with or without a closing NUL. `launch_known`: True where the
    caller adds what a launch asks for: `.extern` arrays then count 0 bytes. Elsewhere
    workgroup memory is None where a kernel uses one: only the container knows its size.
    """
    if not PTX.accepts(data):
        raise MalformedBinary("no .version directive", where="ptx")
    functions = list(blocks(data, PTX_HEADER, "ptx"))
    declarations = without_comments(outside(data, functions))
    shared = {
        variable.name: variable.size_bytes
        for variable in _variables(declarations)
        if variable.space == "shared"
    }
    if launch_known:
        shared = {
            name: size_bytes
            for name, size_bytes in shared.items()
            if size_bytes is not None
        }
    # What stands for a name in a digest: variables first, as each may use those before
    # it; PTX demands that order.
    shareable: dict[bytes, bytes] = {}
    callees = (
        (block.name.encode(), block.span.of(data))
        for block in functions
        if block.kind == "func"
    )
    for name, text in (*_own_variables(declarations), *callees):
        shareable[name] = fingerprint(_nameless(name, text, shareable)).hex().encode()
    entries = tuple(
        _ptx_kernel(data, block=block, module_shared=shared, shareable=shareable)
        for block in functions
        if block.kind == "entry"
    )
    parts = dict.fromkeys(LABELS.values(), 0)
    for function in functions:
        if function.kind in LABELS:
            parts[LABELS[function.kind]] += function.span.size
    return Reading(
        format="ptx",
        size_bytes=len(data),
        parts={**parts, "module": len(data) - sum(parts.values())},
        entry_points=entries,
    )


def device_of(data: bytes) -> str:
    """Return the device that a module asks for (`sm_80`); raises `MalformedBinary`."""
    device = DEVICE.search(data[:PTX_MAGIC_WITHIN_BYTES])
    if device is None:
        raise MalformedBinary("no .target directive with a device", where="ptx")
    return device[1].decode()


def _ptx_kernel(
    data: bytes,
    block: Block,
    module_shared: Mapping[bytes, int | None],
    shareable: Mapping[bytes, bytes],
) -> EntryPoint:
    body = block.body.of(data)
    own_variables = tuple(_variables(body))
    sizes = [
        variable.size_bytes for variable in own_variables if variable.space == "shared"
    ]
    sizes += [module_shared[name] for name in _used(body, module_shared)]
    return EntryPoint(
        block.name,
        code_bytes=block.span.size,
        stack_bytes=sum(
            variable.size_bytes or 0
            for variable in own_variables
            if variable.space == "local"
        ),
        workgroup_bytes=None if None in sizes else sum(size for size in sizes if size),
        code=code_digest(
            _nameless(block.name.encode(), block.span.of(data), shareable)
        ),
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

    It has the contents of all else that it names.
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
            extents = [
                extent.strip()
                for extent in re.findall(rb"\[([^\]]*)\]", variable["dimensions"])
            ]
            if b"" in extents:
                size_bytes = None
            else:
                size_bytes = prod(map(int, extents), start=int(bits[1]) // 8 * items)
            yield Variable(declaration["space"].decode(), variable["name"], size_bytes)


# Metal.


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

    They are the kernels, and types, helpers and comments. Stacks are None.
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

    None where a type has no known size or the launch decides.
    """
    if THREADGROUP_ARGUMENT.search(kernel):
        return None
    total = 0
    for match in filter(
        itemgetter("end"), THREADGROUP.finditer(without_comments(kernel))
    ):
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
        """Return the size of an array of `count`; None where it is absurdly large."""
        whole = _aligned(self.size_bytes, self.alignment_bytes) * count
        if whole <= MAX_BYTES:
            return Size(whole, self.alignment_bytes)
        return None


class TypeSizes:
    """Sizes of the types of one source; structs may use those defined before them."""

    def __init__(self) -> None:
        self.structs: dict[str, Size | None] = {}

    def define_struct(self, name: str, body: str) -> None:
        """Take in a struct's members.

        Its size is None where one of them has no known size.
        """
        end = 0
        alignment = 1
        for member in filter(None, (part.strip() for part in body.split(";"))):
            size = self.declared(member)
            if size is None:
                self.structs[name] = None
                return
            alignment = max(alignment, size.alignment_bytes)
            end = _aligned(end, size.alignment_bytes) + size.size_bytes
        self.structs[name] = Size(_aligned(end, alignment), alignment)

    def declared(self, declaration: str) -> Size | None:
        """Size of what `type name[n]…` declares; None for anything else."""
        text = declaration.strip()
        match = None
        if len(text) <= MAX_DECLARATION:
            match = METAL_DECLARATION.fullmatch(text)
        size = self.of(match["type"]) if match else None
        for extent in re.findall(r"\d+", match["extents"]) if match else ():
            size = size and size.times(int(extent))
        return size

    def of(self, type_name: str, depth: int = 0) -> Size | None:
        """Size of a type; None where it is not known."""
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


PTX = Reader(
    lambda data: PTX_MAGIC.match(data[:PTX_MAGIC_WITHIN_BYTES]) is not None, read_ptx
)
"""`.version` is the first directive."""
METAL = Reader(lambda data: METAL_MAGIC in data[:METAL_MAGIC_WITHIN_BYTES], read_metal)
