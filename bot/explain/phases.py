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
    executables: Mapping[str, tuple[str, ...]]
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
    # not known or
    # both are the same, as far as their digests tell
    base_census: Census
    head_census: Census

    @property
    def sources_differ(self) -> bool:
        """Return whether the sites launch other IR."""
        return self.base_census.sources != self.head_census.sources

    def structure_moved(self, structure: str) -> int | None:
        """Executables more on head, of a structure with as many sites on both sides.

        None where those differ too.
        """
        if (
            not 0
            < self.base_census.structures[structure]
            == self.head_census.structures[structure]
        ):
            return None
        return members_of(self.head_census, structure) - members_of(
            self.base_census, structure
        )


def compare(
    base: IndexedCell,
    head: IndexedCell,
    matches: tuple[Match, ...],
    same_model: bool,
    same_command: bool,
) -> Compared:
    """Count what both sides launch, once for all questions."""
    base_program, head_program = base.program, head.program
    pairs = [
        (m.base, m.head) for m in matches if m.base is not None and m.head is not None
    ]
    if base_program is None or head_program is None or base_program == head_program:
        return Compared(
            base=base,
            head=head,
            matches=matches,
            pairs=pairs,
            same_model=same_model,
            same_command=same_command,
            base_census=_NOTHING,
            head_census=_NOTHING,
        )
    censuses = _census(base, base_program), _census(head, head_program)
    return Compared(base, head, matches, pairs, same_model, same_command, *censuses)


_NOTHING = Census(
    structures=Counter(), sources=Counter(), executables={}, kinds={}, unread=0
)


def _census(side: IndexedCell, program: Program) -> Census:
    executables = {row.name: row.executable for row in side.cell.dispatches}
    site_sources = [
        side.sources.get(executables.get(site.entry_point, ""))
        for site in program.sites
    ]
    kinds = ((side.source(row), row.kind) for row in side.cell.dispatches)
    members: dict[str, list[str]] = {}
    for source in program.sources:
        members.setdefault(source.structure, []).append(source.executable)
    return Census(
        structures=Counter(source.structure for source in site_sources if source),
        sources=Counter(source.source for source in site_sources if source),
        executables={structure: tuple(names) for structure, names in members.items()},
        kinds={source.structure: kind for source, kind in kinds if source},
        unread=sum(source is None for source in site_sources),
    )


def members_of(census: Census, structure: str) -> int:
    """Return how many executables have this structure."""
    return len(census.executables.get(structure, ()))


def keeps_apart(cell: Cell, executables: tuple[str, ...]) -> str:
    """Return what keeps these executables apart.

    Their family's kind and its first line.

    Empty where no family has two.
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
    base_source, head_source = compared.base.source(base), compared.head.source(head)
    if (
        base_source is None
        or head_source is None
        or not (base_source.bound and head_source.bound)
    ):
        return False
    return (
        base_source.source == head_source.source
        and base_source.bound != head_source.bound
    )


# Whether two entry points have the same code and configuration, and what of their sizes
# only spells names.
#
# The digest of code is up to names, its size is not: PTX and Metal source have the
# kernel's name in the text, which is a character longer from the tenth dispatch on. So
# where digests agree the code is the same, whatever its size.


def same_numbers(base: Dispatch, head: Dispatch) -> bool:
    """Return whether all that was measured of both but their sites is the same.

    Of the same code the size does not count.

    Registers and spills that one side did not measure are not compared: older snapshots
    lack some of them.
    """
    (base_bytes, *base_numbers), (head_bytes, *head_numbers) = (
        numbers(base),
        numbers(head),
    )
    for place, (base_number, head_number) in enumerate(
        zip(base_numbers, head_numbers, strict=True)
    ):
        is_missing = base_number is None or head_number is None
        if base_number != head_number and not (is_missing and place >= MEMORY_NUMBERS):
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
    sides = [
        name for name, row in (("base", base), ("head", head)) if row.strategy is None
    ]
    return f"the configuration was not read on {' and '.join(sides)}"


# The cause of a change: the first phase of the compiler in which two sides differ,
# asked in the phases' order.
#
# Never a guess: where the facts of an earlier phase were not read on a side, there is
# no cause, but the reason.


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

    The questions in the compiler's order until one answers.
    """
    answers = (question(compared) for question in QUESTIONS)
    return next(
        filter(None, answers),
        Cause(None, None, "no difference in the parts that were read"),
    )


def _equal_artifacts(compared: Compared) -> Cause | None:
    base_digest = compared.base.cell.artifact_digest
    if base_digest is None or base_digest != compared.head.cell.artifact_digest:
        return None
    return Cause(None, None, "both artifacts are the same bytes")


def _unread(compared: Compared) -> Cause | None:
    for name, cell in (("base", compared.base.cell), ("head", compared.head.cell)):
        if cell.program is None:
            return Cause(
                None,
                None,
                f"the program's IR was not read on {name}{_reason(cell, 'program')}",
            )
        if "input" not in cell.program.phases:
            return Cause(
                None,
                None,
                f"the input phase was not read on {name}{_reason(cell, 'phases')}",
            )
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
            return Cause(
                None,
                None,
                f"the IR of {census.unread} of the dispatch sites was not read on"
                f" {name}",
            )
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
    base_sites, head_sites = compared.base_census, compared.head_census
    if base_sites.structures == head_sites.structures:
        return None
    gone, come = (
        base_sites.structures - head_sites.structures,
        head_sites.structures - base_sites.structures,
    )
    sites = (
        f"{gone.total()} of {base_sites.structures.total()}"
        f" {noun_of(base_sites.structures.total(), 'dispatch site')}"
    )
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
    base_census, head_census = compared.base_census, compared.head_census
    changes = {
        structure: members_of(head_census, structure)
        - members_of(base_census, structure)
        for structure in base_census.structures
    }
    total = sum(changes.values())
    # what is folded more makes up for what is folded less: neither lost nor won
    if not total:
        return None
    moved = [structure for structure, change in changes.items() if change]
    before = sum(members_of(base_census, structure) for structure in moved)
    after = sum(members_of(head_census, structure) for structure in moved)
    reason = f"the same regions are folded into {before} → {after} executables"
    if total > 0:
        most_changed = max(changes, key=lambda structure: changes[structure])
        kept_apart_by = keeps_apart(
            compared.head.cell, head_census.executables[most_changed]
        )
        if kept_apart_by:
            reason = f"{reason}; kept apart by {kept_apart_by}"
        return Cause("dedup-lost", "deduplication", reason)
    most_changed = min(changes, key=lambda structure: changes[structure])
    kept_apart_by = keeps_apart(
        compared.base.cell, base_census.executables[most_changed]
    )
    if kept_apart_by:
        reason = f"{reason}; were kept apart by {kept_apart_by}"
    return Cause("dedup-won", "deduplication", reason)


def dispatches_have(count: int, total: int) -> str:
    """`1 of 1 dispatch has`, `2 of 3 dispatches have`."""
    return (
        f"{count} of {total} {noun_of(total, 'dispatch')}"
        f" {'has' if count == 1 else 'have'}"
    )


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
    base_bytes, head_bytes = (
        unnamed_bytes(compared.base.cell),
        unnamed_bytes(compared.head.cell),
    )
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
"""In the compiler's order.

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

    `moved` executables more on head, where only folding differs.
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


# The smallest differing piece of a changed dispatch: unified diffs of IR and of
# configurations, capped.


LINES = 40
LINE_CHARACTERS = 200
CONTEXT_LINES = 2
# Of either text: the comparison is quadratic at worst, and what is beyond would not be
# shown
LARGEST_LINES = 2_000
NOTED_KNOBS = 3
_OPERAND = re.compile(r", (?=%|affine_map<)")


def unified(base_text: str, head_text: str) -> tuple[str, ...]:
    """Unified diff of two texts.

    Empty where equal; at most LINES and one that counts the rest.
    """
    if base_text == head_text:
        return ()
    base_lines, head_lines = (
        text.splitlines()[:LARGEST_LINES] for text in (base_text, head_text)
    )
    lines = difflib.unified_diff(
        base_lines, head_lines, "base", "head", lineterm="", n=CONTEXT_LINES
    )
    clipped = tuple(_clean(line) for line in islice(lines, LINES))
    hidden = sum(1 for _ in lines)
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
    return "".join(c if c.isprintable() else " " for c in clipped)


@lru_cache(maxsize=4096)
def strategy_diff(base: str, head: str) -> tuple[str, ...]:
    """Unified diff of two configurations, a line for each value with a name."""
    sides = without_operations(base, head)
    rows = (
        (f"{name} = {'; '.join(values)}" for name, values in knobs(parts).items())
        for parts in sides
    )
    return unified(*map("\n".join, rows))


@lru_cache(maxsize=4096)
def strategy_note(base: str, head: str) -> str:
    """Return the first knobs that differ: `Tiling … tile 8 → 4`."""
    changes = turned(base, head)
    if not changes:
        return UNNAMED
    noted = [
        f"{name} {change}" for name, change in islice(changes.items(), NOTED_KNOBS)
    ]
    pipeline = knobs(configured_parts(head))[PIPELINE][0]
    same = "" if PIPELINE in changes else f"{pipeline} … "
    if len(changes) > NOTED_KNOBS:
        suffix = f"; {len(changes) - NOTED_KNOBS} more"
    else:
        suffix = ""
    return _clean(same + "; ".join(noted) + suffix)


def source_diff(base: str | None, head: str | None, texts: Texts) -> tuple[str, ...]:
    """Unified diff of the IR of two sources, given by digest.

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
    """One operand a line where a line would be clipped.

    A signature differs in one argument of many.
    """
    lines = (
        _OPERAND.sub(",\n    ", line) if len(line) > LINE_CHARACTERS else line
        for line in text.splitlines()
    )
    return "\n".join(lines)
