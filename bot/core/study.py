"""A study: variants in their order, each measured over the same cells; what a gap, a neighbour and the reference are.

Every command that measures asks one question of it. A comparison has two variants, an experiment as many as its
question needs, a history one a release or stored commit; a bisection asks for them one by one.

A gap is no measurement: a variant that could not be had, and a cell without an artifact. It is nobody's neighbour
and nobody's reference: what was measured after it is held against what was measured before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.record import Small
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Snapshot
from bot.core.spec import release_in

UNMEASURED = "unmeasured"  # the status of a cell in a gap: its failure says why nothing is known of it
SHORT = 10  # digits of a commit that names a variant
_ABSENT = "not in this snapshot"
_COMMAND = re.compile(r"\biree-compile (.*?) -o ", re.DOTALL)
_NAMED = 3


class Variant(Small, frozen=True):
    """What makes one side of a study another one than the others, and what was measured with it."""

    name: str
    spec: str = ""  # SPEC of its compiler, without directories once that is fetched; empty for the study's own
    snapshot: Snapshot | None = None  # None before it is measured, and where there is a gap in its place
    reason: str = ""  # why there is a gap, or why none of its cells could be tried
    repeats: tuple[str, ...] = ()  # other SPECs that gave the same
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # of its cells, behind all others
    # glob of the only targets that have it → flags that it adds there; None for all, without such flags
    targets: Mapping[str, tuple[str, ...]] | None = None
    files: Mapping[str, str] = {}  # row → its model's file; empty where the rows are models of their own

    @property
    def compiler(self) -> CompilerInfo | None:
        """What measured it; None of a gap."""
        return self.snapshot.compiler if self.snapshot else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Its notes, then those of its snapshot, each once."""
        return tuple(dict.fromkeys((*self.notes, *(self.snapshot.notes if self.snapshot else ()))))


class Study(Small, frozen=True, dict=True, gc=True):
    """Variants with names of their own, in their order."""

    variants: tuple[Variant, ...]

    @cached_property
    def keys(self) -> tuple[CellKey, ...]:
        """The cells that any variant plans or has, sorted."""
        sides = [one.snapshot for one in self.variants if one.snapshot]
        return tuple(sorted({key for side in sides for key in (*side.planned, *(cell.key for cell in side.cells))}))

    @cached_property
    def rows(self) -> Mapping[CellKey, tuple[Cell, ...]]:
        """Each cell in all variants, in their order; in a gap it is `unmeasured`, with the reason as its failure."""
        columns = []
        for one in self.variants:
            own = {cell.key: cell for cell in one.snapshot.cells} if one.snapshot else {}
            gap = Failure("gap", _ABSENT if one.snapshot else one.reason)
            columns.append([own.get(key) or Cell(key, UNMEASURED, failure=gap) for key in self.keys])
        return dict(zip(self.keys, zip(*columns, strict=True), strict=True))

    @cached_property
    def targets(self) -> Mapping[str, str]:
        """Target → its backend, of all variants."""
        return {name: one for side in self.variants if side.snapshot for name, one in side.snapshot.targets.items()}

    @cached_property
    def measured(self) -> tuple[Variant, ...]:
        """Those with an artifact."""
        return tuple(one for one in self.variants if one.snapshot and any(cell.measured for cell in one.snapshot.cells))

    @cached_property
    def references(self) -> Mapping[str, Variant]:
        """Target → what the other variants are compared with there: the first that has an artifact there."""
        first: dict[str, Variant] = {}
        for one in self.measured:
            for cell in one.snapshot.cells if one.snapshot else ():
                if cell.measured:
                    first.setdefault(cell.key.target, one)
        return dict(sorted(first.items()))


def _is_outcome(cell: Cell) -> bool:
    """True where how it ended is the compiler's own doing: with more time, or with the model, it may end otherwise."""
    return cell.status not in ("timeout", UNMEASURED) and not cell.unfetched


Side = tuple[str, Snapshot]  # a variant's name, and what was measured


class Neighbours(NamedTuple):
    """Two variants between which nothing could be had."""

    base: Side
    head: Side
    gaps: tuple[str, ...]  # names of what lies between
    # earlier variants, each with the cells of head that it was the last to know
    across: tuple[tuple[Side, frozenset[CellKey]], ...]


def neighbours(variants: Iterable[Variant]) -> Iterator[Neighbours]:
    """Each variant that could be had with the one before, in their order; a cell without an artifact is a gap."""
    last, before, gaps = dict[CellKey, Side](), list[Side](), list[str]()
    for one in variants:
        if one.snapshot is None:
            gaps.append(one.name)
            continue
        head = (one.name, one.snapshot)
        known = frozenset(cell.key for cell in one.snapshot.cells if cell.measured)
        if before:
            across: dict[str, tuple[Side, set[CellKey]]] = {}
            for key in known & last.keys():
                if last[key] is not before[0]:
                    across.setdefault(last[key][0], (last[key], set()))[1].add(key)
            earlier = tuple((side, frozenset(keys)) for side, keys in across.values())
            yield Neighbours(before[0], head, tuple(gaps), earlier)
        last |= dict.fromkeys(known, head)
        before, gaps = [head], []


def of_commit(sha: str, snapshot: Snapshot) -> Variant:
    """A stored baseline: its name is the commit, and its SPEC the release that measured it."""
    compiler = snapshot.compiler
    return Variant(sha[:SHORT], release_in(compiler.spec) or compiler.spec or compiler.version, snapshot)


def united(variants: Iterable[Variant]) -> Study:
    """Each compiler once: what a later one repeats of an earlier one is put to it.

    Where both asked the same compiler for the same cells and got other artifacts, both stay, and say so.
    """
    result: list[Variant] = []
    for one in variants:
        at = next((at for at, other in enumerate(result) if _is_repeat(other, one)), None)
        if at is None:
            result.append(one)
        elif differing := [
            cell.key
            for cell, other in _pairs(result[at].snapshot, one.snapshot)
            if _is_outcome(cell)
            and _is_outcome(other)
            and (cell.status, cell.artifact_digest) != (other.status, other.artifact_digest)
        ]:
            more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
            what = ", ".join(map(str, differing[:_NAMED])) + more
            note = f"the same compiler as {result[at].name} gave something else for {what}: it does not repeat itself"
            result.append(replace(one, notes=(*one.notes, note)))
        else:
            result[at] = _joined(result[at], one)
    return named_apart(result)


def named_apart(variants: Sequence[Variant]) -> Study:
    """All with names of their own: `3.13.0` and `3.13.0 (2)`."""
    named: dict[str, Variant] = {}
    for one in variants:
        number, name = 1, one.name
        while name in named:
            number += 1
            name = f"{one.name} ({number})"
        named[name] = replace(one, name=name)
    return Study(tuple(named.values()))


def _is_repeat(first: Variant, second: Variant) -> bool:
    """True for the same compiler, where nothing says that the two were asked for something else."""
    left, right = first.snapshot, second.snapshot
    if left is None or right is None:
        return left is right and first.spec == second.spec
    if not left.compiler.digest or left.compiler.digest != right.compiler.digest:
        return False
    if any(left.models[name] != right.models[name] for name in left.models.keys() & right.models.keys()):
        return False
    return all(_options(one) == _options(other) for one, other in _pairs(left, right))


def _pairs(left: Snapshot | None, right: Snapshot | None) -> list[tuple[Cell, Cell]]:
    cells = {cell.key: cell for cell in right.cells} if right else {}
    return [(cell, cells[cell.key]) for cell in left.cells if cell.key in cells] if left else []


def _options(cell: Cell) -> str:
    """The options of its command, without what lifts the stack gate."""
    words = _COMMAND.search(cell.command)
    return words[1].replace(f" {LIFTED_LIMIT_FLAG}", "") if words else ""


def _joined(first: Variant, second: Variant) -> Variant:
    """The cells of both; of two the first, unless only the second says something of the compiler."""
    repeats = (*first.repeats, second.spec, *second.repeats)
    first = replace(first, repeats=repeats, notes=tuple(dict.fromkeys((*first.notes, *second.notes))))
    left, right = first.snapshot, second.snapshot
    if left is None or right is None:
        return first
    cells = {cell.key: cell for cell in right.cells}
    cells |= {cell.key: cell for cell in left.cells if cell.key not in cells or _is_outcome(cell)}
    both = replace(
        left,
        cells=tuple(cells[key] for key in sorted(cells)),
        models={**right.models, **left.models},
        targets={**right.targets, **left.targets},
        only={**right.only, **left.only},
    )
    return replace(first, snapshot=both)
