"""Read the code of entry points in SPIR-V modules, and the memory of their variables.

Variables of the classes `Function` and `Workgroup` count.

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
# names, sources, lines: nothing that runs
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
)
DEBUG_SETS = (b"NonSemantic.", b"OpenCL.DebugInfo.")
STORAGE_WORKGROUP = 4
STORAGE_FUNCTION = 7
DECORATION_ARRAY_STRIDE = 6
DECORATION_ALIASED = 20
DECORATION_OFFSET = 35
DECORATION_LINKAGE = 41
# nested arrays multiply; a larger claim is refused rather than computed
MAX_BYTES = 1 << 48
INTERFACE_LISTS_ALL_SINCE = 0x00010400
"""The first version in which an interface names every global variable in use.

The interface is the entry point's.
"""
LABEL_BY_OPCODE = (
    dict.fromkeys(DEBUG_OPCODES, "debug")
    | dict.fromkeys((10, OP_IMPORT, 14, OP_ENTRY_POINT, 16, 17, 331), "interface")
    | dict.fromkeys(
        (OP_DECORATE, OP_MEMBER_DECORATE, 73, 74, 75, 332, 5632, 5633), "annotations"
    )
    | dict.fromkeys((1, OP_VARIABLE, *range(19, 53)), "types")
)
"""Instruction outside of functions → its part.

The part `types` has types, constants and global variables.
"""
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
    """A function while it is read: start, words, and the bytes of its variables."""

    start: int
    words: int = 0
    stack_bytes: int | None = 0


class Module:
    """The facts that one sweep over the instructions collects.

    Attributes:
        at: position of the instruction that is being read.
        entries: function id, name, interface ids; in order.
        workgroup: variable id → bytes, None where the type has no known size.
        nameless: position and count of the words that are only names, by rising
            position.
        debug_sets: ids of the imported sets of instructions that only describe.
        sizes: by result id; a type without an entry (runtime arrays, images, matrices,
            …) has no known size.
        constants: id → value of integer constants.
    """

    def __init__(self, module_words: array[int]) -> None:
        self.words = module_words
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

    def visit(self, opcode: int, instruction: array[int]) -> None:
        """Read one instruction.

        Raises `MalformedBinary` if it is cut short, or if its type is absurdly
        large.
        """
        if len(instruction) < LEAST_WORDS.get(opcode, 1):
            raise MalformedBinary(
                f"instruction {opcode} of {len(instruction)} words", where="spirv"
            )
        self._take(opcode, instruction)
        if (size := self._size(opcode, instruction)) is not None:
            if size[0] > MAX_BYTES:
                raise MalformedBinary(f"a type of {size[0]} bytes", where="spirv")
            self.sizes[instruction[1]] = size
        label = LABEL_BY_OPCODE.get(opcode)
        if self.current is not None:
            self.current.words += len(instruction)
            label = "text"
            if opcode == OP_FUNCTION_END:
                self.current = None
        if label is not None:
            self.parts[label] += len(instruction)

    def _take(self, opcode: int, instruction: array[int]) -> None:
        """Read what an instruction says of names, functions and memory."""
        if self._is_only_name(opcode, instruction):
            self.nameless.append((self.at, len(instruction)))
        elif opcode == OP_ENTRY_POINT:
            self._take_entry_point(instruction)
        elif opcode == OP_FUNCTION:
            if self.current is not None or instruction[2] in self.functions:
                raise MalformedBinary("a function inside another", where="spirv")
            self.current = SpirvFunction(self.at)
            self.functions[instruction[2]] = self.current
        elif opcode == OP_VARIABLE:
            self._take_variable(instruction)
        elif opcode == OP_DECORATE and instruction[2] == DECORATION_ALIASED:
            self.aliased.add(instruction[1])
        elif (
            opcode == OP_DECORATE
            and instruction[2] == DECORATION_ARRAY_STRIDE
            and len(instruction) > 3
        ):
            self.strides[instruction[1]] = instruction[3]

    def _is_only_name(self, opcode: int, instruction: array[int]) -> bool:
        """Return True for an instruction that only names or describes others."""
        if opcode == OP_IMPORT and instruction[2:].tobytes().startswith(DEBUG_SETS):
            self.debug_sets.add(instruction[1])
            return True
        if opcode in DEBUG_OPCODES:
            return True
        if opcode == OP_DECORATE:
            return instruction[2] == DECORATION_LINKAGE
        return opcode == OP_EXTENDED and instruction[3] in self.debug_sets

    def _take_entry_point(self, instruction: array[int]) -> None:
        name, end, _ = instruction[3:].tobytes().partition(b"\0")
        if not end:
            raise MalformedBinary(
                "an entry point without the end of its name", where="spirv"
            )
        name_words = len(name) // WORD_BYTES + 1
        # The first word counts the words of the name too.
        self.nameless += [(self.at, 1), (self.at + 3, name_words)]
        interface = frozenset(instruction[3 + name_words :])
        self.entries.append(
            (instruction[2], name.decode("utf-8", "replace"), interface)
        )

    def _take_variable(self, instruction: array[int]) -> None:
        pointee = self.pointees.get(instruction[1], -1)
        size_bytes = self.sizes.get(pointee, (None,))[0]
        if instruction[3] == STORAGE_WORKGROUP:
            self.workgroup[instruction[2]] = size_bytes
        elif instruction[3] == STORAGE_FUNCTION and self.current is not None:
            stack_bytes = self.current.stack_bytes
            if stack_bytes is None or size_bytes is None:
                self.current.stack_bytes = None
            else:
                self.current.stack_bytes = stack_bytes + size_bytes

    def _size(self, opcode: int, instruction: array[int]) -> Size | None:
        """Return the size of the type that an instruction defines.

        None for a type of no known size, and for an instruction that defines no type.
        """
        if opcode == OP_BOOL:
            return 4, 4
        if opcode in (OP_INT, OP_FLOAT):
            size_bytes = -(-instruction[2] // 8)
            return size_bytes, size_bytes
        if opcode == OP_STRUCT:
            return self._struct_size(instruction)
        if opcode == OP_POINTER:
            self.pointees[instruction[1]] = instruction[3]
        elif opcode == OP_CONSTANT:
            # Word 1 is the type, word 2 the id, then the value, low-order word first.
            low, high, *_ = [*instruction[3:5], 0, 0]
            self.constants[instruction[2]] = low | high << 32
        elif (
            opcode == OP_MEMBER_DECORATE
            and instruction[3] == DECORATION_OFFSET
            and len(instruction) > 4
        ):
            self.offsets.setdefault(instruction[1], {})[instruction[2]] = instruction[4]
        elif opcode == OP_VECTOR and (inner := self.sizes.get(instruction[2])):
            count = instruction[3]
            return inner[0] * count, inner[0] * (count + count % 2)
        elif opcode == OP_ARRAY and (inner := self.sizes.get(instruction[2])):
            count_id = instruction[3]
            if count_id in self.constants:
                stride = self.strides.get(instruction[1], _aligned(*inner))
                return stride * self.constants[count_id], inner[1]
        return None

    def _struct_size(self, instruction: array[int]) -> Size | None:
        """Return the size of a structure; None if a member has no known size."""
        offsets = self.offsets.get(instruction[1], {})
        end = 0
        alignment = 1
        for member, type_id in enumerate(instruction[2:]):
            size = self.sizes.get(type_id)
            if size is None:
                return None
            alignment = max(alignment, size[1])
            end = max(end, offsets.get(member, _aligned(end, size[1])) + size[0])
        return _aligned(end, alignment), alignment


def read_spirv(data: bytes) -> Reading:
    """Read a module as its parts; `text` has the functions.

    The other parts are `types`, `annotations`, `interface`, `debug` and `header`.
    """
    if (
        not SPIRV.accepts(data)
        or len(data) % WORD_BYTES
        or len(data) < HEADER_WORDS * WORD_BYTES
    ):
        raise MalformedBinary(f"no SPIR-V module in {len(data)} bytes", where="spirv")
    module_words = array("I", data)
    if sys.byteorder == "big":
        module_words.byteswap()
    module = Module(module_words)
    while module.at < len(module_words):
        count = module_words[module.at] >> 16
        opcode = module_words[module.at] & 0xFFFF
        if count == 0 or module.at + count > len(module_words):
            problem = f"an instruction of {count} words at word {module.at} of {len(module_words)}"
            raise MalformedBinary(problem, where="spirv")
        module.visit(opcode, module_words[module.at : module.at + count])
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
    if lists_all:
        whole = None
    else:
        whole = _workgroup_bytes(module, module.workgroup)
    ids = {function_id for function_id, _, _ in module.entries}
    entries = dict[int, SpirvFunction]()
    outside = list[bytes]()
    end = HEADER_WORDS
    # A digest is of the function and of all that is no entry point, as ids of that
    # stand in its code.
    for function_id, entry in module.functions.items():
        if function_id in ids:
            entries[function_id] = entry
            outside.append(_without_names(module, end, entry.start))
            end = entry.start + entry.words
    outside.append(_without_names(module, end, len(module.words)))
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
    """Return these words without those that are only names."""
    kept_words = array("I")
    offset = start
    first = bisect_left(module.nameless, (start,))
    last = bisect_left(module.nameless, (end,))
    for cut, cut_words in module.nameless[first:last]:
        kept_words += module.words[offset:cut]
        offset = cut + cut_words
    return (kept_words + module.words[offset:end]).tobytes()


def _workgroup_bytes(module: Module, variables: Iterable[int]) -> int | None:
    """Return the sum of the variables.

    Variables that alias each other count once, with the largest size.
    """
    own_bytes = 0
    shared = 0
    for variable in variables:
        size = module.workgroup.get(variable, 0)
        if size is None:
            return None
        if variable in module.aliased:
            shared = max(shared, size)
        else:
            own_bytes += size
    return own_bytes + shared


SPIRV = Reader(lambda data: data[:WORD_BYTES] == MAGIC, read_spirv)
"""The reader of modules with little-endian words, which every compiler writes."""
