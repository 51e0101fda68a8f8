"""Owns the cause of a change: the first phase of the compiler in which two sides differ, asked in the phases' order.

Never a guess: where the facts of an earlier phase were not read on a side, there is no cause, but the reason. What
rests on short digests being equal, as a stored baseline has them, says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.core.digests import WHOLE_CHARACTERS, differ
from bot.core.program import HASHED_PHASES
from bot.core.snapshot import Cell, Dispatch
from bot.insight.matching import Match, numbers
from bot.insight.regions import Compared, members_of, merges, rebound

SHOWN_REGIONS = 3
OTHER_OFFSETS = "buffers that the program binds at other offsets"
SHORT_IR = "by short digests of IR, "
SAME_CODE = {False: "the same code", True: "code of the same size and short digest"}
"""Whether digests of code are short → what is told of code that does not differ."""
_REGIONAL = frozenset({"input", "fusion", "dedup-lost", "dedup-won"})


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause and the phase it stands for, or None and None with the reason in `why`."""

    cause: str | None
    phase: str | None
    why: str


def cause_of(compared: Compared) -> Cause:
    """The first phase in which two measured cells differ: the questions in the compiler's order until one answers."""
    for question in QUESTIONS:
        answer = question(compared)
        if answer is not None:
            return answer
    return Cause(None, None, "nothing that was read differs")


def _equal_artifacts(compared: Compared) -> Cause | None:
    left, right = compared.base.cell.artifact_digest, compared.head.cell.artifact_digest
    return Cause(None, None, "both artifacts are the same bytes") if left is not None and left == right else None


def _unread(compared: Compared) -> Cause | None:
    for name, cell in (("base", compared.base.cell), ("head", compared.head.cell)):
        if cell.program is None:
            return Cause(None, None, f"the program's IR was not read on {name}{_reason(cell, 'program')}")
        if "input" not in cell.program.phases:
            return Cause(None, None, f"the input phase was not read on {name}{_reason(cell, 'phases')}")
    return None


def _reason(cell: Cell, what: str) -> str:
    reason = cell.reasons.get(what)
    return f": {reason}" if reason else ""


def as_told(compared: Compared, why: str) -> str:
    """A sentence that is true only if equal digests of IR are equal IR."""
    return f"{SHORT_IR if compared.short_ir else ''}{why}"


def _phase_differs(compared: Compared, phase: str) -> bool | None:
    """None where the phase was not read on a side."""
    programs = (compared.base.program, compared.head.program)
    left, right = (program.phases.get(phase) if program else None for program in programs)
    return None if left is None or right is None else left != right


def _input(compared: Compared) -> Cause | None:
    """Of one model text two compilers may make different programs that later phases make equal again: no cause."""
    if not _phase_differs(compared, "input"):
        return None
    if not compared.same_model:
        return Cause("input", "input", "the model itself changed")
    if compared.sources_differ:
        return Cause("input", "input", "the same model text is read differently by the compiler")
    return None


def _uncounted(compared: Compared) -> Cause | None:
    for name, census in (("base", compared.left), ("head", compared.right)):
        if census is not None and census.unread:
            return Cause(None, None, f"the IR of {census.unread} of the dispatch sites was not read on {name}")
    return None


def _early(compared: Compared, otherwise: str) -> tuple[str | None, str]:
    """The phase of a difference that is at the latest in `otherwise`, and what to add where it cannot be told."""
    early = _phase_differs(compared, "global-optimization")
    if early is None:
        return None, "; the phase is not known, as global optimization was not read on both sides"
    return "global-optimization" if early else otherwise, ""


def _fusion(compared: Compared) -> Cause | None:
    left, right = compared.left, compared.right
    if left is None or right is None or left.structures == right.structures:
        return None
    phase, unknown = _early(compared, "dispatch-creation")
    lines = merges(compared.base, compared.head)
    named = "".join(f"; {line}" for line in lines[:SHOWN_REGIONS])
    more = f"; {len(lines) - SHOWN_REGIONS} more" if len(lines) > SHOWN_REGIONS else ""
    gone, come = (left.structures - right.structures).total(), (right.structures - left.structures).total()
    counts = f"{gone} of {left.structures.total()} dispatch sites became {come}"
    why = f"regions are formed differently: {counts}{named}{more}{unknown}"
    return Cause("fusion", phase, as_told(compared, why))


def _dedup(compared: Compared) -> Cause | None:
    left, right = compared.left, compared.right
    if left is None or right is None:
        return None
    changes = {s: members_of(right, s) - members_of(left, s) for s in left.structures}
    if not any(changes.values()):
        return None
    lost = sum(changes.values()) >= 0
    most = max(changes, key=lambda s: changes[s] if lost else -changes[s])
    apart = keeps_apart((compared.head if lost else compared.base).cell, (right if lost else left).executables[most])
    moved = [s for s, change in changes.items() if change]
    before, after = (sum(members_of(census, s) for s in moved) for census in (left, right))
    why = f"the same regions are folded into {before} → {after} executables"
    by = f"; {'kept' if lost else 'were kept'} apart by {apart}" if apart else ""
    return Cause("dedup-lost" if lost else "dedup-won", "deduplication", as_told(compared, why + by))


def keeps_apart(cell: Cell, executables: Sequence[str]) -> str:
    """What keeps these executables apart: their family's kind and its first line; empty where no family has two."""
    wanted = set(executables)
    for family in cell.families:
        if len(wanted.intersection(family.members)) > 1:
            return f"{family.kind} ({family.varying[0]})" if family.varying else family.kind
    return ""


def _sources(compared: Compared) -> Cause | None:
    if not compared.sources_differ:
        return None
    phase, unknown = _early(compared, "executable-source")
    why = f"the same regions with other constants, shapes or offsets{unknown}"
    return Cause("fusion", phase, as_told(compared, why))


def code_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """Whether the machine code differs; None where that cannot be told.

    That a short digest does not differ counts only of code whose size was read, and does not either.
    """
    sized = base.code_bytes is not None and head.code_bytes is not None
    if sized and base.code_bytes != head.code_bytes:
        return True
    if base.code is None or head.code is None:
        return None
    if differ(base.code, head.code):
        return True
    return False if sized or min(len(base.code), len(head.code)) >= WHOLE_CHARACTERS else None


def strategy_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """Whether the configuration differs; None where it was not read on a side."""
    return None if base.strategy is None or head.strategy is None else base.strategy != head.strategy


def unconfigured(base: Dispatch, head: Dispatch) -> str:
    """Say on which side the configuration was not read."""
    sides = [name for name, row in (("base", base), ("head", head)) if row.strategy is None]
    return f"the configuration was not read on {' and '.join(sides)}"


def _strategy(compared: Compared) -> Cause | None:
    """Another configuration of code that is not known to be the same: one that made no difference is no cause."""
    return _configured(compared, [pair for pair in compared.pairs if code_differs(*pair) is not False])


def _idle_strategy(compared: Compared) -> Cause | None:
    return _configured(compared, compared.pairs)


def _configured(compared: Compared, pairs: Sequence[tuple[Dispatch, Dispatch]]) -> Cause | None:
    differing = [pair for pair in pairs if strategy_differs(*pair)]
    if not differing:
        return None
    other = sum(code_differs(*pair) is True for pair in differing)
    some = f", {other} of them other code" if other else f", but {SAME_CODE[compared.short_code]}"
    code = "" if other == len(differing) else some
    of = len(compared.pairs)
    why = f"{len(differing)} of {of} dispatches of the same source have another configuration{code}"
    return Cause("strategy", "configuration", as_told(compared, why))


def _codegen(compared: Compared) -> Cause | None:
    pairs = [pair for pair in compared.pairs if code_differs(*pair)]
    for pair in pairs:
        if strategy_differs(*pair) is None:
            side = "base" if pair[0].strategy is None else "head"
            cell = (compared.base if side == "base" else compared.head).cell
            return Cause(None, None, unconfigured(*pair) + _reason(cell, "strategies"))
    if not pairs:
        return None
    count = f"{len(pairs)} of {len(compared.pairs)}"
    why = as_told(compared, f"{count} dispatches have the same configuration and other code")
    if all(rebound(compared, *pair) for pair in pairs):
        return Cause("codegen", "executable-source", f"{why}, for {OTHER_OFFSETS}")
    return Cause("codegen", "code", why)


_SAME_LAID_OUT = "is the same, its layout is not"


def _packaging(compared: Compared) -> Cause | None:
    pairs = compared.pairs
    unknown = sum(code_differs(*pair) is None for pair in pairs)
    if unknown:
        return Cause(None, None, f"the code of {unknown} of {len(pairs)} dispatches could not be compared")
    early = next((phase for phase in HASHED_PHASES if _phase_differs(compared, phase)), None)
    host = f"; the program around them differs from {early.replace('-', ' ')} on" if early else ""
    told = "has the same size and short digest, its layout differs" if compared.short_code else _SAME_LAID_OUT
    return Cause("packaging", "layout", f"the code of every dispatch {told}{host}")


Question = Callable[[Compared], "Cause | None"]
QUESTIONS: tuple[Question, ...] = (
    _equal_artifacts,
    _unread,
    _input,
    _uncounted,
    _fusion,
    _dedup,
    _sources,
    _strategy,
    _codegen,
    _idle_strategy,
    _packaging,
)
"""In the compiler's order; each gives the cause, the reason why there is none, or None to go on."""


def dispatch_cause(found: Match, compared: Compared, cell: Cause) -> str | None:
    """The cause of one match that is not the same on both sides; None where it cannot be known."""
    base, head = found.base, found.head
    if compared.base.cell.program is None or compared.head.cell.program is None:
        return None
    if base is None or head is None:
        return _lone_cause(found, compared, cell)
    left, right = compared.base.source(base), compared.head.source(head)
    if left is None or right is None:
        return None
    if left.source != right.source:
        same = left.structure == right.structure
        return _regional(compared.structure_moved(left.structure) if same else None, cell)
    if rebound(compared, base, head) and cell.cause in _REGIONAL and not strategy_differs(base, head):
        return cell.cause
    return _back_end_cause(base, head, cell)


def _lone_cause(found: Match, compared: Compared, cell: Cause) -> str | None:
    source = (
        compared.base.source(found.base) if found.base else compared.head.source(found.head) if found.head else None
    )
    return _regional(compared.structure_moved(source.structure), cell) if source else None


def _regional(moved: int | None, cell: Cause) -> str | None:
    """Cause of a difference before the back end; `moved` executables more on head, where only folding differs."""
    if cell.cause not in _REGIONAL:
        return None
    if cell.cause == "input":
        return "input"
    return "fusion" if not moved else "dedup-lost" if moved > 0 else "dedup-won"


def _back_end_cause(base: Dispatch, head: Dispatch, cell: Cause) -> str | None:
    code, strategy = code_differs(base, head), strategy_differs(base, head)
    if code is False and numbers(base) == numbers(head):
        return cell.cause if cell.cause in _REGIONAL else None
    if strategy:
        return "strategy"
    if code:
        return None if strategy is None else "codegen"
    return "packaging" if code is False else None
