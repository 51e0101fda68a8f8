"""Count what the sites of both sides launch, once for all questions about a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.core.program import Program
from bot.core.snapshot import Cell, Dispatch
from bot.explain.matching import IndexedCell, Match


@dataclass(frozen=True, slots=True)
class Census:
    """The executables that a side's dispatch sites launch."""

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
    same_model: bool  # True if the model's text is the same on both sides
    same_command: bool  # True if compiler and flags are
    same_inputs: bool  # True if the other files are that the build reads
    # base_census, head_census: the executables that their sites launch; empty if either
    # program is not known, or if both have the same digests
    base_census: Census
    head_census: Census

    @property
    def sources_differ(self) -> bool:
        """Return whether the sites launch other IR."""
        return self.base_census.sources != self.head_census.sources

    def structure_moved(self, structure: str) -> int | None:
        """Return how many executables of a structure head has more than base.

        Return None if the sides do not have equally many sites of it, or have none.
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
    *,
    same_inputs: bool = True,
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
        same_inputs=same_inputs,
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

    The text is empty if no family has two of them.
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
"""The end of the reason if entry points have the same IR and other buffers."""


def rebound(compared: Compared, base: Dispatch, head: Dispatch) -> bool:
    """Return whether both entry points have the same IR, but other bound buffers."""
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
