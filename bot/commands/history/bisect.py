"""`bisect`: the first bad one among releases, wheels or snapshots, found in as few measurements as there can be.

Both ends are measured, then always the candidate in the middle of those that are left. Each is held against the good
end, so that what moved is compiled again to see whether that holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bot.commands.history.bounds import BisectOptions, bound_of, end_values, metric_of
from bot.commands.history.candidates import row_of
from bot.commands.history.findings import Hunted, found_step
from bot.commands.history.stored_line import stored_line
from bot.config.configuration import Config, load_config
from bot.core.history.bisecting import Bisection, Bound, Judged, Look, search, values_of
from bot.core.metrics import Metric
from bot.core.rules.spec import Places
from bot.core.values.planned import SIDES
from bot.core.values.snapshot import Cell, CellKey, Snapshot
from bot.errors import CompilerUnavailable, InputError, UsageError
from bot.measurement.prepare import (
    Request,
    Show,
    is_snapshot,
    load_snapshot,
    measured,
    planned,
    prepare,
    repository_at,
    require_writable,
    selected,
)
from bot.measurement.run import SidePlan
from bot.measurement.tracing.moved_dispatches import traced
from bot.render.terminal.bisect_text import look_words
from bot.system.processes import Cancel

_SHOWN_CELLS = 4


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The candidates in their order, from GOOD to BAD.

    Attributes:
        ends: the snapshots of both ends.
        at: measures or reads the one at a place between.
        specs: what names each one's compiler or snapshot; () for stored baselines, which no command line names.
        backward: True where GOOD is the newer end.
    """

    names: tuple[str, ...]
    ends: tuple[Snapshot, Snapshot]
    at: Callable[[int], Snapshot]
    specs: tuple[str, ...]
    backward: bool


def bisect(options: BisectOptions, request: Request, show: Show, cancel: Cancel) -> Bisection:
    """Find the first bad candidate; the report of its step and `bisect.json` go to `request.out`.

    Raises:
        UsageError: the ends are the same, swapped, or of no row; or not one cell is selected.
        NoVerdict: an end has no value.
    """
    metric = metric_of(options.metric)
    require_writable(request.out)
    config = load_config(request.config, models=not options.stored)
    with ExitStack() as stack:
        opened = _stored if options.stored else _specs
        row = opened(options, request, config, stack, show, cancel)
        key = _only_cell({cell.key for end in row.ends for cell in end.cells})
        hunt = _Hunt(metric, key, row, show)
        bound, rule = bound_of(options, metric, hunt.end_values(), config)
        hunted = hunt.followed(bound, rule)
        sides = dict(zip(SIDES, hunted.sides, strict=True))
        places = dict(zip(SIDES, (hunted.found.good, hunted.found.bad), strict=True))
        specs = {side: hunted.specs[place] for side, place in places.items()} if hunted.specs else {}
        repository = repository_at(request.config, cancel)
        plans = [
            prepare(side, spec, request, config, repository, show, cancel)
            for side, spec in specs.items()
            if not is_snapshot(spec)
        ]
        sides = traced(plans, sides, config, request, show, cancel)
        return found_step(replace(hunted, sides=(sides["base"], sides["head"])), request, config, cancel)


def _specs(
    options: BisectOptions, request: Request, config: Config, _stack: ExitStack, show: Show, cancel: Cancel
) -> _Candidates:
    """Compilers and snapshots that SPECs name; both ends are measured at once."""
    row = row_of(options.good, options.bad, options.among, Places(config.compiler.find_links), cancel)
    repository, specs = repository_at(request.config, cancel), row.specs
    known = {side: load_snapshot(Path(spec)) for side, spec in _ends(specs).items() if is_snapshot(spec)}
    if len(known) < len(_ends(specs)):
        _only_cell({cell.key for cell in planned(request, config, repository).cells})

    def plan(side: str, spec: str) -> SidePlan:
        return prepare(side, spec, request, config, repository, show, cancel)

    show.say(f"{len(specs)} candidates from {row.names[0]} to {row.names[-1]}")
    plans = [plan(side, spec) for side, spec in _ends(specs).items() if side not in known]
    ends = measured(plans, known, request, config, show, cancel)

    def at(place: int) -> Snapshot:
        if is_snapshot(specs[place]):
            return load_snapshot(Path(specs[place]))
        ready = plan("head", specs[place])
        return measured([ready], {"base": ends["base"]}, request, config, show, cancel)["head"]

    return _Candidates(row.names, (ends["base"], ends["head"]), at, specs, row.backward)


def _ends(specs: tuple[str, ...]) -> dict[str, str]:
    return {"base": specs[0], "head": specs[-1]}


def _stored(
    options: BisectOptions, request: Request, config: Config, stack: ExitStack, show: Show, cancel: Cancel
) -> _Candidates:
    top = repository_at(request.config, cancel).top
    if top is None:
        raise UsageError("is in no git repository", where="--stored", hint="run it in the repository of the baselines")
    line = stack.enter_context(stored_line(config, top, options.good, options.bad, cancel))
    show.say(f"{len(line.names)} stored commits from {line.names[0]} to {line.names[-1]}")
    ends = selected({"base": line.load(0), "head": line.load(len(line.names) - 1)}, request)
    return _Candidates(line.names, (ends["base"], ends["head"]), line.load, (), line.backward)


def _only_cell(keys: Collection[CellKey]) -> CellKey:
    if len(keys) == 1:
        return next(iter(keys))
    shown = ", ".join(map(str, sorted(keys)[:_SHOWN_CELLS])) + (", …" if len(keys) > _SHOWN_CELLS else "")
    what = f"{len(keys)} cells are meant: {shown}" if keys else "no cell is meant"
    raise UsageError(what, where="--model and --target", hint="name one model and one target")


class _Hunt:
    def __init__(self, metric: Metric, key: CellKey, row: _Candidates, show: Show) -> None:
        self._metric, self._key, self._row, self._show = metric, key, row, show
        self._last = len(row.names) - 1
        self._snapshots = {0: row.ends[0], self._last: row.ends[1]}
        self._good = self._cell(row.ends[0])
        self._looks: dict[int, Look] = {}

    def end_values(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What GOOD and BAD have; raises NoVerdict where one has nothing."""
        good, bad = (
            end_values(place, self._row.names[at], values_of(self._cell(end), self._good, self._metric.id))
            for place, at, end in zip(("GOOD", "BAD"), (0, self._last), self._row.ends, strict=True)
        )
        return good, bad

    def _cell(self, snapshot: Snapshot) -> Cell | None:
        return next((cell for cell in snapshot.cells if cell.key == self._key), None)

    def followed(self, bound: Bound, rule: str) -> Hunted:
        """Look at both ends and at what the search asks for, a line of news each."""
        self._judged(0, bound)
        self._judged(self._last, bound)
        result = search(self._last + 1, lambda place: self._judged(place, bound))
        return Hunted(
            metric=self._metric,
            key=self._key,
            bound=bound,
            rule=rule,
            names=self._row.names,
            specs=self._row.specs,
            backward=self._row.backward,
            looks=self._looks,
            found=result,
            sides=(self._snapshots[result.good], self._snapshots[result.bad]),
            ends=self._row.ends,
        )

    def _judged(self, place: int, bound: Bound) -> Judged:
        look = self._look(place, bound)
        self._looks[place] = look
        self._show.say(look_words(look, self._metric.unit))
        return look.judged

    def _look(self, place: int, bound: Bound) -> Look:
        name = self._row.names[place]
        try:
            if place not in self._snapshots:
                self._snapshots[place] = self._row.at(place)
        except (CompilerUnavailable, UsageError, InputError) as error:  # gone, without an option, a damaged file
            return Look(name, "skipped", reason=error.line)
        values, reason = values_of(self._cell(self._snapshots[place]), self._good, self._metric.id)
        judged = bound.judged(values) if values else "skipped"
        if values and judged == "skipped":
            reason = "its values lie on both sides of the limit" if len(values) > 1 else "within the noise band"
        return Look(name, judged, values, reason)
