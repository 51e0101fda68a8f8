"""How far each step takes a model: what is left of its dispatch regions today, and what could be."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from msgspec import structs

from bot.compiler.bindings import IR_WORKER, working
from bot.compiler.cell_cache import CellCache
from bot.compiler.compiler import Session
from bot.compiler.compiling import Source
from bot.compiler.iree import open_kit
from bot.compiler.ptxas import Assembler
from bot.compiler.ptxas import installed as assembler_here
from bot.compiler.rewriting import FOLD_WORKER, Group, Groups, flow_of, groups_of
from bot.compiler.schedule import Task, run_all
from bot.config.configuration import Config
from bot.core.fold import (
    FAILED,
    FOLD_KINDS,
    FOLD_SCHEMA,
    BeforeAfter,
    Bound,
    FoldAudit,
    FoldCell,
    FoldedFamily,
    FoldModel,
    FoldOptions,
    LeftFamily,
    Price,
    Run,
)
from bot.core.planned import PlannedCell
from bot.core.snapshot import Cell, CellKey
from bot.core.spec import Sought
from bot.errors import MalformedBinary
from bot.explain.whole_models import fold_counts
from bot.running.runner import MISSING, Runtime, installed, machine
from bot.study.fold_checking import Audited, Bench, FoldTools, affordable, again, audit, bench_of, differing, without
from bot.study.fold_search import kind_of
from bot.study.prepare import Request, Show, measured, prepare, repository_at
from bot.study.run import SidePlan
from bot.system.files import is_writable, make_directory, temporary_directory
from bot.system.processes import Cancel, Meter

NOTHING_INLINED = "--iree-flow-inline-constants-max-byte-length=0"
"""The compiler inlines no constant into a dispatch, so that more of them are equal."""


def model_of(tools: FoldTools, audits: Sequence[Audited], cells: Sequence[FoldCell]) -> FoldModel:
    """The counts of one model, by the first of its cells whose program could be read."""
    name = audits[0].cell.key.model
    one = next((each for each in audits if each.groups is not None), audits[0])
    today, apart = one.groups, _not_inlined(tools, one)
    folded = [cell.executables.after for cell in cells if cell.model == name and cell.equal is not False]
    measured = one.cell.measured
    return FoldModel(
        model=name,
        regions=one.cell.value("dispatch_regions") if measured else None,
        today=one.cell.value("executables") if measured else None,
        not_inlined=count(apart),
        shapes_erased=apart.classes.shapes if apart else None,
        constants_erased=today.classes.constants if today else None,
        both_erased=today.classes.both if today else None,
        folded=min((number for number in folded if number is not None), default=None),
    )


def count(groups: Groups | None) -> int | None:
    """How many executables a program has."""
    return len(groups.entries) + len(groups.unfit) if groups else None


def _not_inlined(tools: FoldTools, one: Audited) -> Groups | None:
    """The same model's program where no constant is inlined; None where it cannot be had."""
    if one.groups is None or one.source is None:
        return None
    flow = tools.scratch / f"{one.cell.key.model}.not-inlined.mlir"
    argv = (*one.planned.argv, NOTHING_INLINED)
    try:
        if flow_of(tools.kit, argv, Source(one.planned.model.name, one.source), flow) is not None:
            return None
        return groups_of(tools.folding, flow)
    except MalformedBinary:
        return None


# A cell's audit as what is told of it; its folded program goes to the output directory.


FOLDER = "folded"
"""Of the folded programs, beside `fold.json`."""


def fold_cell(one: Audited, run: Run, out: Path) -> FoldCell:
    """The audit of one cell as `fold.json` has it."""
    cell, attempt = one.cell, one.best
    counts = fold_counts(cell)
    surplus = counts.surplus_executables if counts else None
    is_folded = attempt is not None and bool(attempt.groups)
    row = FoldCell(
        model=cell.key.model,
        target=cell.key.target,
        state=_state(one),
        executables=_both(one, "executables"),
        artifact_bytes=_both(one, "artifact_bytes"),
        executable_bytes=_both(one, "executable_bytes"),
        equal=run.equal,
        folded=_folded(one),
        left=one.left,
        resumed_bytes=one.attempts.at(()).artifact_bytes if one.attempts is not None else None,
        bound=None if surplus is None else Bound(surplus, counts.surplus_bytes if counts else None),
        equal_note=run.equal_note,
        price=run.price,
        price_note=run.price_note,
        note=one.failure,
    )
    if attempt is None or one.attempts is None or not is_folded:
        return row
    module = f"{FOLDER}/{cell.key.model}.{cell.key.target}.mlir"
    make_directory(out / FOLDER)
    shutil.copyfile(one.attempts.program(attempt), out / module)
    planned = replace(attempt.planned, model=replace(attempt.planned.model, shown=module))
    return structs.replace(row, command=planned.command(), module=module)


def _state(one: Audited) -> str:
    if one.cell.status == "unsupported":
        return "unsupported"
    if one.best is None or not one.best.cell.measured:
        return FAILED
    return "folded" if one.best.groups else "nothing-to-fold"


def _both(one: Audited, metric: str) -> BeforeAfter:
    """A metric before and after; what is not folded stays what it was."""
    before = one.cell.value(metric) if one.cell.measured else None
    if one.best is None or not one.best.groups:
        return BeforeAfter(before, before if one.best is not None else None)
    return BeforeAfter(before, one.best.cell.value(metric))


def _folded(one: Audited) -> tuple[FoldedFamily, ...]:
    if one.best is None or one.groups is None:
        return ()
    return tuple(
        FoldedFamily(kind_of(one.groups, group.members) or FOLD_KINDS[-1], group.members, group.operands)
        for group in one.best.folded
    )


def rejected(one: Audited, banned: Mapping[Group, str]) -> tuple[LeftFamily, ...]:
    """Groups of a cell that are not folded as they change outputs, here or on another target."""
    if one.groups is None:
        return ()
    rows = [(kind_of(one.groups, group), group, why) for group, why in banned.items()]
    return tuple(LeftFamily(kind, group, why) for kind, group, why in rows if kind is not None)


def news_of(one: Audited) -> str:
    """One line while it goes on."""
    if one.best is None:
        return f"{one.cell.key}: not folded: {one.failure}"
    if not one.best.groups:
        return f"{one.cell.key}: nothing to fold"
    counts, sizes = _both(one, "executables"), _both(one, "artifact_bytes")
    changes = [f"{pair.before:,} → {pair.after:,} {unit}" for pair, unit in ((counts, "executables"), (sizes, "B"))
            if pair.before is not None and pair.after is not None]  # fmt: skip
    return f"{one.cell.key}: {', '.join(changes)}"


# From a request to its fold audit: every cell is folded, run where this machine can, timed, and told.


NOT_ASKED = "nothing was to be run"
NOTHING_FOLDED = "nothing is folded"
"""The reason why outputs are not compared, nor anything timed, where the artifact stays what it was."""


def audited(request: Request, config: Config, options: FoldOptions, show: Show, cancel: Cancel) -> FoldAudit:
    """Fold every cell that the request selects; `request.specs["head"]` names the compiler."""
    repository = repository_at(request.config, cancel)
    plan = prepare("head", request.specs["head"], request, config, repository, show, cancel)
    side = measured([plan], {}, request, config, show, cancel)["head"]
    runtime = installed() if options.run else None
    with _tools(plan, request, config, cancel) as tools:
        planned = {cell.key: cell for cell in plan.cells}
        audits = _all(tools, [(planned[cell.key], cell) for cell in side.cells], request, show, cancel)
        reason = MISSING if options.run else NOT_ASKED
        runs = dict.fromkeys(audits, Run(None, reason, None, reason))
        if runtime is not None:
            checks = _Checks(tools, audits, runtime, options, show, cancel)
            checks.all()
            audits, runs = checks.audits, checks.runs
        cells = [fold_cell(one, runs[key], request.out) for key, one in audits.items()]
        models = [
            model_of(tools, list(of), cells) for _, of in groupby(audits.values(), lambda one: one.cell.key.model)
        ]
    return FoldAudit(
        FOLD_SCHEMA,
        compiler=plan.toolchain.info,
        flags=side.flags,
        machine=machine(runtime) if runtime is not None and any(one.equal is not None for one in runs.values()) else "",
        max_slowdown=options.max_slowdown,
        models=tuple(models),
        cells=tuple(cells),
    )


@contextmanager
def _tools(plan: SidePlan, request: Request, config: Config, cancel: Cancel) -> Iterator[FoldTools]:
    toolchain, timeout = plan.toolchain, config.timeout_seconds
    with (
        temporary_directory("fold-") as scratch,
        closing(working(FOLD_WORKER, toolchain, cancel)) as folding,
        open_kit(toolchain, IR_WORKER, Session("head", scratch, timeout, cancel, Meter())) as (kit, importer),
    ):
        cache = CellCache(request.cache, is_writable(request.cache.absolute()))
        yield FoldTools(kit, folding, importer, cache, Assembler(cancel, timeout, assembler_here()), scratch)


def _all(
    tools: FoldTools, cells: Sequence[tuple[PlannedCell, Cell]], request: Request, show: Show, cancel: Cancel
) -> dict[CellKey, Audited]:
    audits: dict[CellKey, Audited] = {}

    def run(planned: PlannedCell, cell: Cell) -> None:
        one = audit(tools, planned, cell)
        audits[cell.key] = one
        show.say(news_of(one))

    tasks = [Task(planned.cost, f"fold {cell.key}", partial(run, planned, cell)) for planned, cell in cells]
    with show.progress() as progress:
        run_all(tasks, request.jobs, cancel.set, progress)
    return {key: audits[key] for key in sorted(audits)}


@dataclass
class _Checks:
    """All cells, as checking leaves them; nothing else runs beside it, as it takes times."""

    tools: FoldTools
    audits: dict[CellKey, Audited]
    runtime: Runtime
    options: FoldOptions
    show: Show
    cancel: Cancel
    runs: dict[CellKey, Run] = field(default_factory=dict)

    def all(self) -> None:
        """Run what can be run; what gives other outputs somewhere is folded nowhere."""
        with temporary_directory("fold-data-") as data:
            for model in sorted({key.model for key in self.audits}):
                keys = [key for key in self.audits if key.model == model]
                benches = {key: self._bench(key, data / model) for key in keys}
                self._equal(keys, benches)
                for key, bench in benches.items():
                    if isinstance(bench, Bench) and self.runs[key].equal:
                        # take the time; where a slowdown is the limit, keep the groups within it
                        one, limit = self.audits[key], self.options.max_slowdown
                        assert one.best is not None  # noqa: S101 - a bench is of what was folded
                        self.show.say(f"{key}: is timed before and after folding")
                        if limit is None:
                            price = bench.price(one.best)
                        else:
                            best, left, price = affordable(bench, one, limit)
                            self.audits[key] = without(one, best, left)
                            if best is not one.best:
                                self.runs[key] = self._compared(self.audits[key], bench)[0]
                        known = price if isinstance(price, Price) else None
                        self.runs[key] = replace(self.runs[key], price=known, price_note="" if known else str(price))
                shutil.rmtree(data / model, ignore_errors=True)

    def _bench(self, key: CellKey, data: Path) -> Bench | str:
        one = self.audits[key]
        if one.best is None or not one.best.groups:
            return one.failure or NOTHING_FOLDED
        return bench_of(self.tools, one, self.runtime, data, self.cancel)

    def _equal(self, keys: Sequence[CellKey], benches: Mapping[CellKey, Bench | str]) -> None:
        banned: dict[Group, str] = {}
        while True:
            worse = {}
            for key in keys:
                self.runs[key], bad = self._compared(self.audits[key], benches[key])
                worse.update(dict.fromkeys(bad, f"it gives other outputs on {key.target}"))
            if not worse.keys() - banned.keys():
                return
            banned.update(worse)
            for key in keys:
                self.audits[key] = without(again(self.audits[key], banned), None, rejected(self.audits[key], banned))

    def _compared(self, one: Audited, bench: Bench | str) -> tuple[Run, Mapping[Group, str]]:
        if isinstance(bench, str):
            return Run(None, bench, None, bench), {}
        if one.best is None or not one.best.groups:
            return Run(None, NOTHING_FOLDED, None, NOTHING_FOLDED), {}
        self.show.say(f"{one.cell.key}: runs before and after folding")
        equality = bench.equal(one.best)
        bad = differing(bench, one, one.best.groups) if equality.equal is False else {}
        for group, why in bad.items():
            self.show.say(f"{one.cell.key}: {group[0]} and {len(group) - 1} more give other outputs as one: {why}")
        return Run(equality.equal, equality.equal_note, None, "outputs are not known to be equal"), bad


# What an audit is made with: the request with its compiler named, and where that compiler's wheels are.


def audit_request(
    request: Request, config: Config, sought: Sought, say: Callable[[str], None]
) -> tuple[Request, Config]:
    """The request with the compiler as its head; the configuration with the places where that is looked for."""
    for note in sought.notes:
        say(note)
    if sought.places.no_index:
        say("--no-index of the requirements file is not followed here: the index counts as well")
    links = tuple(dict.fromkeys((*sought.places.find_links, *config.compiler.find_links)))
    config = replace(config, compiler=replace(config.compiler, find_links=links))
    return replace(request, specs={**request.specs, "head": sought.spec}), config
