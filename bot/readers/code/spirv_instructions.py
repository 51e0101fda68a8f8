"""SPIR-V instructions by class, from their opcodes.

Format: "SPIR-V Specification", section 3.42 "Instructions",
https://registry.khronos.org/SPIR-V/specs/unified1/SPIRV.html; the numbers below are its.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.readers.code.instruction_counts import InstructionCounts

OP_LOOP_MERGE = 246
STRUCTURE = frozenset({0, 1, 8, 54, 55, 56, 59, OP_LOOP_MERGE, 247, 248, 317})
"""Undefined values, lines, functions, their parameters and variables, merges and labels: what runs is between them."""
CLASS_OF = {
    **dict.fromkeys((61, 4457), "load"),
    **dict.fromkeys((62, 4458), "store"),
    **dict.fromkeys((83, 245), "move"),
    **dict.fromkeys((77, 78, 79, 80, 81, 82, 84, 337, 338, 345, 346, 347, 348, 365, 366), "shuffle"),
    **dict.fromkeys((12, *range(65, 71), *range(109, 125), *range(126, 153)), "arithmetic"),
    **dict.fromkeys((166, 167, 168, *range(194, 206), *range(349, 365), *range(4450, 4456), 4459), "arithmetic"),
    **dict.fromkeys((*range(154, 166), *range(170, 192)), "compare"),
    169: "select",
    **dict.fromkeys(range(249, 256), "branch"),
    57: "call",
}
"""Opcode → class; anything else is `other` (barriers, atomics, images). A phi moves, an access chain is an address."""


def count(opcodes: Mapping[int, int], vectors: int, vector_bits: int) -> InstructionCounts:
    """The instructions of one function.

    Args:
        opcodes: opcode → how often the function has it.
        vectors: how many of them give a vector.
        vector_bits: the widest of these vectors.
    """
    counts = InstructionCounts(vectors=vectors, vector_bits=vector_bits, loops=opcodes.get(OP_LOOP_MERGE, 0))
    for opcode, times in opcodes.items():
        if opcode not in STRUCTURE:
            counts.classes[CLASS_OF.get(opcode, "other")] += times
    return counts
