"""RISC-V instructions by class, decoded by their opcode fields: 64-bit, of 2 or 4 bytes.

Tables: "The RISC-V Instruction Set Manual, Volume I", chapters "RV32/64G Instruction Set Listings" (major opcodes and
their `funct` fields), "C" (compressed) and "V" (vectors: the width field of loads and stores, `funct6` of OP-V),
https://github.com/riscv/riscv-isa-manual. Code with anything else (longer ones, opcodes for vendors) is not counted.
"""

from __future__ import annotations

from bot.readers.code.instruction_counts import InstructionCounts

LINK_REGISTERS = frozenset({1, 5})
STACK_POINTER, FRAME_POINTER = 2, 8
LOAD_FP, STORE_FP, OP_IMM, STORE, OP, OP_FP, OP_V = 0x07, 0x27, 0x13, 0x23, 0x33, 0x53, 0x57
BRANCH, JALR, JAL, LOAD = 0x63, 0x67, 0x6F, 0x03
SIMPLE = {
    **dict.fromkeys((LOAD, LOAD_FP), "load"),
    **dict.fromkeys((STORE, STORE_FP), "store"),
    **dict.fromkeys((0x17, 0x1B, 0x3B, 0x43, 0x47, 0x4B, 0x4F), "arithmetic"),
    **dict.fromkeys((0x0F, 0x2F, 0x73), "other"),
    0x37: "move",
    BRANCH: "branch",
}
"""Major opcode → class, where it says all; others are FENCE, atomics and SYSTEM."""
SCALAR_WIDTHS = frozenset({1, 2, 3, 4})
"""Width field of the loads and stores of single floating-point values; all else there are vectors."""
MEMORY = frozenset({LOAD, LOAD_FP, STORE, STORE_FP})

INTEGER, FLOATING = (0, 3, 4), (1, 5)
CONFIGURE = 7
"""Categories of OP-V (`funct3`): OPIVV OPIVI OPIVX, OPFVV OPFVF; and `vsetvl`."""
VECTOR_CLASSES: dict[tuple[int, int], str] = {
    **{(kind, code): "compare" for kind in INTEGER for code in range(0x18, 0x20)},
    **{(kind, code): "compare" for kind in FLOATING for code in (0x18, 0x19, 0x1B, 0x1C, 0x1D, 0x1F)},
    **{(kind, 0x17): "select" for kind in (*INTEGER, *FLOATING)},
    **{(kind, code): "shuffle" for kind in INTEGER for code in (0x0C, 0x0E, 0x0F)},
    **{(kind, code): "shuffle" for kind in (5, 6) for code in (0x0E, 0x0F)},
    (2, 0x17): "shuffle",
    (3, 0x27): "move",
    **{(kind, 0x10): "move" for kind in (*FLOATING, 6)},
}
"""Category and `funct6` → class; whatever else OP-V has is arithmetic."""

QUADRANTS = (
    ("arithmetic", "load", "load", "load", "", "store", "store", "store"),
    ("arithmetic", "arithmetic", "move", "move", "arithmetic", "branch", "branch", "branch"),
    ("arithmetic", "load", "load", "load", "", "store", "store", "store"),
)
"""Compressed instructions: the last two bits, then the first three, give the class; empty is decided by more bits."""


def count(code: bytes) -> InstructionCounts | None:
    """The instructions of one function; None where one of them is not in the tables above."""
    counts, at, framed = InstructionCounts(), 0, False
    while at < len(code):
        word = int.from_bytes(code[at : at + 4], "little")
        size = 2 if word & 3 != 3 else 4
        name = _short_class(word & 0xFFFF) if size == 2 else _class(word)
        if not name or at + size > len(code) or word & 0x1F == 0x1F:
            return None
        counts.classes[name] += 1
        distance = _distance(word)
        counts.loops += distance < 0
        counts.vectors += size == 4 and _is_vector(word)
        counts.whole_registers += size == 4 and _moves_whole_registers(word)
        framed = framed or _makes_frame(word)
        counts.spills += _uses_frame(word, framed) if size == 4 else _short_uses_frame(word & 0xFFFF, framed)
        at += size
    return counts


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & ((1 << bits) - 1)


def _class(word: int) -> str:
    """The class of an instruction of four bytes; empty for an unknown one."""
    opcode = word & 0x7F
    if opcode in (JAL, JALR):
        return "call" if _field(word, 7, 5) in LINK_REGISTERS else "branch"
    if opcode == OP_V:
        return _vector_class(word)
    if opcode == OP_FP:
        return _floating_class(word)
    if opcode in (OP_IMM, OP):
        return _integer_class(word)
    return SIMPLE.get(opcode, "")


def _integer_class(word: int) -> str:
    opcode, kind, source, rest = word & 0x7F, _field(word, 12, 3), _field(word, 15, 5), word >> 20
    if opcode == OP:
        extension = word >> 25
        compares = extension == 0 and kind in (2, 3)
        return "compare" if compares else "select" if extension == 7 and kind in (5, 7) else "arithmetic"
    if kind in (2, 3):
        return "compare"
    if kind == 0 and _field(word, 7, 5) == 0:
        return "other"  # a hint: `nop`
    return "move" if kind == 0 and (source == 0 or rest == 0) else "arithmetic"


def _floating_class(word: int) -> str:
    """By `funct5`: comparisons, sign injection of a register into itself (a move), moves between register files."""
    operation, kind = word >> 27, _field(word, 12, 3)
    if operation == 0x14:
        return "compare"
    same = _field(word, 15, 5) == _field(word, 20, 5)
    moves = (operation == 4 and kind == 0 and same) or (operation in (0x1C, 0x1E) and kind == 0)
    return "move" if moves else "arithmetic"


def _vector_class(word: int) -> str:
    kind, operation = _field(word, 12, 3), word >> 26
    if kind == CONFIGURE:
        return "other"
    found = VECTOR_CLASSES.get((kind, operation), "arithmetic")
    if found == "select" and _field(word, 25, 1):
        return "move"  # a merge without a mask
    if (kind, operation) == (2, 0x10) and _field(word, 15, 5) == 0:
        return "move"  # the first element to a register; the others there count bits of a mask
    return found


def _short_class(word: int) -> str:
    """The class of a compressed instruction; empty for an unknown one."""
    quadrant, kind, target = word & 3, word >> 13, _field(word, 7, 5)
    if word == 0:
        return ""
    if quadrant == 1 and kind == 0 and target == 0:
        return "other"
    if quadrant == 1 and kind == 3 and target == STACK_POINTER:
        return "arithmetic"
    if quadrant == 2 and kind == 4:
        return _short_jump(word)
    return QUADRANTS[quadrant][kind]


def _short_jump(word: int) -> str:
    adds, first, second = _field(word, 12, 1), _field(word, 7, 5), _field(word, 2, 5)
    if second:
        return "arithmetic" if adds else "move"
    if not adds:
        return "branch" if first else ""
    return "call" if first else "other"


def _is_vector(word: int) -> bool:
    opcode, kind = word & 0x7F, _field(word, 12, 3)
    if opcode in (LOAD_FP, STORE_FP):
        return kind not in SCALAR_WIDTHS
    return opcode == OP_V and kind != CONFIGURE


def _moves_whole_registers(word: int) -> bool:
    """`vl1re8.v` … `vs8r.v`: unit-stride, `lumop` or `sumop` of 01000 (chapter "Vector Load/Store Whole Register")."""
    return _is_vector(word) and word & 0x7F != OP_V and _field(word, 26, 2) == 0 and _field(word, 20, 5) == 8


def _distance(word: int) -> int:
    """Negative for a jump back: the sign bit of its distance is the first bit of a jump."""
    if word & 3 == 3:
        jumps = word & 0x7F in (BRANCH, JAL) and _class(word) == "branch"
        return -1 if jumps and word >> 31 else 0
    return -1 if word & 3 == 1 and _field(word, 13, 3) in (5, 6, 7) and _field(word, 12, 1) else 0


def _makes_frame(word: int) -> bool:
    """`addi s0, sp, …`, of four bytes or (`c.addi4spn`) of two."""
    if word & 3 == 3:
        return word & 0xFFFFF == FRAME_POINTER << 7 | STACK_POINTER << 15 | OP_IMM
    return word & 0xE01F == 0 and word & 0x1FE0 != 0


def _uses_frame(word: int, framed: bool) -> bool:
    base = _field(word, 15, 5)
    return word & 0x7F in MEMORY and (base == STACK_POINTER or (framed and base == FRAME_POINTER))


def _short_uses_frame(word: int, framed: bool) -> bool:
    quadrant, kind = word & 3, word >> 13
    if kind in (0, 4) or quadrant == 1:
        return False
    return quadrant == 2 or (framed and _field(word, 7, 3) == 0)
