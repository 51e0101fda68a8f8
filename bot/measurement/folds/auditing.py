"""From a request to its fold audit: every cell is folded, run where this machine can, timed, and told."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from bot.compiler.caches.cell_cache import CellCache
from bot.compiler.folding import FOLD_WORKER, Group
from bot.compiler.schedule import Task, run_all
from bot.compiler.tools.bindings import Bindings
from bot.compiler.tools.ptxas import Assembler
from bot.compiler.tools.ptxas import installed as assembler_here
from bot.config.configuration import Config
from bot.core.folds.fold_options import FoldOptions
from bot.core.folds.fold_values import FOLD_SCHEMA, FoldAudit, Price
from bot.core.values.planned import PlannedCell
from bot.core.values.snapshot import Cell, CellKey
from bot.measurement.folds.cell_audit import Audited, FoldTools, again, audit
from bot.measurement.folds.checking import Bench, affordable, bench_of, differing, without
from bot.measurement.folds.counting import model_of
from bot.measurement.folds.telling import Ran, cell_told, news_of, rejected
from bot.measurement.prepare import Request, Show, measured, prepare, repository_at
from bot.measurement.run import IR_WORKER, SidePlan, open_kit
from bot.measurement.running.runtime import MISSING, Runtime, installed, machine
from bot.system.files import is_writable, temporary_directory
from bot.system.processes import Cancel, Meter

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
        ran = dict.fromkeys(audits, Ran(None, reason, None, reason))
        if runtime is not None:
            checks = _Checks(tools, audits, runtime, options, show, cancel)
            checks.all()
            audits, ran = checks.found, checks.ran
        cells = [cell_told(one, ran[key], request.out) for key, one in audits.items()]
        models = [
            model_of(tools, list(of), cells) for _, of in groupby(audits.values(), lambda one: one.cell.key.model)
        ]
    return FoldAudit(
        FOLD_SCHEMA,
        compiler=plan.toolchain.info,
        flags=side.flags,
        machine=machine(runtime) if runtime is not None and any(one.equal is not None for one in ran.values()) else "",
        max_slowdown=options.max_slowdown,
        models=tuple(models),
        cells=tuple(cells),
    )


@contextmanager
def _tools(plan: SidePlan, request: Request, config: Config, cancel: Cancel) -> Iterator[FoldTools]:
    toolchain, timeout = plan.toolchain, config.timeout_seconds
    with (
        temporary_directory("fold-") as scratch,
        closing(Bindings(FOLD_WORKER, toolchain.bindings, toolchain.no_bindings, cancel)) as folding,
        open_kit("head", toolchain, IR_WORKER, scratch, timeout, cancel, Meter()) as (kit, importer),
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
    found: dict[CellKey, Audited]
    runtime: Runtime
    options: FoldOptions
    show: Show
    cancel: Cancel
    ran: dict[CellKey, Ran] = field(default_factory=dict)

    def all(self) -> None:
        """Run what can be run; what gives other outputs somewhere is folded nowhere."""
        with temporary_directory("fold-data-") as data:
            for model in sorted({key.model for key in self.found}):
                keys = [key for key in self.found if key.model == model]
                benches = {key: self._bench(key, data / model) for key in keys}
                self._equal(keys, benches)
                for key, bench in benches.items():
                    if isinstance(bench, Bench) and self.ran[key].equal:
                        # take the time; where a slowdown is the limit, keep the groups within it
                        one, limit = self.found[key], self.options.max_slowdown
                        assert one.kept is not None  # noqa: S101 - a bench is of what was folded
                        self.show.say(f"{key}: is timed before and after folding")
                        if limit is None:
                            price = bench.price(one.kept)
                        else:
                            kept, left, price = affordable(bench, one, limit)
                            self.found[key] = without(one, kept, left)
                            if kept is not one.kept:
                                self.ran[key] = self._compared(self.found[key], bench)[0]
                        told = self.ran[key]
                        known = price if isinstance(price, Price) else None
                        self.ran[key] = replace(told, price=known, price_note="" if known else str(price))
                shutil.rmtree(data / model, ignore_errors=True)

    def _bench(self, key: CellKey, data: Path) -> Bench | str:
        one = self.found[key]
        if one.kept is None or not one.kept.groups:
            return one.failure or NOTHING_FOLDED
        return bench_of(self.tools, one, self.runtime, data, self.cancel)

    def _equal(self, keys: Sequence[CellKey], benches: Mapping[CellKey, Bench | str]) -> None:
        banned: dict[Group, str] = {}
        while True:
            worse = {}
            for key in keys:
                self.ran[key], bad = self._compared(self.found[key], benches[key])
                worse.update(dict.fromkeys(bad, f"it gives other outputs on {key.target}"))
            if not worse.keys() - banned.keys():
                return
            banned.update(worse)
            for key in keys:
                self.found[key] = without(again(self.found[key], banned), None, rejected(self.found[key], banned))

    def _compared(self, one: Audited, bench: Bench | str) -> tuple[Ran, Mapping[Group, str]]:
        if isinstance(bench, str):
            return Ran(None, bench, None, bench), {}
        if one.kept is None or not one.kept.groups:
            return Ran(None, NOTHING_FOLDED, None, NOTHING_FOLDED), {}
        self.show.say(f"{one.cell.key}: runs before and after folding")
        told = bench.equal(one.kept)
        bad = differing(bench, one, one.kept.groups) if told.equal is False else {}
        for group, why in bad.items():
            self.show.say(f"{one.cell.key}: {group[0]} and {len(group) - 1} more give other outputs as one: {why}")
        return Ran(told.equal, told.equal_note, None, "outputs are not known to be equal"), bad
