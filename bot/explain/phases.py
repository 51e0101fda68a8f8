"""Find the first phase in which two sides differ, and the smallest piece that does."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from bot.core.explanation import DispatchDelta, code_differs
from bot.core.metrics import CODE
from bot.core.program import SOURCES, Program
from bot.core.snapshot import Cell, Dispatch
from bot.core.words import noun_of
from bot.explain.matching import MEMORY_NUMBERS, IndexedCell, Match, is_opaque, numbers
from bot.explain.root_causes import PIPELINE, SOURCE_CHANGED, UNNAMED, knobs, turned
from bot.explain.strategies import (
    configured_parts,
    same_configuration,
    without_operations,
)
from bot.explain.texts import Texts


@dataclass(frozen=True, slots=True)
class Census:
    """What a side's dispatch sites launch."""

    # structures, sources: digest → sites
    structures: Counter[str]
    sources: Counter[str]
    # structure → the executables that have it, in the program's order
    executables: Mapping[str, Sequence[str]]
    kinds: Mapping[str, str]  # structure → what its main operation is
    unread: int  # sites whose executable's IR is not known


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sides, ready for the questions; made by `compare`."""

    base: IndexedCell
    head: IndexedCell
    matches: tuple[Match, ...]
    pairs: Sequence[tuple[Dispatch, Dispatch]]  # entry points that have a partner
    same_model: bool  # True where the model's text is the same on both sides
    same_command: bool  # True where compiler and flags are
    # base_census, head_census: what their sites launch; nothing where either program is
    # not known, or both are the same as far as their digests tell
    base_census: Census
    head_census: Census

    @property
    def sources_differ(self) -> bool:
        """Return whether the sites launch other IR."""
        return self.base_census.sources != self.head_census.sources

    def structure_moved(self, structure: str) -> int | None:
        """Return how many executables of a structure head has more than base.

        None where the sides have no sites of it, or not as many.
        """
        base_sites = self.base_census.structures[structure]
        head_sites = self.head_census.structures[structure]
        if not base_sites or base_sites != head_sites:
            return None
        return self.more_members(structure)

    def more_members(self, structure: str) -> int:
        """Return how many executables of a structure head has more than base."""
        base_members = members_of(self.base_census, structure)
        return members_of(self.head_census, structure) - base_members


def compare(
    base: IndexedCell,
    head: IndexedCell,
    matches: tuple[Match, ...],
    same_model: bool,
    same_command: bool,
) -> Compared:
    """Count what both sides launch, once for all questions."""
    pairs = list[tuple[Dispatch, Dispatch]]()
    for match in matches:
        if match.base is not None and match.head is not None:
            pairs.append((match.base, match.head))
    base_census = _NOTHING
    head_census = _NOTHING
    if base.program and head.program and base.program != head.program:
        base_census = _census(base, base.program)
        head_census = _census(head, head.program)
    return Compared(
        base=base,
        head=head,
        matches=matches,
        pairs=pairs,
        same_model=same_model,
        same_command=same_command,
        base_census=base_census,
        head_census=head_census,
    )


_NOTHING = Census(
    structures=Counter(), sources=Counter(), executables={}, kinds={}, unread=0
)


def _census(side: IndexedCell, program: Program) -> Census:
    executables = dict[str, str]()
    kinds = dict[str, str]()
    for row in side.cell.dispatches:
        executables[row.name] = row.executable
        if source := side.source(row):
            kinds[source.structure] = row.kind
    structures = Counter[str]()
    sources = Counter[str]()
    unread = 0
    for site in program.sites:
        source = side.sources.get(executables.get(site.entry_point, ""))
        if source:
            structures[source.structure] += 1
            sources[source.source] += 1
        else:
            unread += 1
    members: dict[str, list[str]] = {}
    for source in program.sources:
        members.setdefault(source.structure, []).append(source.executable)
    return Census(structures, sources, executables=members, kinds=kinds, unread=unread)


def members_of(census: Census, structure: str) -> int:
    """Return how many executables have this structure."""
    return len(census.executables.get(structure, ()))


def keeps_apart(cell: Cell, executables: Sequence[str]) -> str:
    """Return what keeps these executables apart: their family's kind and first line.

    Empty where no family has two of them.
    """
    names = set(executables)
    for family in cell.families:
        if len(names.intersection(family.members)) > 1:
            if family.identical:
                return "nothing in their functions, which are identical"
            if family.varying:
                return f"{family.kind} ({family.varying[0]})"
            return family.kind
    return ""


REBOUND = "but the program binds other buffers"
"""The end of the reason where entry points have the same IR and other buffers."""


def rebound(compared: Compared, base: Dispatch, head: Dispatch) -> bool:
    """Return whether the entry points have the same IR, but for what the program binds to it."""
    base_source = compared.base.source(base)
    head_source = compared.head.source(head)
    if base_source is None or head_source is None:
        return False
    if not base_source.bound or not head_source.bound:
        return False
    return (
        base_source.source == head_source.source
        and base_source.bound != head_source.bound
    )


def same_numbers(base: Dispatch, head: Dispatch) -> bool:
    """Return whether all that was measured of both but their sites is the same.

    The size of the same code does not count. Registers and spills that one side did not
    measure are not compared: older snapshots lack some of them.
    """
    base_bytes, *base_numbers = numbers(base)
    head_bytes, *head_numbers = numbers(head)
    pairs = zip(base_numbers, head_numbers, strict=True)
    for place, pair in enumerate(pairs):
        is_missing = None in pair
        if pair[0] != pair[1] and not (is_missing and place >= MEMORY_NUMBERS):
            return False
    sized = base_bytes is not None and head_bytes is not None
    return base_bytes == head_bytes or (sized and code_differs(base, head) is False)


def strategy_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """Return whether the configuration differs.

    None where it was not read on a side.
    """
    if base.strategy is None or head.strategy is None:
        return None
    return not same_configuration(base.strategy, head.strategy)


def configured_differently(delta: DispatchDelta) -> bool:
    """Return whether the sides are known to configure a dispatch differently."""
    return (
        delta.base is not None
        and delta.head is not None
        and strategy_differs(delta.base, delta.head) is True
    )


def unconfigured(base: Dispatch, head: Dispatch) -> str:
    """Say on which side the configuration was not read."""
    sides = "base and head"
    if base.strategy is not None:
        sides = "head"
    elif head.strategy is not None:
        sides = "base"
    return f"the configuration was not read on {sides}"


SAME_CODE = "the same code"
_REGIONAL = frozenset({"input", "fusion", "dedup-lost", "dedup-won"})


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause and the phase it stands for, or None and None with the reason in `why`."""

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
            what = f"the program's IR was not read on {name}"
            return Cause(None, None, what + _reason(cell, "program"))
        if "input" not in cell.program.phases:
            what = f"the input phase was not read on {name}"
            return Cause(None, None, what + _reason(cell, "phases"))
    return None


def _reason(cell: Cell, field: str) -> str:
    reason = cell.reasons.get(field)
    if reason:
        return f": {reason}"
    return ""


def _phase_differs(compared: Compared, phase: str) -> bool | None:
    """Return whether a phase's IR differs; None where a side does not have it."""
    if compared.base.program is None or compared.head.program is None:
        return None
    base_digest = compared.base.program.phases.get(phase)
    head_digest = compared.head.program.phases.get(phase)
    if base_digest is None or head_digest is None:
        return None
    return base_digest != head_digest


def _input(compared: Compared) -> Cause | None:
    """Return the cause `input`.

    None where one text gave programs that differ, and that later phases made equal
    again.
    """
    if not _phase_differs(compared, "input"):
        return None
    if not compared.same_model:
        return Cause("input", "input", "the model itself changed")
    if compared.sources_differ:
        return Cause(
            "input", "input", "the compiler reads the same model text differently"
        )
    return None


def source_changed(compared: Compared) -> bool | None:
    """Return whether a file that the command reads differs, of a compiler that is a command.

    None: not known.
    """
    if not (is_opaque(compared.base) and is_opaque(compared.head)):
        return None
    if not compared.same_model or _phase_differs(compared, "input"):
        return True
    return _phase_differs(compared, SOURCES)


def opaque_source(compared: Compared) -> str:
    """Return what is the same on both sides of a command where its code differs."""
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
    """Return the phase of a difference that is at the latest in `otherwise`.

    None where it cannot be told.
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
    # nobody knows of regions formed differently: of other IR only
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
    # what is folded more makes up for what is folded less: neither lost nor won
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
    """Return how much text of the executables is in no function whose name and size are known."""
    text_bytes = sum(size for part, size in cell.parts.items() if part in CODE)
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
    # another configuration of code that is known to be the same made no difference: no
    # cause where others are
    lambda compared: _configured(
        compared, [pair for pair in compared.pairs if code_differs(*pair) is not False]
    ),
    _codegen,
    lambda compared: _configured(compared, compared.pairs, f", but {SAME_CODE}"),
    _packaging,
)
"""The questions in the compiler's order.

Each gives the cause, the reason why there is none, or None to go on.
"""


def dispatch_cause(match: Match, compared: Compared, cell: Cause) -> str | None:
    """Return the cause of one match that is not the same on both sides.

    None where it cannot be known.
    """
    base, head = match.base, match.head
    if compared.base.cell.program is None or compared.head.cell.program is None:
        return None
    if is_opaque(compared.base) and is_opaque(compared.head):
        return _opaque_cause(match, compared)
    if base is None or head is None:
        return _lone_cause(match, compared, cell)
    base_source = compared.base.source(base)
    head_source = compared.head.source(head)
    if base_source is None or head_source is None:
        return None
    if base_source.source != head_source.source:
        moved = None
        if base_source.structure == head_source.structure:
            moved = compared.structure_moved(base_source.structure)
        return _regional(moved, cell)
    strategy = strategy_differs(base, head)
    if (
        cell.cause in _REGIONAL
        and not strategy
        and compared.same_command
        and rebound(compared, base, head)
    ):
        # by one compiler and one configuration: what is bound differs because of the
        # program
        return cell.cause
    return _late_cause(base, head, cell, strategy)


def _opaque_cause(match: Match, compared: Compared) -> str:
    """Return the cause where the source is all that is known before the code."""
    if source_changed(compared):
        return "input"
    base, head = match.base, match.head
    if base is None or head is None:
        return "codegen"
    is_same = code_differs(base, head) is False and same_numbers(base, head)
    if is_same:
        return "packaging"
    return "codegen"


def _lone_cause(match: Match, compared: Compared, cell: Cause) -> str | None:
    """Return the cause of a dispatch that only one side has."""
    source = None
    if match.base is not None:
        source = compared.base.source(match.base)
    elif match.head is not None:
        source = compared.head.source(match.head)
    if source is None:
        return None
    return _regional(compared.structure_moved(source.structure), cell)


def _late_cause(
    base: Dispatch, head: Dispatch, cell: Cause, strategy: bool | None
) -> str | None:
    """Return the cause of a difference between dispatches of the same IR."""
    differs = code_differs(base, head)
    if differs is False and same_numbers(base, head):
        if cell.cause in _REGIONAL:
            return cell.cause
        return None
    if strategy:
        return "strategy"
    if differs:
        if strategy is None:
            return None
        return "codegen"
    if differs is False:
        return "packaging"
    return None


def _regional(moved: int | None, cell: Cause) -> str | None:
    """Return the cause of a difference before the back end.

    `moved`: how many executables head has more, where only folding differs.
    """
    if cell.cause not in _REGIONAL:
        return None
    if cell.cause == "input":
        return "input"
    if not moved:
        return "fusion"
    if moved > 0:
        return "dedup-lost"
    return "dedup-won"


LINES = 40
LINE_CHARACTERS = 200
CONTEXT_LINES = 2
# Of either text: the comparison is quadratic at worst, and what is beyond would not be
# shown
LARGEST_LINES = 2_000
NOTED_KNOBS = 3
_OPERAND = re.compile(r", (?=%|affine_map<)")


def unified(base_text: str, head_text: str) -> tuple[str, ...]:
    """Return the unified diff of two texts.

    Empty where they are equal. It has at most LINES, and one that counts the others.
    """
    if base_text == head_text:
        return ()
    lines = difflib.unified_diff(
        base_text.splitlines()[:LARGEST_LINES],
        head_text.splitlines()[:LARGEST_LINES],
        fromfile="base",
        tofile="head",
        lineterm="",
        n=CONTEXT_LINES,
    )
    clipped = tuple(map(_clean, islice(lines, LINES)))
    hidden = len(list(lines))
    if hidden:
        return (*clipped, f"… {hidden} more lines")
    return clipped


def _clean(line: str) -> str:
    """Return a line clipped, with a blank for each character that cannot be printed."""
    clipped = line
    if len(line) > LINE_CHARACTERS:
        clipped = line[: LINE_CHARACTERS - 1] + "…"
    if clipped.isprintable():
        return clipped
    return "".join(letter if letter.isprintable() else " " for letter in clipped)


@lru_cache(maxsize=4096)
def strategy_diff(base: str, head: str) -> tuple[str, ...]:
    """Return the unified diff of two configurations, a line for each named value."""
    return unified(*map(_knob_lines, without_operations(base, head)))


def _knob_lines(parts: tuple[str, ...]) -> str:
    lines = [f"{name} = {'; '.join(values)}" for name, values in knobs(parts).items()]
    return "\n".join(lines)


@lru_cache(maxsize=4096)
def strategy_note(base: str, head: str) -> str:
    """Return the first knobs that differ: `Tiling … tile 8 → 4`."""
    changes = turned(base, head)
    if not changes:
        return UNNAMED
    noted = [f"{name} {change}" for name, change in changes.items()]
    note = "; ".join(noted[:NOTED_KNOBS])
    if PIPELINE not in changes:
        note = f"{knobs(configured_parts(head))[PIPELINE][0]} … {note}"
    if len(noted) > NOTED_KNOBS:
        note = f"{note}; {len(noted) - NOTED_KNOBS} more"
    return _clean(note)


def source_diff(base: str | None, head: str | None, texts: Texts) -> tuple[str, ...]:
    """Return the unified diff of the IR of two sources, given by digest.

    Empty where either text is not at hand.
    """
    if base is None or head is None or base == head:
        return ()
    base_text = texts(base)
    head_text = texts(head) if base_text is not None else None
    if base_text is None or head_text is None:
        return ()
    return unified(_wrapped(base_text), _wrapped(head_text))


def _wrapped(text: str) -> str:
    """Write one operand a line where a line would be clipped.

    A signature differs in one argument of many.
    """
    lines = []
    for line in text.splitlines():
        if len(line) > LINE_CHARACTERS:
            line = _OPERAND.sub(",\n    ", line)
        lines.append(line)
    return "\n".join(lines)
