"""One cell's program with groups of executables made one: rewritten, compiled and measured, each set of groups once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.compiler.bindings import Bindings
from bot.compiler.cell_cache import CellCache, cell_key
from bot.compiler.compiling import Kit, Source, compile_directly
from bot.compiler.diagnostics import reason
from bot.compiler.ptxas import Assembler
from bot.compiler.rewriting import RESUME, FoldedGroup, Group, Groups, LeftGroup, rewritten
from bot.core.fold import FOLD_KINDS, LeftFamily
from bot.core.planned import Model, PlannedCell
from bot.core.snapshot import Cell, Failure
from bot.errors import MalformedBinary
from bot.readers.dispatches import UNSPEAKABLE
from bot.study.cell import cell_of

NOTHING: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """The program with these groups made one.

    Attributes:
        cell: as it was measured; a failed one where the program could not be rewritten.
        program: where its text is, while it is needed.
        planned: the cell that compiles it.
    """

    groups: tuple[Group, ...]
    cell: Cell
    program: Path
    planned: PlannedCell
    folded: tuple[FoldedGroup, ...] = ()
    left: tuple[LeftGroup, ...] = ()

    @property
    def artifact_bytes(self) -> int | None:
        """Of its artifact; None without one."""
        return self.cell.value("artifact_bytes") if self.cell.measured else None


@dataclass
class Attempts:
    """Attempts at one cell.

    Attributes:
        planned: the cell whose program it is.
        flow: its program at the end of the flow phase.
    """

    planned: PlannedCell
    flow: Path
    kit: Kit
    folding: Bindings
    cache: CellCache
    assembler: Assembler | None
    _known: dict[tuple[Group, ...], Attempt] = field(default_factory=dict)

    def at(self, groups: Sequence[Group]) -> Attempt:
        """The attempt with these groups, in any order."""
        key = tuple(sorted(groups))
        if key not in self._known:
            self._known[key] = self._made(key)
        return self._known[key]

    def _made(self, groups: tuple[Group, ...]) -> Attempt:
        program = self.flow.with_name(f"{self.flow.stem}.{len(self._known)}.mlir")
        try:
            result = rewritten(self.folding, self.flow, groups, program)
        except MalformedBinary as error:
            planned = self._planned(self.flow)
            return Attempt(groups, Cell(planned.key, "failed", failure=Failure("read", str(error))), self.flow, planned)
        planned = self._planned(program)
        cell = self._measured(planned)
        # One that the stack limit refuses, where the model itself is within it, is none that compiles.
        measured = cell if cell.status != "over-stack-limit" else Cell(cell.key, "failed", failure=cell.failure)
        program.unlink()  # there are many of them, and few are needed again
        return Attempt(groups, measured, program, planned, result.folded, result.left)

    def program(self, attempt: Attempt) -> Path:
        """The text of an attempt; raises MalformedBinary where it cannot be had again."""
        if not attempt.program.is_file():
            rewritten(self.folding, self.flow, attempt.groups, attempt.program)
        return attempt.program

    def _planned(self, program: Path) -> PlannedCell:
        data = program.read_bytes()
        model = self.planned.model
        shown = f"{model.name}.{self.planned.target.name}.mlir"
        resumed = Model(model.name, str(program), shown, hashlib.sha256(data).hexdigest(), len(data))
        return replace(self.planned, model=resumed, user_flags=(*self.planned.user_flags, RESUME))

    def _measured(self, planned: PlannedCell) -> Cell:
        key = cell_key(self.kit.toolchain.info.digest, planned)
        known = self.cache.load(key)
        if known is not None:
            return known
        result = compile_directly(self.kit, planned.argv, Source(planned.model.name, Path(planned.model.path)))
        cell = cell_of(planned, result, None, self.assembler)
        self.cache.store(key, cell)
        return cell


# Which groups of a program are worth folding: what compiles, and of that what makes the artifact smaller.
#
# What is exact is only the artifact of the groups that are kept in the end; the sizes of dispatches decide what to try.


Try = Callable[[Sequence[Group]], Attempt]
_MOST_HALVES = 4
"""A group that fails is halved; what fails of fewer executables is left."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What is left of a search.

    Attributes:
        attempt: with the groups that are kept; one with none where nothing is.
        left: groups that are not, and why.
    """

    attempt: Attempt
    left: tuple[LeftFamily, ...]


def search(groups: Groups, attempt: Try, banned: Collection[Group] = ()) -> Searched:
    """The groups that make the artifact smaller, of those that compile; `attempt` compiles and measures."""
    tried: list[Attempt] = [attempt(NOTHING)]
    unfolded: list[LeftFamily] = []
    for level in FOLD_KINDS:
        allowed = permitted(groups.groups[level], banned)
        if allowed and not any(sorted(allowed) == sorted(one.groups) for one in tried):
            working, failed = compiling(allowed, attempt)
            unfolded += [LeftFamily(level, group, why) for group, why in failed.items()]
            tried.append(working)
    best, without = gaining(choices(groups, tried), attempt, groups.elements)
    unfolded += [LeftFamily(kind_of(groups, group) or FOLD_KINDS[-1], group, why) for group, why in without.items()]
    folded = {name for group in best.groups for name in group}
    families = {one.members: one for one in reversed(unfolded) if not folded.issuperset(one.members)}
    families.update(_outdone(groups, banned, folded.union(*families)))
    return Searched(best, tuple(reversed(families.values())))


def _outdone(groups: Groups, banned: Collection[Group], spoken: Collection[str]) -> dict[Group, LeftFamily]:
    """Groups of which nothing is folded and nothing else is said."""
    return {
        group: LeftFamily(kind_of(groups, group) or level, group, "another way to fold what it is a part of saves more")
        for level in FOLD_KINDS
        for group in permitted(groups.groups[level], banned)
        if set(group).isdisjoint(spoken)
    }


def kind_of(groups: Groups, group: Group) -> str | None:
    """The strictest level at which these executables, which may be a part of a group, are one; None where at none."""
    for level in FOLD_KINDS:
        if any(set(group) <= set(whole) for whole in groups.groups[level]):
            return level
    return None


def permitted(groups: Sequence[Group], banned: Collection[Group]) -> list[Group]:
    """The groups without the executables of banned ones that they hold, as far as two and more are left."""
    result = []
    for group in groups:
        bad = {name for one in banned if set(one) <= set(group) for name in one}
        rest = tuple(name for name in group if name not in bad)
        if len(rest) > 1:
            result.append(rest)
    return result


def compiling(groups: Sequence[Group], attempt: Try) -> tuple[Attempt, dict[Group, str]]:
    """The attempt with as many of the groups as compile together, and why the others do not."""
    tried = attempt(groups)
    if tried.cell.measured:
        refused = {one.members: one.why for one in tried.left}
        return (attempt([group for group in groups if group not in refused]) if refused else tried), refused
    why = reason_of(tried)
    if len(groups) == 1:
        # the two halves of a group that fails; none of it where they are too small, or fail as well
        group = groups[0]
        if len(group) < _MOST_HALVES:
            return attempt(NOTHING), {group: why}
        halves = [group[: len(group) // 2], group[len(group) // 2 :]]
        working, failed = compiling(halves, attempt) if attempt(halves[:1]).cell.measured else (attempt(NOTHING), {})
        return working, failed or ({} if working.groups else {group: why})
    # groups whose first member the compiler's message names; none where it names all
    message = tried.cell.failure.message if tried.cell.failure else ""
    named = [group for group in groups if f"{group[0]}_" in message]
    culprits = named if len(named) < len(groups) else []
    first = [group for group in groups if group not in culprits] if culprits else list(groups[: len(groups) // 2])
    second = [group for group in groups if group not in first]
    parts = [compiling(part, attempt) for part in (first, second) if part]
    failed = {group: reason for _, reasons in parts for group, reason in reasons.items()}
    return _together([part for part, _ in parts], attempt, failed)


def _together(parts: Sequence[Attempt], attempt: Try, failed: dict[Group, str]) -> tuple[Attempt, dict[Group, str]]:
    """The groups of all parts; where they compile apart only, those of the first."""
    whole = attempt([group for part in parts for group in part.groups])
    if whole.cell.measured:
        return whole, failed
    lost = {group: f"beside the other groups: {reason_of(whole)}" for part in parts[1:] for group in part.groups}
    return parts[0], {**failed, **lost}


def reason_of(failed: Attempt) -> str:
    """Why it does not compile, without the place: cells of one reason are told together."""
    failure = failed.cell.failure
    return reason(failure.message) if failure else failed.cell.status


@dataclass(frozen=True, slots=True)
class Choice:
    """Executables that could be one, and the ways to fold them, that with the smallest code first.

    Attributes:
        apart_bytes: of their code as they are; None where it is not known.
        ways: groups, and the bytes of code that are left.
    """

    members: Group
    apart_bytes: int | None
    ways: tuple[tuple[int | None, tuple[Group, ...]], ...]

    @property
    def is_clear(self) -> bool:
        """True where less than half of the code is left: then the artifact is smaller, unless the code is tiny."""
        left_bytes = self.ways[0][0]
        return self.apart_bytes is not None and left_bytes is not None and 2 * left_bytes < self.apart_bytes

    @property
    def hopeless(self) -> str:
        """Why no way is worth a compile of its own; empty where one may be."""
        left_bytes = self.ways[0][0]
        if self.apart_bytes is None or left_bytes is None or left_bytes < self.apart_bytes:
            return ""
        return "folding it saves no code"


def choices(groups: Groups, tried: Sequence[Attempt]) -> list[Choice]:
    """Groups that compile, those that share an executable together, with what the attempts say of them.

    `tried`: the first with nothing folded.
    """
    sizes = [_sizes(one.cell) for one in tried]
    result = []
    for names in _joined([group for one in tried for group in one.groups]):
        members = tuple(name for name in groups.entries if name in names)
        entries = [groups.entries[name] for name in members]
        amounts = [_amount(size, entries) for size in sizes]
        inside = [tuple(group for group in one.groups if set(group) <= set(members)) for one in tried]
        ways = dict.fromkeys(zip(amounts[1:], inside[1:], strict=True))
        ordered = sorted((way for way in ways if way[1]), key=lambda way: (way[0] is None, way[0] or 0))
        result.append(Choice(members, amounts[0], tuple(ordered)))
    return result


def gaining(choices: Sequence[Choice], attempt: Try, elements: Mapping[str, int]) -> tuple[Attempt, dict[Group, str]]:
    """The attempt with the ways that make the artifact smaller, and what the others give.

    What clearly does is taken at once, if all of it does; each of the others is compiled beside what is kept by then,
    and where it does not gain as a whole, its small and its large executables apart.

    `elements`: executable → how many its largest tensor has.
    """
    clear = [one for one in choices if one.is_clear]
    best, without = attempt([group for one in clear for group in one.ways[0][1]]), {}
    doubtful = [one for one in choices if one not in clear]
    if not is_smaller(best, plain := attempt(NOTHING)):
        best, doubtful = plain, list(choices)
    for one in sorted(doubtful, key=lambda one: (one.apart_bytes is None, -(one.apart_bytes or 0), one.members)):
        better = one.hopeless or _better(one, best, attempt)
        if isinstance(better, str):
            result = best
            for half in halves(one.members, elements):
                with_it = attempt([*result.groups, half])
                if is_smaller(with_it, result):
                    result = with_it
            better = (result if result is not best else None) or better
        if isinstance(better, str):
            without[one.members] = better
        else:
            best = better
    return best, without


def _better(one: Choice, best: Attempt, attempt: Try) -> Attempt | str:
    tried = [attempt([*best.groups, *groups]) for _, groups in one.ways]
    sizes = [(with_it.artifact_bytes, at) for at, with_it in enumerate(tried) if with_it.artifact_bytes is not None]
    if not sizes or best.artifact_bytes is None:
        return "it does not compile beside the others"
    size, at = min(sizes)
    if size < best.artifact_bytes:
        return tried[at]
    return "the artifact gets no smaller with it"


def is_smaller(one: Attempt, other: Attempt) -> bool:
    """Whether its artifact is; not where one of both has none."""
    sizes = one.artifact_bytes, other.artifact_bytes
    return sizes[0] is not None and sizes[1] is not None and sizes[0] < sizes[1]


def halves(group: Group, elements: Mapping[str, int]) -> list[Group]:
    """A group's small and its large executables, in the program's order; none for a group of few."""
    if len(group) < _MOST_HALVES:
        return []
    by_size = sorted(group, key=lambda name: (elements.get(name, 0), group.index(name)))
    small = set(by_size[: len(group) // 2])
    return [tuple(name for name in group if (name in small) is is_small) for is_small in (True, False)]


def _joined(groups: Sequence[Group]) -> list[set[str]]:
    """The groups, those that share an executable as one: levels are one inside of the other, halves are not."""
    result: list[set[str]] = []
    for group in groups:
        touching = [one for one in result if not one.isdisjoint(group)]
        result = [one for one in result if one not in touching] + [set(group).union(*touching)]
    return result


def _sizes(cell: Cell) -> dict[str, int | None]:
    """Entry point, as any target spells it → bytes of its executable where it has one of its own, else of its code."""
    return {
        _spelled(row.name): row.code_bytes if row.executable_bytes is None else row.executable_bytes
        for row in cell.dispatches
    }


def _amount(sizes: Mapping[str, int | None], entries: Sequence[str]) -> int | None:
    """Bytes of those entry points that are left; None where one is not known, or none is found."""
    amounts = [sizes[name] for name in map(_spelled, entries) if name in sizes]
    known = [size for size in amounts if size is not None]
    return sum(known) if amounts and len(known) == len(amounts) else None


def _spelled(name: str) -> str:
    return UNSPEAKABLE.sub("_", name)
