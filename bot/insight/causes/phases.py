"""The cause of a change: the first phase of the compiler in which two sides differ, asked in the phases' order.

Never a guess: where the facts of an earlier phase were not read on a side, there is no cause, but the reason. What
rests on short digests being equal, as a stored baseline has them, says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.core.values.program import HASHED_PHASES
from bot.core.values.snapshot import Cell, Dispatch
from bot.insight.causes.matching import Match
from bot.insight.causes.regions import Census, Compared, members_of, merges
from bot.insight.causes.siblings import keeps_apart
from bot.insight.facts.bound import OTHER_OFFSETS, all_bound_otherwise, bound_otherwise
from bot.insight.facts.codes import code_differs, same_numbers, strategy_differs, unconfigured

SHOWN_REGIONS = 3
SHORT_IR = "by short digests of IR, "
SAME_CODE = {False: "the same code", True: "code of the same size, up to names, and short digest"}
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
    gone, come = left.structures - right.structures, right.structures - left.structures
    why = _spelled(left, right, gone, come) or _formed(compared, left, gone, come)
    return Cause("fusion", phase, as_told(compared, f"{why}{unknown}"))


def _spelled(left: Census, right: Census, gone: Counter[str], come: Counter[str]) -> str:
    """Where there are as many sites of each kind, nobody knows of regions formed differently: of other IR only."""
    if _by_kind(left, gone) != _by_kind(right, come):
        return ""
    sites = f"{gone.total()} of {left.structures.total()} dispatch sites"
    verb = "has" if gone.total() == 1 else "have"
    return f"{sites} {verb} different IR, in as many regions of the same kinds ({_counted(_by_kind(left, gone))})"


def _by_kind(census: Census, sites: Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for structure, count in sites.items():
        counts[census.kinds.get(structure, "")] += count
    return counts


def _counted(kinds: Counter[str]) -> str:
    named = [f"{count} × {kind}" for kind, count in kinds.most_common(SHOWN_REGIONS)]
    more = len(kinds) - SHOWN_REGIONS
    return ", ".join([*named, *([f"{more} more"] if more > 0 else [])])


def _formed(compared: Compared, left: Census, gone: Counter[str], come: Counter[str]) -> str:
    lines = merges(compared.base, compared.head)
    named = "".join(f"; {line}" for line in lines[:SHOWN_REGIONS])
    more = f"; {len(lines) - SHOWN_REGIONS} more" if len(lines) > SHOWN_REGIONS else ""
    counts = f"{gone.total()} of {left.structures.total()} dispatch sites became {come.total()}"
    return f"regions are formed differently: {counts}{named}{more}"


def _dedup(compared: Compared) -> Cause | None:
    left, right = compared.left, compared.right
    if left is None or right is None:
        return None
    changes = {s: members_of(right, s) - members_of(left, s) for s in left.structures}
    if not sum(changes.values()):  # what is folded more makes up for what is folded less: neither lost nor won
        return None
    lost = sum(changes.values()) > 0
    most = max(changes, key=lambda s: changes[s] if lost else -changes[s])
    apart = keeps_apart((compared.head if lost else compared.base).cell, (right if lost else left).executables[most])
    moved = [s for s, change in changes.items() if change]
    before, after = (sum(members_of(census, s) for s in moved) for census in (left, right))
    why = f"the same regions are folded into {before} → {after} executables"
    by = f"; {'kept' if lost else 'were kept'} apart by {apart}" if apart else ""
    return Cause("dedup-lost" if lost else "dedup-won", "deduplication", as_told(compared, why + by))


def _sources(compared: Compared) -> Cause | None:
    if not compared.sources_differ:
        return None
    phase, unknown = _early(compared, "executable-source")
    why = f"the same regions with different constants, shapes or offsets{unknown}"
    return Cause("fusion", phase, as_told(compared, why))


def _strategy(compared: Compared) -> Cause | None:
    """Another configuration of code that is not known to be the same: one that made no difference is no cause."""
    return _configured(compared, [pair for pair in compared.pairs if code_differs(*pair) is not False])


def _idle_strategy(compared: Compared) -> Cause | None:
    return _configured(compared, compared.pairs)


def _configured(compared: Compared, pairs: Sequence[tuple[Dispatch, Dispatch]]) -> Cause | None:
    differing = [pair for pair in pairs if strategy_differs(*pair)]
    if not differing:
        return None
    of = len(compared.pairs)
    why = f"{len(differing)} of {of} dispatches of the same source have a different configuration"
    code = _code_of(differing, SAME_CODE[compared.short_code])
    return Cause("strategy", "configuration", as_told(compared, why + code))


def _code_of(pairs: Sequence[tuple[Dispatch, Dispatch]], same_code: str) -> str:
    known = Counter(code_differs(*pair) for pair in pairs)
    if known[True] == len(pairs):
        return ""
    if known[False] == len(pairs):
        return f", but {same_code}"
    if known[None] == len(pairs):
        return "; whether the code differs is not known"
    said = f", {known[True]} of them different code" if known[True] else f", {known[False]} of them {same_code}"
    return f"{said}; of {known[None]} it is not known whether the code differs" if known[None] else said


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
    why = as_told(compared, f"{count} dispatches have the same configuration and different code")
    words = all_bound_otherwise(compared, pairs)
    return Cause("codegen", "executable-source", f"{why}, {words}") if words else Cause("codegen", "code", why)


def _packaging(compared: Compared) -> Cause | None:
    pairs = compared.pairs
    unknown = sum(code_differs(*pair) is None for pair in pairs)
    if unknown:
        return Cause(None, None, f"the code of {unknown} of {len(pairs)} dispatches could not be compared")
    early = next((phase for phase in HASHED_PHASES if _phase_differs(compared, phase)), None)
    host = f"; the program around them differs from {early.replace('-', ' ')} on" if early else ""
    sentence = (
        "has the same size, up to names, and short digest, its layout differs"
        if compared.short_code
        else "is the same, its layout is not"
    )
    return Cause("packaging", "layout", f"the code of every dispatch {sentence}{host}")


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


def dispatch_cause(match: Match, compared: Compared, cell: Cause) -> str | None:
    """The cause of one match that is not the same on both sides; None where it cannot be known."""
    base, head = match.base, match.head
    if compared.base.cell.program is None or compared.head.cell.program is None:
        return None
    if base is None or head is None:
        source = compared.base.source(base) if base else compared.head.source(head) if head else None
        return _regional(compared.structure_moved(source.structure), cell) if source else None
    left, right = compared.base.source(base), compared.head.source(head)
    if left is None or right is None:
        return None
    if left.source != right.source:
        same = left.structure == right.structure
        return _regional(compared.structure_moved(left.structure) if same else None, cell)
    moved = bound_otherwise(compared, base, head) == OTHER_OFFSETS
    if moved and cell.cause in _REGIONAL and not strategy_differs(base, head):
        return cell.cause  # other regions around it are why its buffers are elsewhere; new assumptions are not
    code, strategy = code_differs(base, head), strategy_differs(base, head)
    if code is False and same_numbers(base, head):
        return cell.cause if cell.cause in _REGIONAL else None
    if strategy:
        return "strategy"
    if code:
        return None if strategy is None else "codegen"
    return "packaging" if code is False else None


def _regional(moved: int | None, cell: Cause) -> str | None:
    """Cause of a difference before the back end; `moved` executables more on head, where only folding differs."""
    if cell.cause not in _REGIONAL:
        return None
    if cell.cause == "input":
        return "input"
    return "fusion" if not moved else "dedup-lost" if moved > 0 else "dedup-won"
