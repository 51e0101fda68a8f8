"""One cell's audit: its program is taken at the end of the flow phase, and searched for what is worth folding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.compiler.bindings import Bindings, Importer
from bot.compiler.cell_cache import CellCache
from bot.compiler.compiling import Kit, Source, artifact_of, module_of
from bot.compiler.diagnostics import reason
from bot.compiler.ptxas import Assembler
from bot.compiler.rewriting import Group, Groups, flow_of, groups_of
from bot.core.fold import FOLD_KINDS, LeftFamily, Price
from bot.core.planned import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.program import FAMILY_KINDS
from bot.core.snapshot import Cell, Failure
from bot.errors import MalformedBinary
from bot.readers.ir_facts import Interface, interface, probes
from bot.running.comparing import NOTHING, Equality, within
from bot.running.runner import Runner, Runtime
from bot.study.fold_search import Attempt, Attempts, halves, is_smaller, kind_of, reason_of, search
from bot.system.processes import Cancel

NOT_FOLDED = {
    "operand-order": "executables that take their operands in another order are not folded",
    "extra-operation": "executables that do something more are not folded",
    "different-fusion": "executables of other operations are not folded",
}


@dataclass(frozen=True, slots=True)
class FoldTools:
    """What an audit works with, for all cells of a side."""

    kit: Kit
    folding: Bindings
    importer: Importer
    cache: CellCache
    assembler: Assembler
    scratch: Path


@dataclass(frozen=True, slots=True)
class Audited:
    """One cell's audit.

    Attributes:
        cell: as its printed command gives it.
        planned: with the flag that lifts the compiler's stack gate where that refused it.
        source: its model's file.
        failure: why its program could not be folded at all; None where it could be.
        best: with what is worth folding; None where there is a failure.
    """

    cell: Cell
    planned: PlannedCell
    source: Path | None = None
    failure: str = ""
    attempts: Attempts | None = None
    groups: Groups | None = None
    best: Attempt | None = None
    left: tuple[LeftFamily, ...] = ()


def audit(tools: FoldTools, planned: PlannedCell, cell: Cell) -> Audited:
    """Fold what is worth it of one cell."""
    if cell.status == "over-stack-limit":
        planned = replace(planned, user_flags=(*planned.user_flags, LIFTED_LIMIT_FLAG))
    if not cell.measured:
        return Audited(cell, planned, failure=reason(cell.failure.message) if cell.failure else cell.status)
    source = tools.importer.source(planned.model)
    if isinstance(source, Failure):
        return Audited(cell, planned, failure=source.first_line)
    flow = tools.scratch / f"{planned.model.name}.{planned.target.name}.mlir"
    failed = flow_of(tools.kit, planned.argv, Source(planned.model.name, source), flow)
    if failed is not None:
        return Audited(cell, planned, source, reason(failed.message))
    try:
        groups = groups_of(tools.folding, flow)
    except MalformedBinary as error:
        return Audited(cell, planned, source, str(error))
    attempts = Attempts(planned, flow, tools.kit, tools.folding, tools.cache, tools.assembler)
    return again(Audited(cell, planned, source, attempts=attempts, groups=groups), ())


def again(one: Audited, banned: Collection[Group]) -> Audited:
    """The same cell, searched without some groups."""
    if one.attempts is None or one.groups is None:
        return one
    result = search(one.groups, one.attempts.at, banned)
    if not result.attempt.cell.measured:
        return replace(one, best=None, failure=f"resumed with nothing folded: {reason_of(result.attempt)}")
    return replace(one, best=result.attempt, left=(*result.left, *_families_left(one.cell, one.groups)))


def _families_left(cell: Cell, groups: Groups) -> list[LeftFamily]:
    grouped = {name for level in groups.groups.values() for group in level for name in group}
    return [
        LeftFamily(family.kind, family.members, _why(family.kind, family.members, groups))
        for family in cell.families
        if family.kind in FAMILY_KINDS and grouped.isdisjoint(family.members)
    ]


def _why(kind: str, members: tuple[str, ...], groups: Groups) -> str:
    unfit = next((name for name in members if name in groups.unfit), None)
    if unfit is not None:
        return groups.unfit[unfit]
    if not all(name in groups.entries for name in members):
        return "its executables have other names in the program that is folded"
    return NOT_FOLDED.get(
        kind, "they differ in more than constants, offsets and static dimensions, such as an attribute"
    )


# Whether folded programs still give what they gave, and how fast: groups that fail that are not folded.


RUN_SECONDS = 120
"""How long a run may take: an interpreter is minutes over what a processor does in a second."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What runs the artifacts of one cell."""

    tools: FoldTools
    attempts: Attempts
    runtime: Runtime
    data: Path
    cancel: Cancel
    runner: Runner
    before: Path

    def artifact(self, attempt: Attempt) -> Path | str:
        """The artifact of an attempt, or why there is none."""
        out = attempt.program.with_suffix(".vmfb")
        if not out.is_file():
            source = Source(attempt.planned.model.name, self.attempts.program(attempt))
            if failed := artifact_of(self.tools.kit, attempt.planned.argv, source, out):
                return failed.first_line
        return out

    def equal(self, attempt: Attempt) -> Equality:
        """Whether an attempt gives the outputs of the printed command's artifact."""
        after = self.artifact(attempt)
        if isinstance(after, str):
            return Equality(None, after)
        equality = self.runner.outputs_equal(self.before, after)
        if equality.equal is not None or not equality.equal_note.startswith(NOTHING):
            return equality
        probed = self._probed(attempt)
        return probed if isinstance(probed, Equality) else equality

    def _probed(self, attempt: Attempt) -> Equality | str:
        """The same of the results of all dispatches, which both programs give beside their own; or why not."""
        texts = self.attempts.flow, self.attempts.program(attempt)
        artifacts, signature = [], None
        for text in texts:
            probed = text.with_suffix(".probed.mlir")
            try:
                probes(self.tools.folding.ask("probe", flow=str(text), probed=str(probed)) or "")
                signature = signature or interface(self.tools.folding.ask("interface", flow=str(probed)) or "")
            except MalformedBinary as error:
                return str(error)
            artifact = probed.with_suffix(".vmfb")
            source = Source(attempt.planned.model.name, probed)
            if failed := artifact_of(self.tools.kit, attempt.planned.argv, source, artifact):
                return failed.first_line
            artifacts.append(artifact)
        if signature is None:
            return "nothing was probed"
        equality = runner_of(self.tools, self.runtime, signature, self.data, self.cancel).outputs_equal(*artifacts)
        return equality._replace(equal_note=f"results of all dispatches: {equality.equal_note}")

    def price(self, attempt: Attempt) -> Price | str:
        """What an attempt costs in run time."""
        after = self.artifact(attempt)
        return after if isinstance(after, str) else self.runner.price(self.before, after)


def runner_of(tools: FoldTools, runtime: Runtime, signature: Interface, data: Path, cancel: Cancel) -> Runner:
    """What runs programs of this interface."""

    def compiled(artifact: Path, text: str) -> Path | str:
        return module_of(tools.kit, artifact, text)

    return Runner(runtime, signature, data, cancel, timeout_seconds=RUN_SECONDS, compiled=compiled)


def bench_of(tools: FoldTools, one: Audited, runtime: Runtime, data: Path, cancel: Cancel) -> Bench | str:
    """What runs this cell here, or why nothing does."""
    if one.attempts is None or one.source is None:
        return one.failure
    answer = tools.folding.ask("interface", flow=str(one.attempts.flow))
    if answer is None:
        return tools.folding.reason or "this compiler has no MLIR bindings"
    try:
        runner = runner_of(tools, runtime, interface(answer), data, cancel)
    except MalformedBinary as error:
        return str(error)
    if runner.reason is not None:
        return runner.reason
    before = one.attempts.flow.with_suffix(".before.vmfb")
    failed = artifact_of(tools.kit, one.planned.argv, Source(one.planned.model.name, one.source), before)
    return failed.first_line if failed else Bench(tools, one.attempts, runtime, data, cancel, runner, before)


def differing(bench: Bench, one: Audited, groups: Sequence[Group]) -> dict[Group, str]:
    """Which groups, each folded alone, give other outputs, and how; all of them where only together they do."""
    if one.attempts is None:
        return {}
    equalities = {group: bench.equal(one.attempts.at([group])) for group in groups}
    alone = {group: equality.equal_note for group, equality in equalities.items() if equality.equal is False}
    return alone or dict.fromkeys(groups, "not alone, but together with the others")


def affordable(
    bench: Bench, one: Audited, max_slowdown: float
) -> tuple[Attempt | None, tuple[LeftFamily, ...], Price | str]:
    """The groups that are worth their price, those that are not and why, and the price of those that are."""
    if one.best is None or one.attempts is None or one.groups is None:
        return None, (), one.failure
    price = bench.price(one.best)
    if isinstance(price, str) or within(price, max_slowdown):
        return one.best, (), price
    cheap: list[Cheap] = []
    refused: list[LeftFamily] = []
    for group in one.best.groups:
        parts, why = _affordable_parts(bench, one.attempts, group, one.groups.elements, max_slowdown)
        cheap += parts
        if dear := tuple(name for name in group if not any(name in part for _, part in parts)):
            refused.append(_left(one.groups, dear, why))
    best, dropped, price = together(cheap, one.attempts.at, bench.price, max_slowdown)
    return best, (*refused, *(_left(one.groups, group, _DEAR_TOGETHER) for group in dropped)), price


Cheap = tuple[float, Group]
"""The ratio that was measured for a group alone, and the group."""
_DEAR_TOGETHER = "alone it is worth its price, beside the other groups it is not"


def together(
    cheap: Sequence[Cheap],
    attempt: Callable[[Sequence[Group]], Attempt],
    price: Callable[[Attempt], Price | str],
    max_slowdown: float,
) -> tuple[Attempt, list[Group], Price | str]:
    """As many of the groups as are worth their price together, the dearest dropped first; those, and the price."""
    cheapest = sorted(cheap)
    dropped: list[Group] = []
    while cheapest:
        folded = attempt([group for _, group in cheapest])
        folded_price = price(folded)
        if not isinstance(folded_price, str) and within(folded_price, max_slowdown):
            return folded, dropped, folded_price
        dropped.append(cheapest.pop()[1])
    return attempt(()), dropped, "nothing is left that is worth its price"


def _left(groups: Groups, group: Group, why: str) -> LeftFamily:
    return LeftFamily(kind_of(groups, group) or FOLD_KINDS[-1], group, why)


def _affordable_parts(
    bench: Bench, attempts: Attempts, group: Group, elements: Mapping[str, int], max_slowdown: float
) -> tuple[list[Cheap], str]:
    whole_price = bench.price(attempts.at([group]))
    if not isinstance(whole_price, str) and within(whole_price, max_slowdown):
        return [(whole_price.ratio, group)], ""
    parts: list[Cheap] = []
    for half in halves(group, elements):
        alone, apart = attempts.at([half]), attempts.at(())
        price = bench.price(alone) if is_smaller(alone, apart) else ""
        if not isinstance(price, str) and within(price, max_slowdown):
            parts.append((price.ratio, half))
    return parts, _too_dear(whole_price, max_slowdown)


def _too_dear(price: Price | str, max_slowdown: float) -> str:
    if isinstance(price, str):
        return f"its price is not known: {price}"
    sure = "it is" if within(price, max_slowdown) is False else "it may be"
    return f"{sure} slower by more than {max_slowdown:.1%}"


def without(one: Audited, best: Attempt | None, left: Sequence[LeftFamily]) -> Audited:
    """The cell with more that is left, and other groups kept where these are given."""
    return replace(one, best=best or one.best, left=(*one.left, *left))
