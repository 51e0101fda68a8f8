"""SPIR-V modules: code per entry point, and the memory of their `Function` and `Workgroup` variables.

Format: "SPIR-V Specification", sections 2.3 "Physical Layout" and 3.42 "Instructions",
https://registry.khronos.org/SPIR-V/specs/unified1/SPIRV.html; instruction numbers and
word positions below are its. Explicit layouts of types (`ArrayStride`, `Offset`) count
where they are given; elsewhere the rules of the standard buffer layout hold, as "Vulkan
Specification", section "Offset and Stride Assignment", states them: a three-component
vector is aligned like one of four, a boolean takes four bytes.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.core.reading import EntryPoint, Reader, Reading
from bot.errors import MalformedBinary
from bot.readers.binary import WorkLimit, code_digest, fingerprint

MAGIC = b"\x03\x02\x23\x07"
WORD_BYTES = 4
HEADER_WORDS = 5
VERSION_AT = 1
OP_IMPORT = 11
OP_EXTENDED = 12
OP_ENTRY_POINT = 15
OP_FUNCTION = 54
OP_FUNCTION_END = 56
OP_VARIABLE = 59
OP_BOOL = 20
OP_INT = 21
OP_FLOAT = 22
OP_VECTOR = 23
OP_ARRAY = 28
OP_STRUCT = 30
OP_POINTER = 32
OP_CONSTANT = 43
OP_DECORATE = 71
OP_MEMBER_DECORATE = 72
DEBUG_OPCODES = (
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    317,
    330,
)  # names, sources, lines: nothing that runs
DEBUG_SETS = (b"NonSemantic.", b"OpenCL.DebugInfo.")
STORAGE_WORKGROUP = 4
STORAGE_FUNCTION = 7
DECORATION_ARRAY_STRIDE = 6
DECORATION_ALIASED = 20
DECORATION_OFFSET = 35
DECORATION_LINKAGE = 41
MAX_BYTES = (
    1 << 48
)  # nested arrays multiply; a larger claim is refused rather than computed
INTERFACE_LISTS_ALL_SINCE = 0x00010400
"""From version 1.4 on an entry point's interface names every global variable it uses."""
LABEL_BY_OPCODE = (
    dict.fromkeys(DEBUG_OPCODES, "debug")
    | dict.fromkeys((10, OP_IMPORT, 14, OP_ENTRY_POINT, 16, 17, 331), "interface")
    | dict.fromkeys(
        (OP_DECORATE, OP_MEMBER_DECORATE, 73, 74, 75, 332, 5632, 5633), "annotations"
    )
    | dict.fromkeys((1, OP_VARIABLE, *range(19, 53)), "types")
)
"""Instruction outside of functions → part; `types` are types, constants and global variables."""
LEAST_WORDS = {
    **dict.fromkeys((OP_BOOL, OP_STRUCT), 2),
    **dict.fromkeys((OP_IMPORT, OP_DECORATE, OP_FLOAT), 3),
    **dict.fromkeys((OP_ENTRY_POINT, OP_VARIABLE, OP_MEMBER_DECORATE, OP_CONSTANT), 4),
    **dict.fromkeys((OP_INT, OP_VECTOR, OP_ARRAY, OP_POINTER), 4),
    **dict.fromkeys((OP_EXTENDED, OP_FUNCTION), 5),
}

Size = tuple[int, int]  # bytes and alignment of a type


@dataclass(slots=True)
class SpirvFunction:
    """A function while it is read: where it starts, how many words it has and what its variables occupy."""

    start: int
    words: int = 0
    stack_bytes: int | None = 0


class Module:
    """What one sweep over the instructions collects.

    Attributes:
        at: position of the instruction that is being read.
        entries: function id, name, interface ids; in order.
        workgroup: variable id → bytes, None where the type has no known size.
        nameless: position and count of the words that are only names, by rising position.
        debug_sets: ids of the imported sets of instructions that only describe.
        sizes: by result id; a type without an entry (runtime arrays, images, matrices, …) has no known size.
        constants: id → value of integer constants.
    """

    def __init__(self, words: array[int]) -> None:
        self.words = words
        self.at = HEADER_WORDS
        self.current: SpirvFunction | None = None
        self.entries = list[tuple[int, str, frozenset[int]]]()
        self.nameless = list[tuple[int, int]]()
        self.functions = dict[int, SpirvFunction]()
        self.workgroup = dict[int, int | None]()
        self.aliased = set[int]()
        self.debug_sets = set[int]()
        self.parts = Counter(header=HEADER_WORDS, text=0)
        self.sizes = dict[int, Size]()
        self.offsets = dict[int, dict[int, int]]()
        self.pointees = dict[int, int]()
        self.constants = dict[int, int]()
        self.strides = dict[int, int]()

    def visit(self, opcode: int, words: array[int]) -> None:
        """Take in one instruction.

        Raises `MalformedBinary` where it is cut short, or its type absurdly large.
        """
        if len(words) < LEAST_WORDS.get(opcode, 1):
            raise MalformedBinary(
                f"instruction {opcode} of {len(words)} words", where="spirv"
            )
        self._take(opcode, words)
        if (size := self._size(opcode, words)) is not None:
            if size[0] > MAX_BYTES:
                raise MalformedBinary(f"a type of {size[0]} bytes", where="spirv")
            self.sizes[words[1]] = size
        label = LABEL_BY_OPCODE.get(opcode)
        if self.current is not None:
            self.current.words += len(words)
            label = "text"
            if opcode == OP_FUNCTION_END:
                self.current = None
        if label is not None:
            self.parts[label] += len(words)

    def _take(self, opcode: int, words: array[int]) -> None:
        """What an instruction says of names, functions and memory."""
        is_name = opcode in DEBUG_OPCODES or (
            opcode == OP_DECORATE and words[2] == DECORATION_LINKAGE
        )
        if opcode == OP_IMPORT and words[2:].tobytes().startswith(DEBUG_SETS):
            self.debug_sets.add(words[1])
            is_name = True
        if is_name or (opcode == OP_EXTENDED and words[3] in self.debug_sets):
            self.nameless.append((self.at, len(words)))
        elif opcode == OP_ENTRY_POINT:
            name, end, _ = words[3:].tobytes().partition(b"\0")
            if not end:
                raise MalformedBinary(
                    "an entry point without the end of its name", where="spirv"
                )
            name_words = len(name) // WORD_BYTES + 1
            # The first word counts the words of the name too.
            self.nameless += [(self.at, 1), (self.at + 3, name_words)]
            self.entries.append(
                (
                    words[2],
                    name.decode("utf-8", "replace"),
                    frozenset(words[3 + name_words :]),
                )
            )
        elif opcode == OP_FUNCTION:
            if self.current is not None or words[2] in self.functions:
                raise MalformedBinary("a function inside another", where="spirv")
            self.current = self.functions[words[2]] = SpirvFunction(self.at)
        elif opcode == OP_VARIABLE:
            size = self.sizes.get(self.pointees.get(words[1], -1), (None,))[0]
            if words[3] == STORAGE_WORKGROUP:
                self.workgroup[words[2]] = size
            elif words[3] == STORAGE_FUNCTION and self.current is not None:
                stack = self.current.stack_bytes
                if stack is None or size is None:
                    self.current.stack_bytes = None
                else:
                    self.current.stack_bytes = stack + size
        elif opcode == OP_DECORATE and words[2] == DECORATION_ALIASED:
            self.aliased.add(words[1])
        elif (
            opcode == OP_DECORATE
            and words[2] == DECORATION_ARRAY_STRIDE
            and len(words) > 3
        ):
            self.strides[words[1]] = words[3]

    def _size(self, opcode: int, words: array[int]) -> Size | None:
        """The size of the type that an instruction defines.

        None for one of no known size, and for no type.
        """
        if opcode == OP_BOOL:
            return 4, 4
        if opcode in (OP_INT, OP_FLOAT):
            return -(-words[2] // 8), -(-words[2] // 8)
        if opcode == OP_STRUCT:
            offsets = self.offsets.get(words[1], {})
            end = 0
            alignment = 1
            for member, type_id in enumerate(words[2:]):
                size = self.sizes.get(type_id)
                if size is None:
                    return None
                alignment = max(alignment, size[1])
                end = max(end, offsets.get(member, _aligned(end, size[1])) + size[0])
            return _aligned(end, alignment), alignment
        if opcode == OP_POINTER:
            self.pointees[words[1]] = words[3]
        elif opcode == OP_CONSTANT:
            # Word 1 is the type, word 2 the id, then the value, low-order word first.
            self.constants[words[2]] = sum(
                word << (32 * place) for place, word in enumerate(words[3:5])
            )
        elif (
            opcode == OP_MEMBER_DECORATE
            and words[3] == DECORATION_OFFSET
            and len(words) > 4
        ):
            self.offsets.setdefault(words[1], {})[words[2]] = words[4]
        elif opcode == OP_VECTOR and (inner := self.sizes.get(words[2])):
            return inner[0] * words[3], inner[0] * (words[3] + words[3] % 2)
        elif (
            opcode == OP_ARRAY
            and (inner := self.sizes.get(words[2]))
            and words[3] in self.constants
        ):
            return (
                self.strides.get(words[1], _aligned(*inner)) * self.constants[words[3]],
                inner[1],
            )
        return None


def read_spirv(data: bytes) -> Reading:
    """Parts `text` (functions), `types`, `annotations`, `interface`, `debug` and `header`."""
    if (
        not SPIRV.accepts(data)
        or len(data) % WORD_BYTES
        or len(data) < HEADER_WORDS * WORD_BYTES
    ):
        raise MalformedBinary(f"no SPIR-V module in {len(data)} bytes", where="spirv")
    words = array("I", data)
    if sys.byteorder == "big":
        words.byteswap()
    module = Module(words)
    while module.at < len(words):
        count = words[module.at] >> 16
        opcode = words[module.at] & 0xFFFF
        if count == 0 or module.at + count > len(words):
            what = (
                f"an instruction of {count} words at word {module.at} of {len(words)}"
            )
            raise MalformedBinary(what, where="spirv")
        module.visit(opcode, words[module.at : module.at + count])
        module.at += count
    if module.current is not None:
        raise MalformedBinary("a function without its end", where="spirv")
    parts = {label: count * WORD_BYTES for label, count in module.parts.items()}
    return Reading(
        format="spirv",
        size_bytes=len(data),
        parts=parts,
        entry_points=tuple(_entry_points(module)),
    )


def _aligned(size_bytes: int, alignment: int) -> int:
    return -(-size_bytes // max(alignment, 1)) * max(alignment, 1)


def _entry_points(module: Module) -> Iterator[EntryPoint]:
    # Before that version nothing says which entry point uses what; every variable of
    # the module counts then.
    lists_all = module.words[VERSION_AT] >= INTERFACE_LISTS_ALL_SINCE
    whole = None if lists_all else _workgroup_bytes(module, module.workgroup)
    ids = {function_id for function_id, _, _ in module.entries}
    entries = {
        function_id: each
        for function_id, each in module.functions.items()
        if function_id in ids
    }
    starts = [HEADER_WORDS, *(entry.start + entry.words for entry in entries.values())]
    ends = [*(entry.start for entry in entries.values()), len(module.words)]
    # A digest is of the function and of all that is no entry point, as ids of that
    # stand in its code.
    outside = (
        _without_names(module, start, end)
        for start, end in zip(starts, ends, strict=True)
    )
    budget = WorkLimit(len(module.words) * WORD_BYTES, "spirv")
    common = fingerprint(
        module.words[VERSION_AT : VERSION_AT + 1].tobytes(), b"".join(outside)
    )
    for function_id, name, interface in module.entries:
        function = entries.get(function_id)
        if function is None:
            raise MalformedBinary(
                f"entry point {name[:80]!r} names no function", where="spirv"
            )
        budget.spend(function.words * WORD_BYTES)
        yield EntryPoint(
            name,
            code_bytes=function.words * WORD_BYTES,
            stack_bytes=function.stack_bytes,
            workgroup_bytes=_workgroup_bytes(module, interface) if lists_all else whole,
            code=code_digest(
                common,
                _without_names(module, function.start, function.start + function.words),
            ),
        )


def _without_names(module: Module, start: int, end: int) -> bytes:
    """These words without those that are only names."""
    words = array("I")
    at = start
    first, last = (bisect_left(module.nameless, (each,)) for each in (start, end))
    for cut, cut_words in module.nameless[first:last]:
        words += module.words[at:cut]
        at = cut + cut_words
    return (words + module.words[at:end]).tobytes()


def _workgroup_bytes(module: Module, variables: Iterable[int]) -> int | None:
    """The sum of the variables, where those that alias each other share the largest one's memory."""
    own = 0
    shared = 0
    for variable in variables:
        size = module.workgroup.get(variable, 0)
        if size is None:
            return None
        if variable in module.aliased:
            shared = max(shared, size)
        else:
            own += size
    return own + shared


SPIRV = Reader(lambda data: data[:WORD_BYTES] == MAGIC, read_spirv)
"""Modules whose words are little-endian, as every compiler writes them."""
