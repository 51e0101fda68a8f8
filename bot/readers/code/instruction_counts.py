"""Instructions of one function, counted by class while a reader goes through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.core.codec.counts import counts_text
from bot.core.instructions import LOOP, SPILL, TOTAL, VECTOR, VECTOR_BITS, WHOLE_REGISTER


@dataclass(slots=True)
class InstructionCounts:
    """What `bot.core.instructions` counts; `vector_bits` 0 where there is no vector, or its width is not known."""

    classes: Counter[str] = field(default_factory=Counter)
    vectors: int = 0
    spills: int = 0
    loops: int = 0
    vector_bits: int = 0
    whole_registers: int = 0

    def text(self) -> str:
        """The counts as a snapshot has them."""
        more = {VECTOR: self.vectors, SPILL: self.spills, LOOP: self.loops, VECTOR_BITS: self.vector_bits}
        more[WHOLE_REGISTER] = self.whole_registers
        return counts_text({**self.classes, TOTAL: self.classes.total(), **more})


def together(several: Iterable[InstructionCounts]) -> InstructionCounts:
    """The sum of some functions, and the widest of their vectors."""
    whole = InstructionCounts()
    for each in several:
        whole.classes += each.classes
        whole.vectors += each.vectors
        whole.spills += each.spills
        whole.loops += each.loops
        whole.whole_registers += each.whole_registers
        whole.vector_bits = max(whole.vector_bits, each.vector_bits)
    return whole
