"""Find the first phase of the compiler in which two sides differ.

It is never guessed. If the facts of an earlier phase were not read on a side, there is
a reason in place of the cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.core.explanation import code_differs
from bot.core.mappings import only_named
from bot.core.metrics import CODE
from bot.core.program import SOURCES
from bot.core.snapshot import Cell, Dispatch
from bot.core.words import noun_of
from bot.explain.clusters import SOURCE_CHANGED
from bot.explain.compared import (
    REBOUND,
    Census,
    Compared,
    keeps_apart,
    members_of,
    rebound,
)
from bot.explain.matching import is_opaque
from bot.explain.sameness import strategy_differs, unconfigured

SAME_CODE = "the same code"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause and the phase it stands for, or None twice and the reason in `why`."""

    cause: str | None
    phase: str | None
    why: str


def cause_of(compared: Compared) -> Cause:
    """Return the first phase in which two measured cells differ.

    The questions are asked in the compiler's order until one answers.
    """
    for question in QUESTIONS:
        if cause := question(compared):
            return cause
    return Cause(None, None, "no difference in the parts that were read")


def _equal_artifacts(compared: Compared) -> Cause | None:
    base_digest = compared.base.cell.artifact_digest
    if base_digest is None or base_digest != compared.head.cell.artifact_digest:
        return None
    return Cause(None, None, "both artifacts are the same bytes")


def _unread(compared: Compared) -> Cause | None:
    for name, cell in (("base", compared.base.cell), ("head", compared.head.cell)):
        if cell.program is None:
            unread = f"the program's IR was not read on {name}"
            return Cause(None, None, unread + _reason(cell, "program"))
        if "input" not in cell.program.phases:
            unread = f"the input phase was not read on {name}"
            return Cause(None, None, unread + _reason(cell, "phases"))
    return None


def _reason(cell: Cell, field: str) -> str:
    reason = cell.reasons.get(field)
    if reason:
        return f": {reason}"
    return ""


def _phase_differs(compared: Compared, phase: str) -> bool | None:
    """Return whether a phase's IR differs; None if a side does not have it."""
    if compared.base.program is None or compared.head.program is None:
        return None
    base_digest = compared.base.program.phases.get(phase)
    head_digest = compared.head.program.phases.get(phase)
    if base_digest is None or head_digest is None:
        return None
    return base_digest != head_digest


def _input(compared: Compared) -> Cause | None:
    """Return the cause `input`.

    Return None if one text gave different programs that later phases made equal again.
    """
    if not _phase_differs(compared, "input"):
        return None
    if not compared.same_model:
        return Cause("input", "input", "the model itself changed")
    if not compared.same_inputs:
        return Cause("input", "input", SOURCE_CHANGED)
    if compared.sources_differ:
        return Cause(
            "input", "input", "the compiler reads the same model text differently"
        )
    return None


def source_changed(compared: Compared) -> bool | None:
    """Return whether a file that a command compiler reads differs; None if unknown."""
    if not (is_opaque(compared.base) and is_opaque(compared.head)):
        return None
    if not compared.same_model or not compared.same_inputs:
        return True
    if _phase_differs(compared, "input"):
        return True
    return _phase_differs(compared, SOURCES)


def opaque_source(compared: Compared) -> str:
    """Return `source` or `model`: the input that both sides share if code differs."""
    if source_changed(compared) is False:
        return "source"
    return "model"


def _other_files(compared: Compared) -> Cause | None:
    if source_changed(compared):
        return Cause("input", "input", SOURCE_CHANGED)
    return None


def _uncounted(compared: Compared) -> Cause | None:
    for name, census in (
        ("base", compared.base_census),
        ("head", compared.head_census),
    ):
        if census.unread:
            sites = f"{census.unread} of the dispatch sites"
            return Cause(None, None, f"the IR of {sites} was not read on {name}")
    return None


def _early(compared: Compared, otherwise: str) -> str | None:
    """Return `global-optimization` if its IR differs already, else `otherwise`.

    Return None if it cannot be known.
    """
    early = _phase_differs(compared, "global-optimization")
    if early is None:
        return None
    if early:
        return "global-optimization"
    return otherwise


def _fusion(compared: Compared) -> Cause | None:
    base_sites = compared.base_census
    head_sites = compared.head_census
    if base_sites.structures == head_sites.structures:
        return None
    gone = base_sites.structures - head_sites.structures
    come = head_sites.structures - base_sites.structures
    total = base_sites.structures.total()
    sites = f"{gone.total()} of {total} {noun_of(total, 'dispatch site')}"
    reason = f"regions are formed differently: {sites} became {come.total()}"
    # As many regions of each kind may be the same regions with other IR.
    if _by_kind(base_sites, gone) == _by_kind(head_sites, come):
        reason = f"other IR at {sites}, in the same number of regions of the same kinds"
    return Cause("fusion", _early(compared, "dispatch-creation"), reason)


def _by_kind(census: Census, sites: Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for structure, count in sites.items():
        counts[census.kinds.get(structure, "")] += count
    return counts


def _dedup(compared: Compared) -> Cause | None:
    base_census = compared.base_census
    head_census = compared.head_census
    changes = dict[str, int]()
    before = 0
    after = 0
    for structure in base_census.structures:
        changes[structure] = compared.more_members(structure)
        if changes[structure]:
            before += members_of(base_census, structure)
            after += members_of(head_census, structure)
    # The gains equal the losses, so deduplication is not the cause.
    if before == after:
        return None
    reason = f"the same regions are folded into {before} → {after} executables"
    if after > before:
        executables = head_census.executables[max(changes, key=changes.__getitem__)]
        kept_apart_by = keeps_apart(compared.head.cell, executables)
        if kept_apart_by:
            reason = f"{reason}; kept apart by {kept_apart_by}"
        return Cause("dedup-lost", "deduplication", reason)
    executables = base_census.executables[min(changes, key=changes.__getitem__)]
    kept_apart_by = keeps_apart(compared.base.cell, executables)
    if kept_apart_by:
        reason = f"{reason}; were kept apart by {kept_apart_by}"
    return Cause("dedup-won", "deduplication", reason)


def dispatches_have(count: int, total: int) -> str:
    """Return `1 of 1 dispatch has`, or `2 of 3 dispatches have`."""
    verb = "has" if count == 1 else "have"
    return f"{count} of {total} {noun_of(total, 'dispatch')} {verb}"


def _sources(compared: Compared) -> Cause | None:
    if not compared.sources_differ:
        return None
    reason = "the same regions with different constants, shapes or offsets"
    return Cause("fusion", _early(compared, "executable-source"), reason)


def _configured(
    compared: Compared, pairs: Sequence[tuple[Dispatch, Dispatch]], but: str = ""
) -> Cause | None:
    count = sum(strategy_differs(*pair) is True for pair in pairs)
    reason = (
        f"{dispatches_have(count, len(compared.pairs))} the same source and a different"
        f" configuration{but}"
    )
    if count:
        return Cause("strategy", "configuration", reason)
    return None


def _strategy(compared: Compared) -> Cause | None:
    # A different configuration with the same code had no effect. A later question
    # reports it if nothing else differs.
    pairs = []
    for pair in compared.pairs:
        if code_differs(*pair) is not False:
            pairs.append(pair)
    return _configured(compared, pairs)


def _codegen(compared: Compared) -> Cause | None:
    pairs = [pair for pair in compared.pairs if code_differs(*pair)]
    for pair in pairs:
        if strategy_differs(*pair) is None:
            side = "base" if pair[0].strategy is None else "head"
            cell = (compared.base if side == "base" else compared.head).cell
            return Cause(None, None, unconfigured(*pair) + _reason(cell, "strategies"))
    if not pairs:
        return None
    if is_opaque(compared.head):
        same = opaque_source(compared)
    else:
        same = "configuration"
    reason = (
        f"{dispatches_have(len(pairs), len(compared.pairs))} the same {same} and"
        " different code"
    )
    if all(rebound(compared, *pair) for pair in pairs):
        return Cause("codegen", "executable-source", f"{reason}, {REBOUND}")
    return Cause("codegen", "code", reason)


NO_NAMES = "its functions have no names, so their code could not be compared"


def unnamed_bytes(cell: Cell) -> int:
    """Return the text bytes of executables outside functions of known name and size."""
    text_bytes = sum(only_named(cell.parts, CODE).values())
    return text_bytes - sum(row.code_bytes or 0 for row in cell.dispatches)


def _packaging(compared: Compared) -> Cause | None:
    pairs = compared.pairs
    base_bytes = unnamed_bytes(compared.base.cell)
    head_bytes = unnamed_bytes(compared.head.cell)
    if is_opaque(compared.head) and (base_bytes or head_bytes):
        if not pairs:
            return Cause(None, None, NO_NAMES)
        if base_bytes != head_bytes:
            reason = (
                f"text outside of named functions is {base_bytes:,} → {head_bytes:,} B"
            )
            return Cause("container", "code", reason)
    unknown = sum(code_differs(*pair) is None for pair in pairs)
    if unknown:
        return Cause(
            None,
            None,
            f"{dispatches_have(unknown, len(pairs))} code that could not be compared",
        )
    return Cause(
        "packaging",
        "layout",
        "the code of every dispatch is the same, but its layout differs",
    )


Question = Callable[[Compared], "Cause | None"]
QUESTIONS: tuple[Question, ...] = (
    _equal_artifacts,
    _unread,
    _input,
    _other_files,
    _uncounted,
    _fusion,
    _dedup,
    _sources,
    _strategy,
    _codegen,
    lambda compared: _configured(compared, compared.pairs, f", but {SAME_CODE}"),
    _packaging,
)
"""The questions in the compiler's order.

Each gives the cause, the reason for having none, or None to ask the next question.
"""
