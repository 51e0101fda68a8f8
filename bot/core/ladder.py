"""The ladder of one dispatch: its code bytes in experiments that mix both sides.

Each experiment has base's IR up to a phase and head's compiler from there on. Each rung
takes one phase more from base. Neighbouring rungs differ in only one phase, so the
difference of their bytes is the part of this phase. The differences sum to head − base,
and no threshold is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from bot.core.proof import (
    LEAST_PARTLY_PERCENT,
    LEAST_PROVED_PERCENT,
    MOST_PROVED_PERCENT,
    KnobProof,
)
from bot.core.record import Amount, Count, Digest, Record

SOURCE = "source"
CONFIGURATION = "configuration"
MLIR = "mlir"
LLVM_OPTIMIZER = "llvm_optimizer"
CODE_GENERATOR = "code_generator"
BACK_END = "back_end"
UNDIVIDED = (SOURCE, CONFIGURATION, MLIR, BACK_END)

INTERACTING_TENTHS = 1
"""Phases interact if the orders differ by more than so many tenths of the change."""
PHASE_WORDS = {
    SOURCE: "source",
    CONFIGURATION: "configuration",
    MLIR: "MLIR code generation",
    LLVM_OPTIMIZER: "LLVM optimizer",
    CODE_GENERATOR: "code generator",
    BACK_END: "back end, not divided",
}
PHASE_NAMES = {
    SOURCE: "the source",
    CONFIGURATION: "the configuration",
    MLIR: "MLIR code generation",
    LLVM_OPTIMIZER: "LLVM's optimizer",
    CODE_GENERATOR: "LLVM's code generator",
    BACK_END: "the back end",
}
"""Phase → its name as the subject of a sentence."""
SEVERAL_PHASES = "several phases"
"""How the words of a root cause begin whose change no single phase carries."""
MOST_REASON = 2_000
NO_BASE_COMPILER = (
    "base's IR is from a stored baseline, and this order needs base's compiler"
)
"""Why a ladder lacks the other order if base is a stored baseline."""


class Rung(Record, frozen=True, omit_defaults=True):
    """The code bytes of one experiment."""

    code_bytes: Count | None = None
    # why there are none; empty if there are
    why: Annotated[str, msgspec.Meta(max_length=MOST_REASON)] = ""

    def __post_init__(self) -> None:
        """Raise ValueError unless a rung has either bytes or a reason."""
        if (self.code_bytes is None) != bool(self.why):
            raise ValueError("a rung has either code bytes or a reason")


class Climb(Record, frozen=True, omit_defaults=True):
    """The rungs between the two ends, in one order.

    Each has the first side's IR up to the phase that it is named after, and the second
    side's compiler from there on.
    """

    source: Rung
    configured: Rung
    translated: Rung
    # optimized: the first side's bitcode in the second side's code generator; control:
    # the same bitcode in the first side's own. Both are None if the target has no such
    # code generator. The code generator's part is the difference of the two. If the
    # control is not the first side's end, the experiment has an error.
    optimized: Rung | None = None
    control: Rung | None = None
    # Included in the rungs: how many bytes more the first side's artifact has for the
    # code of its end. PTX numbers the kernels of a module in its labels.
    respelled_bytes: Amount = 0

    def __post_init__(self) -> None:
        """Raise ValueError for one of the two rungs of LLVM without the other."""
        if (self.optimized is None) != (self.control is None):
            raise ValueError("the rung of LLVM has a control")


class Ladder(Record, frozen=True, omit_defaults=True):
    """One dispatch of both sides, compiled alone."""

    # head_code, base_code: digest of the code in the artifact, as `Dispatch.code`;
    # base_compiler: SHA-256 (hex) of base's compiler. A ladder is of these sides and of
    # no others.
    head_code: Digest
    base_code: Digest
    base_compiler: str
    head: Rung
    base: Rung
    climb: Climb  # base's IR up to a phase, head's compiler from there on
    # the other order: head's IR up to a phase; None if it was not measured
    back: Climb | None = None
    # why the other order cannot be measured; empty if it can
    back_why: Annotated[str, msgspec.Meta(max_length=MOST_REASON)] = ""
    # head_same, base_same: whether the dispatch compiled alone has the code of the
    # artifact; None if that is not known
    head_same: bool | None = None
    base_same: bool | None = None
    # head compiled with base's values of its configuration; None if it was not tried
    knobs: KnobProof | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if only one of two orders divides the back end."""
        if self.back is not None and (self.back.optimized is None) != (
            self.climb.optimized is None
        ):
            raise ValueError("both orders divide the back end, or neither does")
        if self.back is not None and self.back_why:
            raise ValueError("an order that was measured has no reason against it")

    def is_of(
        self, base_code: str | None, base_bytes: int | None, compiler: str
    ) -> bool:
        """Return whether base has this code, and this compiler (its digest) made it."""
        is_same_code = self.base_code == base_code and self.base_compiler == compiler
        return is_same_code and self.base.code_bytes in (None, base_bytes)

    @property
    def is_whole(self) -> bool:
        """Return whether no part is unknown."""
        return None not in attribution(self).values()

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """Return all experiments, of both orders."""
        rungs: list[Rung | None] = [self.head, self.base]
        for climb in filter(None, (self.climb, self.back)):
            rungs += [climb.source, climb.configured, climb.translated]
            rungs += [climb.optimized, climb.control]
        return tuple(filter(None, rungs))

    @property
    def change_bytes(self) -> int | None:
        """Return head − base; None if either end failed."""
        return _difference(self.head, self.base)


def alone_bytes(climb: Climb, rung: Rung) -> int | None:
    """Return the code bytes of a rung as its own compile spells them."""
    if rung.code_bytes is None:
        return None
    return rung.code_bytes - climb.respelled_bytes


def attribution(ladder: Ladder) -> dict[str, int | None]:
    """Return phase → the bytes of the change that it carries.

    None beside a failed rung. Without None they sum to head − base.
    """
    return _parts(ladder.head, ladder.climb, ladder.base)


def is_large_part(parts: Mapping[str, int | None], phase: str) -> bool:
    """Return whether a phase may carry a tenth of the total change or more.

    It may do so if its bytes are not known.
    """
    if phase not in parts:
        return False
    part = parts[phase]
    amounts = [abs(part) for part in parts.values() if part is not None]
    return part is None or (part != 0 and 10 * abs(part) >= sum(amounts))


def reverse_attribution(ladder: Ladder) -> dict[str, int | None] | None:
    """Return the parts in the other order; None if it was not measured."""
    if ladder.back is None:
        return None
    parts = _parts(ladder.base, ladder.back, ladder.head)
    return {phase: None if part is None else -part for phase, part in parts.items()}


@dataclass(frozen=True, slots=True)
class Carried:
    """Which phases carry the change of a dispatch.

    Attributes:
        phase: the one that carries 90 to 110 % of it; None if no single one does.
        parts: phase → its bytes, in the compiler's order; only of phases that carry at
            least a tenth.
    """

    phase: str | None
    parts: Mapping[str, int]


def carried(attribution: Mapping[str, int | None], change_bytes: int) -> Carried | None:
    """Return the phases that carry a change.

    Return None if a failed experiment leaves that open. LLVM counts as one phase if it
    could not be divided.
    """
    parts = dict(attribution)
    if None in (parts.get(LLVM_OPTIMIZER, 0), parts.get(CODE_GENERATOR, 0)):
        parts = {phase: parts[phase] for phase in UNDIVIDED[:-1]}
        known_sizes = [part for part in parts.values() if part is not None]
        parts[BACK_END] = change_bytes - sum(known_sizes)
    known_parts = {phase: part for phase, part in parts.items() if part is not None}
    if len(known_parts) < len(parts) or not change_bytes:
        return None
    carrying = list[str]()
    largest = dict[str, int]()
    for phase, part in known_parts.items():
        percent = _percent(part, change_bytes)
        if _is_all(percent):
            carrying.append(phase)
        if abs(percent) >= LEAST_PARTLY_PERCENT:
            largest[phase] = part
    return Carried(carrying[0] if len(carrying) == 1 else None, largest)


def _percent(part: int, change_bytes: int) -> float:
    return 100 * part / change_bytes


def _is_all(percent: float) -> bool:
    return LEAST_PROVED_PERCENT <= percent <= MOST_PROVED_PERCENT


def parts_words(parts: Mapping[str, int]) -> str:
    """Return `MLIR code generation −1,112 B, code generator +2,708 B`."""
    phrases = []
    for phase, part in parts.items():
        phrases.append(f"{PHASE_WORDS[phase]} {part:+,} B".replace("-", "−"))
    return ", ".join(phrases)


def _parts(top: Rung, climb: Climb, bottom: Rung) -> dict[str, int | None]:
    parts = {
        SOURCE: _difference(top, climb.source),
        CONFIGURATION: _difference(climb.source, climb.configured),
        MLIR: _difference(climb.configured, climb.translated),
    }
    back_end = _difference(climb.translated, bottom)
    if climb.optimized is None or climb.control is None:
        return {**parts, BACK_END: back_end}
    # Both are of the same bitcode and the same tool, so that an error of the experiment
    # is in neither part.
    generated = _difference(climb.optimized, climb.control)
    if back_end is None or generated is None:
        return {**parts, LLVM_OPTIMIZER: None, CODE_GENERATOR: None}
    return {**parts, LLVM_OPTIMIZER: back_end - generated, CODE_GENERATOR: generated}


def _difference(upper: Rung, lower: Rung) -> int | None:
    if upper.code_bytes is None or lower.code_bytes is None:
        return None
    return upper.code_bytes - lower.code_bytes


def interactions(ladder: Ladder) -> dict[str, tuple[int, int]]:
    """Return phase → its bytes in both orders.

    Only phases are listed in which these differ by more than a tenth of the change.
    """
    backward = reverse_attribution(ladder)
    change_bytes = ladder.change_bytes
    if backward is None or change_bytes is None:
        return {}
    interacting = {}
    for phase, forward in attribution(ladder).items():
        reverse = backward[phase]
        if forward is None or reverse is None:
            continue
        if 10 * abs(forward - reverse) > INTERACTING_TENTHS * abs(change_bytes):
            interacting[phase] = (forward, reverse)
    return interacting


def failed_rungs(ladder: Ladder) -> dict[str, str]:
    """Return rung → why it failed, of the first order and its two ends."""
    climb = ladder.climb
    rungs = {
        "head": ladder.head,
        "source": climb.source,
        "configured": climb.configured,
        "translated": climb.translated,
        "optimized": climb.optimized,
        "control": climb.control,
        "base": ladder.base,
    }
    return {name: rung.why for name, rung in rungs.items() if rung and rung.why}
