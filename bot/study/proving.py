"""Prove that a configuration causes a change.

Head is compiled with base's values, and bytes are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from bot.compiler.compiling import CompileSetup
from bot.core.explanation import code_differs
from bot.core.proof import (
    NOT_TRIED,
    PROVED,
    REFUTED,
    KnobProof,
    little_bytes,
    status_of,
)
from bot.core.snapshot import Dispatch, Failure
from bot.errors import MalformedBinary
from bot.readers.configurations import NotTransplantable, differing_knobs, transplanted
from bot.study.compiling_alone import CONFIGURATIONS, AloneCode, compile_from
from bot.study.ladder import LadderSide

MOST_COMPILES = 10
"""Compiles of one experiment.

They are head as it is, head with all values, and one for each value left out.
"""
LEAST_COMPILES = 2
SAME_CODE = "the code is the same on both sides"
SAME_SIZE = "the code has the same size on both sides"
SAME_CONFIGURATION = "no value of `lowering_config` or `translation_info` differs"

Compile = Callable[[str], AloneCode | Failure]
"""Compiles the configured IR of head's executable, and reads the dispatch's code."""


@dataclass(frozen=True, slots=True)
class ConfiguredPair:
    """One dispatch of both sides, with its executable's configured IR on each."""

    base: Dispatch
    head: Dispatch
    base_text: str
    head_text: str


def proof_of(
    base: LadderSide, head: LadderSide, most_compiles: int = MOST_COMPILES
) -> KnobProof:
    """Return the proof of a dispatch's configuration.

    The partial compiles up to the configuration are not counted in the budget.
    """
    if why_no_experiment(base.row, head.row):
        return proof_between(
            base.row, base_text="", head=head, most_compiles=most_compiles
        )
    return proof_between(
        base.row,
        base_text=base.configured,
        head=head,
        most_compiles=most_compiles,
    )


def proof_between(
    base: Dispatch,
    base_text: str | Failure,
    head: LadderSide,
    most_compiles: int = MOST_COMPILES,
) -> KnobProof:
    """Return the proof of a dispatch's configuration.

    It is made from the configured IR of both sides.
    """
    reason = why_no_experiment(base, head.row)
    moved_bytes = moved_code_bytes(base, head.row)
    if reason:
        return KnobProof(NOT_TRIED, reason, moved_bytes=moved_bytes)
    texts = list[str]()
    for name, text in (("base", base_text), ("head", head.configured)):
        if isinstance(text, Failure):
            reason = f"the configuration is not known on {name}: {text.first_line}"
            return KnobProof(NOT_TRIED, reason, moved_bytes=moved_bytes)
        texts.append(text)
    pair = ConfiguredPair(base, head.row, *texts)
    return prove_configuration(
        head.setup, argv=head.argv, pair=pair, most_compiles=most_compiles
    )


def prove_configuration(
    setup: CompileSetup,
    argv: Sequence[str],
    pair: ConfiguredPair,
    most_compiles: int = MOST_COMPILES,
) -> KnobProof:
    """Return the proof of a configuration: head is compiled with base's.

    Args:
        setup: how head compiles.
        argv: flags of head's build, with the lifted stack limit if it needs that.
        most_compiles: the limit of compiles, at least LEAST_COMPILES.
    """
    compile_head = partial(_compiled, setup, argv, pair.head.name)
    return prove_with(compile_head, pair, most_compiles)


def _compiled(
    setup: CompileSetup, argv: Sequence[str], entry_point: str, text: str
) -> AloneCode | Failure:
    return compile_from(
        setup, argv=argv, text=text, phase=CONFIGURATIONS, entry_point=entry_point
    )


def prove_with(
    compile_head: Compile, pair: ConfiguredPair, most_compiles: int = MOST_COMPILES
) -> KnobProof:
    """Return the proof of one dispatch, made with this way to compile head."""
    moved_bytes = moved_code_bytes(pair.base, pair.head)
    untried = partial(KnobProof, NOT_TRIED, moved_bytes=moved_bytes)
    reason = why_no_experiment(pair.base, pair.head)
    if moved_bytes is None or reason:
        return untried(reason)
    try:
        knobs = differing_knobs(pair.base_text, pair.head_text)
    except MalformedBinary as error:
        return untried(error.line)
    if isinstance(knobs, NotTransplantable):
        return untried(f"base's values do not fit into head: {knobs.why}")
    if not knobs:
        return untried(SAME_CONFIGURATION)
    if most_compiles < LEAST_COMPILES:
        return untried("compile budget used up")
    experiment = _Experiment(compile_head, pair)
    alone_code = experiment.with_base_values(())
    if isinstance(alone_code, Failure):
        reason = f"head does not compile alone: {alone_code.first_line}"
        return untried(reason, compiles=experiment.compiles)
    if reason := why_other_code(alone_code, pair.head, moved_bytes):
        return untried(reason, compiles=experiment.compiles)
    after = experiment.with_base_values(knobs)
    if isinstance(after, Failure):
        reason = f"head does not compile with base's values: {after.first_line}"
        return untried(reason, compiles=experiment.compiles)
    needed = knobs
    is_smallest = True
    if status_of(alone_code.code_bytes - after.code_bytes, moved_bytes) != REFUTED:
        needed, is_smallest = _smallest_set(
            experiment,
            knobs=knobs,
            moved_bytes=moved_bytes,
            most_compiles=most_compiles,
        )
        after = experiment.results[frozenset(needed)]
    proof = proof_after(
        pair.base, moved_bytes=moved_bytes, alone_code=alone_code, after=after
    )
    return replace(
        proof,
        knobs=needed,
        others=tuple(knob for knob in knobs if knob not in needed),
        is_smallest=is_smallest,
        compiles=experiment.compiles,
    )


def why_other_code(alone_code: AloneCode, head: Dispatch, moved_bytes: int) -> str:
    """Return that head compiled alone has another size than in the artifact.

    It is empty if the sizes are nearly equal. It is also empty for the same code with
    longer names.
    """
    head_bytes = head.code_bytes or 0
    is_same_code = head.code is not None and alone_code.code == head.code
    apart_bytes = abs(alone_code.code_bytes - head_bytes)
    if is_same_code or apart_bytes <= little_bytes(moved_bytes):
        return ""
    return (
        f"compiled alone, head's code is {alone_code.code_bytes:,} B and not"
        f" {head_bytes:,} B"
    )


def proof_after(
    base: Dispatch, moved_bytes: int, alone_code: AloneCode, after: AloneCode
) -> KnobProof:
    """Return what an experiment restores, from head's code before and after it."""
    restored_bytes = alone_code.code_bytes - after.code_bytes
    return KnobProof(
        status=status_of(restored_bytes, moved_bytes),
        moved_bytes=moved_bytes,
        bytes_after=after.code_bytes,
        restored_bytes=restored_bytes,
        is_exact=after.code is not None and after.code == base.code,
    )


def moved_code_bytes(base: Dispatch, head: Dispatch) -> int | None:
    """Return head − base; None if a size is not known."""
    if base.code_bytes is None or head.code_bytes is None:
        return None
    return head.code_bytes - base.code_bytes


def why_no_experiment(base: Dispatch, head: Dispatch) -> str:
    """Return why two dispatches need no experiment; empty if they need one."""
    if base.code_bytes is None or head.code_bytes is None:
        side = "base" if base.code_bytes is None else "head"
        return f"the code bytes are not known on {side}"
    if code_differs(base, head) is False:
        return SAME_CODE
    if base.code_bytes == head.code_bytes:
        return SAME_SIZE
    return ""


class _Experiment:
    """Compiles of one head with chosen values of base, each made once.

    Attributes:
        results: knobs → the code; only of the compiles that succeeded.
        compiles: how many there were, failed ones too.
    """

    def __init__(self, compile_head: Compile, pair: ConfiguredPair) -> None:
        self._compile_head, self.pair = compile_head, pair
        self.results: dict[frozenset[str], AloneCode] = {}
        self.compiles = 0

    def with_base_values(self, knobs: Collection[str]) -> AloneCode | Failure:
        """Compile head with base's values of these knobs."""
        text = transplanted(self.pair.head_text, self.pair.base_text, knobs)
        if isinstance(text, NotTransplantable):
            return Failure("read", text.why)
        self.compiles += 1
        result = self._compile_head(text)
        if isinstance(result, AloneCode):
            self.results[frozenset(knobs)] = result
        return result


def _smallest_set(
    experiment: _Experiment, knobs: Sequence[str], moved_bytes: int, most_compiles: int
) -> tuple[tuple[str, ...], bool]:
    """Leave out one knob after the other.

    Return those that are needed, and whether each was left out once.
    """
    restored = _RestoredAsMuch(experiment, knobs, moved_bytes)
    needed = list(knobs)
    for knob in knobs:
        if len(needed) == 1:
            break
        if experiment.compiles >= most_compiles:
            return tuple(needed), False
        others_needed = [knob_needed for knob_needed in needed if knob_needed != knob]
        result = experiment.with_base_values(others_needed)
        if isinstance(result, AloneCode) and restored.by(result.code_bytes):
            needed = others_needed
    return tuple(needed), True


class _RestoredAsMuch:
    """Decides whether an experiment restores nearly as much as all knobs do."""

    def __init__(
        self, experiment: _Experiment, knobs: Sequence[str], moved_bytes: int
    ) -> None:
        self._base_bytes = experiment.pair.base.code_bytes or 0
        self._alone_bytes = experiment.results[frozenset()].code_bytes
        self._whole_bytes = experiment.results[frozenset(knobs)].code_bytes
        self._moved_bytes = moved_bytes

    def by(self, after_bytes: int) -> bool:
        """Return whether code of this size is as good as code with all knobs of base.

        It must go no less far towards base, and end no farther from it. If all knobs
        prove the cause, this code must prove it, too.
        """
        little = little_bytes(self._moved_bytes)
        less_bytes = after_bytes - self._whole_bytes
        if self._moved_bytes < 0:
            less_bytes = -less_bytes
        apart_bytes = abs(after_bytes - self._base_bytes)
        if (
            less_bytes > little
            or apart_bytes > abs(self._whole_bytes - self._base_bytes) + little
        ):
            return False
        whole_status = status_of(
            self._alone_bytes - self._whole_bytes, self._moved_bytes
        )
        return (
            whole_status != PROVED
            or status_of(self._alone_bytes - after_bytes, self._moved_bytes) == PROVED
        )
