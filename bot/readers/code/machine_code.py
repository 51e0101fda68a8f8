"""What the machine code of a CPU function consists of: x86-64 and AArch64 with capstone, RISC-V by its own tables.

Decoding goes straight through the bytes of a function, as the compiler puts tables into other sections. Where a byte
is no instruction that the decoder knows, nothing is said of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bot.readers.code import classes_aarch64, classes_riscv, classes_x86
from bot.readers.code.instruction_counts import InstructionCounts
from bot.readers.formats.elf import MACHINE_AT, Elf

if TYPE_CHECKING:
    import capstone

EM_X86_64, EM_AARCH64, EM_RISCV = 62, 183, 243
CHUNK_BYTES = 1 << 14
"""Decoded at a time: capstone takes 240 bytes of memory for each instruction."""
LONGEST_BYTES = 15
"""Of an x86-64 instruction: what a chunk cuts off is in the next one again."""
WORK = 16
"""How many times as long decoding a byte takes as reading it."""

Decoded = tuple[int, int, str, str]
"""Address, size in bytes, mnemonic and operands of an instruction."""
Counter = Callable[[bytes], "InstructionCounts | None"]


def counter_for(elf: Elf) -> Counter | None:
    """What counts the instructions of functions of this file; None where its machine is not known."""
    machine = int.from_bytes(elf.data[MACHINE_AT : MACHINE_AT + 2], "little")
    if elf.bits != 64 or elf.byte_order != "<":
        return None
    if machine not in (EM_X86_64, EM_AARCH64):
        return classes_riscv.count if machine == EM_RISCV else None
    import capstone  # takes 70 ms, and most commands decode nothing

    if machine == EM_X86_64:
        decoder, visit = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64), _visit_x86
    else:
        decoder, visit = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN), _visit_aarch64
    return lambda code: _count(decoder, code, visit)


def _count(
    decoder: capstone.Cs, code: bytes, visit: Callable[[InstructionCounts, Decoded, bool], bool]
) -> InstructionCounts | None:
    counts, end, framed = InstructionCounts(), 0, False
    for decoded in _decoded(decoder, code):
        framed = visit(counts, decoded, framed)
        end = decoded[0] + decoded[1]
    return counts if end == len(code) else None


def _decoded(decoder: capstone.Cs, code: bytes) -> Iterator[Decoded]:
    """The instructions up to the first that is none; addresses count from the start of the function."""
    at = 0
    while at < len(code):
        before, chunk = at, code[at : at + CHUNK_BYTES]
        last_start = at + CHUNK_BYTES - LONGEST_BYTES
        for decoded in decoder.disasm_lite(chunk, at):
            if decoded[0] >= last_start and decoded[0] > before:
                break
            yield decoded
            at = decoded[0] + decoded[1]
        if at == before:
            return


def _visit_x86(counts: InstructionCounts, decoded: Decoded, framed: bool) -> bool:
    """Counts one instruction; returns whether the frame pointer points to the frame from here on."""
    address, _, mnemonic, operands = decoded
    name = classes_x86.class_of(mnemonic)
    if name in (classes_x86.MOVING, classes_x86.SPREADING):
        name = classes_x86.decided(name, operands)
        framed = framed or classes_x86.makes_frame(mnemonic, operands)
    elif name == "branch":
        counts.loops += _jumps_back(operands, address)
    counts.classes[name] += 1
    counts.spills += classes_x86.uses_frame(mnemonic, operands, framed)
    bits = classes_x86.vector_bits(mnemonic, operands)
    if bits:
        counts.vectors += 1
        counts.vector_bits = max(counts.vector_bits, bits)
    return framed


def _visit_aarch64(counts: InstructionCounts, decoded: Decoded, framed: bool) -> bool:
    """As for x86-64."""
    address, _, mnemonic, operands = decoded
    name = classes_aarch64.class_of(mnemonic)
    counts.classes[name] += 1
    if name == "branch":
        counts.loops += _jumps_back(operands.rpartition("#")[2], address)
    counts.spills += classes_aarch64.uses_frame(operands, framed)
    bits = classes_aarch64.vector_bits(operands)
    if bits is not None:
        counts.vectors += 1
        counts.vector_bits = max(counts.vector_bits, bits)
    return framed or classes_aarch64.makes_frame(mnemonic, operands)


def _jumps_back(target: str, address: int) -> bool:
    """A jump to itself is one whose target is still a relocation."""
    return target.startswith("0x") and int(target, 16) < address
