"""PTX instructions by class, from their opcodes.

Format: "Parallel Thread Execution ISA", chapter "Instruction Set": a statement ends with `;`, and has labels, a guard
(`@%p1`) and an opcode with suffixes before its operands, https://docs.nvidia.com/cuda/parallel-thread-execution.
"""

from __future__ import annotations

import re

from bot.readers.code.instruction_counts import InstructionCounts

OPCODES = {
    "load": "ld ldu ldmatrix tex tld4 suld",
    "store": "st stmatrix sust",
    "compare": "setp set testp isspacep",
    "select": "selp slct",
    "move": "mov movmatrix activemask",
    "shuffle": "shfl prmt",
    "branch": "bra brx ret exit",
    "call": "call",
    "arithmetic": """
        add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi szext bmsk dp4a dp2a
        addc subc madc fma rcp sqrt rsqrt sin cos lg2 ex2 tanh and or xor not cnot lop3 shf shl shr cvt cvta copysign
        mapa mma
    """,
}
CLASS_OF = {opcode: name for name, opcodes in OPCODES.items() for opcode in opcodes.split()}
"""Opcode → class; `wmma` by what it does, what is not here is `other` (barriers, atomics, prefetches, copies)."""
MATRIX_CLASS = {"load": "load", "store": "store", "mma": "arithmetic"}
LABELS = re.compile(rb"[\s{}]*([\w$%]+)[ \t]*:(?!:)")
OPCODE = re.compile(rb"[\s{}]*(?:@!?%\w+\s+)?(?P<opcode>[a-z]\w*)(?P<suffixes>(?:(?:\.|::)\w+)*)\s*(?P<operands>[^;]*)")
WIDTH = re.compile(r"\.v([248])\.[a-z]+(\d+)")
MATRIX = frozenset({"mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"})


def count(body: bytes) -> InstructionCounts:
    """The instructions of a function's body, without its comments."""
    counts, labels = InstructionCounts(), set[bytes]()
    for statement in body.split(b";"):
        at = 0
        while label := LABELS.match(statement, at):
            labels.add(label[1])
            at = label.end()
        found = OPCODE.match(statement, at)
        if found:
            _visit(counts, found["opcode"].decode(), found["suffixes"].decode(), found["operands"], labels)
    return counts


def _visit(counts: InstructionCounts, opcode: str, suffixes: str, operands: bytes, labels: set[bytes]) -> None:
    name = MATRIX_CLASS.get(suffixes.split(".")[1] if suffixes else "") if opcode == "wmma" else CLASS_OF.get(opcode)
    counts.classes[name or "other"] += 1
    counts.spills += opcode in ("ld", "st") and ".local" in suffixes
    counts.loops += opcode == "bra" and operands.strip() in labels
    width = WIDTH.search(suffixes)
    if width and opcode in ("ld", "st", "ldu"):
        counts.vector_bits = max(counts.vector_bits, int(width[1]) * int(width[2][:4]))
    counts.vectors += bool(width) or opcode in MATRIX or suffixes.endswith("x2")
