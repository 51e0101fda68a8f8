"""What a bisection calls bad: from the words of the command line and the values of both ends to a bound."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from msgspec import structs
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from bot.compiler.cell_cache import TextStore
from bot.compiler.toolchain import between, newest, only_fitting
from bot.config.configuration import Config
from bot.config.units import parse_amount, parse_ratio
from bot.core.bisecting import Bisection, Bound, Found, Judged, Look, StepCause, elsewhere, half_way, search, values_of
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS, Metric
from bot.core.planned import SIDES, narrowed, near_or_known
from bot.core.report import Baseline, Report
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.spec import MOVING, PROJECT, Places, release_of
from bot.errors import BotError, CompilerUnavailable, InputError, Interrupted, NoVerdict, UsageError
from bot.explain.suspects import UNFINISHED, Source, with_suspects
from bot.render.terminal.bisect_text import look_words, moved_words
from bot.render.text.escape import clip
from bot.render.text.filters import amount, plural
from bot.study.between import in_order
from bot.study.comparison import reported
from bot.study.prepare import (
    Request,
    Show,
    is_snapshot,
    load_snapshot,
    measured,
    planned,
    prepare,
    repository_at,
    selected,
)
from bot.study.run import SidePlan
from bot.study.sides import source_of
from bot.study.stored import stored_line
from bot.study.tracing import traced
from bot.system.processes import Cancel


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """What is looked for.

    Attributes:
        good, bad: SPECs; with `stored`, commits.
        limit, change: what is bad, as it was written: a value above it, or more growth since GOOD than it.
        among: what lies between, in order; () where that can be found out.
        stored: True for the stored baselines of the configuration.
    """

    metric: Metric
    good: str
    bad: str
    limit: str | None = None
    change: str | None = None
    among: tuple[str, ...] = ()
    stored: bool = False


def metric_of(name: str) -> Metric:
    """The metric of that id; raises UsageError."""
    if name not in METRIC_BY_ID:
        raise UsageError(f"no metric is called {name!r}", where="--metric", hint=near_or_known(name, METRIC_IDS))
    return METRIC_BY_ID[name]


def end_values(place: str, name: str, found: tuple[tuple[int, ...], str]) -> tuple[int, ...]:
    """The values of an end (`place`: GOOD or BAD); raises NoVerdict where it has none."""
    values, reason = found
    if not values:
        raise NoVerdict(f"{place} has no value: {reason[:200]}", where=name, hint="name another one")
    return values


def bound_of(options: BisectOptions, ends: tuple[Sequence[int], Sequence[int]], config: Config) -> tuple[Bound, str]:
    """What is bad, as a bound and in words; raises UsageError where GOOD is not good by it, or BAD not bad.

    `ends`: all values of GOOD, and of BAD.
    """
    metric, (good, bad) = options.metric, ends
    limit, words = _limit(options, metric, good, bad)
    bound = Bound(limit, _band(metric, config))
    judged = bound.judged(good), bound.judged(bad)
    said = f"GOOD has {values_text(good, metric)}, BAD {values_text(bad, metric)}"
    if judged == ("bad", "good") or max(bad) < min(good):
        raise UsageError(f"GOOD and BAD are swapped: {said}", hint="lower is better: name the lower one first")
    if list(good) == list(bad) and judged[0] == judged[1]:
        raise UsageError(f"{metric.id} is the same at both ends: {said}", hint="name two between which it moved")
    for place, told, wanted in zip(("GOOD", "BAD"), judged, ("good", "bad"), strict=True):
        if told != wanted:
            raise UsageError(f"{place} is not {wanted}: {said}, and bad is {words}", hint="name another end or limit")
    return bound, words


def _limit(options: BisectOptions, metric: Metric, good: Sequence[int], bad: Sequence[int]) -> tuple[int, str]:
    if options.limit is not None:
        limit = _steps("--limit", options.limit, metric)
        return limit, f"more than {amount(limit, metric.unit)}"
    if options.change is not None:
        grown = max(good) + _growth(options.change, metric, max(good))
        return grown, f"more than {amount(grown, metric.unit)}, GOOD and {options.change}"
    half = half_way(max(good), min(bad))
    return half, f"more than {amount(half, metric.unit)}, half way from GOOD to BAD"


def _steps(option: str, text: str, metric: Metric) -> int:
    try:
        return parse_amount(text).steps(metric.unit)
    except ValueError as error:
        raise UsageError(str(error), where=option, hint=f"{metric.id} is in {metric.unit}") from None


def _growth(text: str, metric: Metric, good: int) -> int:
    if not text.endswith("%"):
        return _steps("--change", text, metric)
    try:
        return int(parse_ratio(text).value * good)
    except ValueError as error:
        raise UsageError(str(error), where="--change") from None


def _band(metric: Metric, config: Config) -> Fraction:
    if metric.exact:
        return Fraction(0)
    if metric.id not in config.noise:
        hint = "give its noise band in the configuration: code-size-bot calibrate measures it"
        raise UsageError(f"{metric.id} varies from run to run", where="--metric", hint=hint)
    return config.noise[metric.id].value


def values_text(values: Sequence[int], metric: Metric) -> str:
    """`50,438 B`, or all of them where the compiler does not repeat itself."""
    return " or ".join(amount(value, metric.unit) for value in values)


# Which candidates stand between GOOD and BAD, and in which order: releases, wheels of a directory, or snapshots.


_WHEELS = "iree_base_compiler-*.whl"
_AMONG = "name those between with --among: a directory of wheels, or snapshots in their order"


@dataclass(frozen=True, slots=True)
class Row:
    """The candidates, from GOOD to BAD, both with them.

    Attributes:
        specs: what names the compiler or the snapshot of each.
        backward: True where GOOD is the newer end.
    """

    specs: tuple[str, ...]
    backward: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """As they are shown: a release by its version alone."""
        return tuple(release_of(spec) or spec for spec in self.specs)


def row_of(good: str, bad: str, among: Sequence[str], places: Places, cancel: Cancel) -> Row:
    """The candidates between two SPECs; raises UsageError where nobody says which there are.

    `among`: those between, in their order: SPECs, globs, directories of wheels or snapshots; () to find them out.
    """
    good, bad = (newest(spec, places, cancel) if spec in MOVING else spec for spec in (good, bad))
    if _same(good, bad):
        raise UsageError("GOOD and BAD are the same", where=bad, hint="name two between which the value moved")
    ends = _ordering((good, bad))
    backward = ends is not None and ends[good] > ends[bad]
    if not among and release_of(good) and release_of(bad):
        middle = between(release_of(good) or "", release_of(bad) or "", places, cancel)
        specs = (f"{PROJECT}=={release}" for release in (release_of(good), *middle, release_of(bad)))
        return Row(tuple(specs), backward)
    if not among and _is_wheel(good) and _is_wheel(bad) and Path(good).parent.resolve() == Path(bad).parent.resolve():
        among = (str(Path(good).parent),)
    if not among:
        raise UsageError("nothing says what lies between the two", where=f"{good} and {bad}", hint=_AMONG)
    row = dict.fromkeys(spec for place in among for spec in expanded(place))
    return _cut(good, bad, list(row), backward=backward)


def _cut(good: str, bad: str, specs: list[str], *, backward: bool) -> Row:
    """What of a row lies between the ends: by version where that orders all, else by place, where the ends have one."""
    middle = [spec for spec in specs if not _same(spec, good) and not _same(spec, bad)]
    if (versions := _ordering([good, *middle, bad])) is not None:
        first, last = sorted((versions[good], versions[bad]))
        inside = {spec for spec in middle if first < versions[spec] < last}
        return Row((good, *sorted(inside, key=versions.__getitem__, reverse=backward), bad), backward)
    begin, end = (next((at for at, spec in enumerate(specs) if _same(spec, one)), None) for one in (good, bad))
    if begin is not None and end is not None and begin > end:
        return Row((good, *specs[end + 1 : begin][::-1], bad), backward=True)
    return Row((good, *specs[0 if begin is None else begin + 1 : end], bad), backward)


def _ordering(specs: Sequence[str]) -> dict[str, Version] | None:
    """The versions, where each has one of its own; None else: builds of commits may share one, or add letters to it."""
    versions = {spec: version for spec in specs if (version := _version(spec)) is not None and version.local is None}
    return versions if len(set(versions.values())) == len(specs) else None


def _same(one: str, other: str) -> bool:
    if release_of(one) or release_of(other):
        return release_of(one) == release_of(other)
    return Path(one).absolute() == Path(other).absolute()


def _is_wheel(spec: str) -> bool:
    return spec.endswith(".whl")


def _version(spec: str) -> Version | None:
    """Of a release or a wheel file; None where the name does not tell."""
    if release := release_of(spec):
        return Version(release)
    try:
        return parse_wheel_filename(Path(spec).name)[1] if _is_wheel(spec) else None
    except InvalidWheelFilename:
        return None


def expanded(place: str) -> list[str]:
    """The SPECs that a word of the command line stands for, in their order; raises UsageError for none."""
    path = Path(place)
    if path.is_dir():
        paths = _fitting(in_order(path.glob(_WHEELS)))
        paths = paths or [str(one) for one in in_order(path.glob("*.json"))]
        if not paths:
            raise UsageError(f"holds no {_WHEELS} and no snapshot", where=place, hint=_AMONG)
        return paths
    if release_of(place) or path.exists():
        return [str(path) if path.exists() else place]
    matched = in_order(map(Path, glob.glob(str(path), recursive=True)))
    if not matched:
        raise UsageError("is no release, file or directory, and matches none", where=place, hint=_AMONG)
    return _fitting([one for one in matched if one.match(_WHEELS)]) or [str(one) for one in matched]


def _fitting(wheels: Sequence[Path]) -> list[str]:
    """Of each version in each directory the wheel for this machine; by version where that orders all."""
    same: dict[tuple[Path, Version], list[Path]] = {}
    for wheel in wheels:
        if (version := _version(str(wheel))) is not None:
            same.setdefault((wheel.parent, version), []).append(wheel)
    fitting = []
    for (directory, _), each in same.items():
        try:
            fitting.append(str(only_fitting(each, directory)))
        except CompilerUnavailable:  # of another platform
            continue
    versions = _ordering(fitting)
    return sorted(fitting, key=versions.__getitem__) if versions else fitting


# From the looks of a bisection to what it found: the report of its step, the causes, and what shows it.


_CAUSES = 5
_TITLE = 100
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Hunted:
    """A search that has ended.

    Attributes:
        names, specs: of all candidates, from GOOD to BAD; no specs where no command line names them.
        backward: True where GOOD is the newer end.
        looks: place → what was seen there.
        sides: the snapshots of the last good and the first bad one.
        ends: those of GOOD and BAD.
    """

    metric: Metric
    key: CellKey
    bound: Bound
    rule: str
    names: tuple[str, ...]
    specs: tuple[str, ...]
    backward: bool
    looks: Mapping[int, Look]
    found: Found
    sides: tuple[Snapshot, Snapshot]
    ends: tuple[Snapshot, Snapshot]


def _found_step(hunted: Hunted, request: Request, config: Config, cancel: Cancel) -> tuple[Bisection, Report]:
    """The last good one compared with the first bad one."""
    key, (base, head) = hunted.key, _in_time(hunted, hunted.sides)
    sides = narrowed(
        {"base": base, "head": head}, model_globs=(key.model,), target_globs=(key.target,), must_match=False
    )
    older, _ = _in_time(hunted, (hunted.names[hunted.found.good], hunted.names[hunted.found.bad]))
    report = reported(config, sides["base"], sides["head"], Baseline(older), TextStore(request.cache).load)
    source = source_of(request, config, cancel)
    report = with_suspects(report, source) if source else report
    result = _told(hunted, report, request)
    if source:
        result = structs.replace(result, notes=(*result.notes, *_suspects(hunted, report, source)))
    return result, report


def _in_time(hunted: Hunted, pair: tuple[_T, _T]) -> tuple[_T, _T]:
    """Of the good and the bad one, the older first."""
    return (pair[1], pair[0]) if hunted.backward else pair


def _told(hunted: Hunted, made: Report, request: Request) -> Bisection:
    good, bad = hunted.found.good, hunted.found.bad
    looks = tuple(hunted.looks[place] for place in sorted(hunted.looks))
    delta = next(one for one in made.deltas if one.key == hunted.key)
    explained = made.explanations.get(hunted.key)
    roots = sorted(made.root_causes, key=lambda root: -root.total.absolute_bytes)
    return Bisection(
        metric=hunted.metric.id,
        model=hunted.key.model,
        target=hunted.key.target,
        rule=hunted.rule,
        limit=hunted.bound.limit,
        candidates=len(hunted.names),
        looks=looks,
        last_good=hunted.names[good],
        first_bad=hunted.names[bad],
        could_be=hunted.names[good + 1 : bad + 1] if bad - good > 1 else (),
        state=delta.state,
        cause=explained.cause if explained else None,
        why=explained.why if explained else "",
        root_causes=tuple(StepCause(root.cause, root.what, root.total.net_bytes) for root in roots[:_CAUSES]),
        notes=(*_notes(hunted, looks), *made.notes),
        commands=tuple(_commands(hunted, request)),
    )


def _notes(hunted: Hunted, looks: tuple[Look, ...]) -> Iterator[str]:
    if hunted.backward:
        yield "GOOD is the newer one: the first bad one is the last in time that is bad"
    found = hunted.names[hunted.found.good], hunted.names[hunted.found.bad]
    unit = hunted.metric.unit
    moves = [moved_words(a, b, unit) for a, b in elsewhere(looks, found)]
    if moves:
        yield f"it moves elsewhere, too, as far as was looked: {', '.join(moves)}"
    known = sum(look.judged != "skipped" for look in looks) + hunted.found.bad - hunted.found.good - 1
    if unknown := len(hunted.names) - known:
        of = plural(len(hunted.names), "candidate")
        if_so = "" if moves else "where the value goes up and down, "
        yield f"nothing is known of {unknown} of {of}: {if_so}there may be other places where good turns to bad"


def _suspects(hunted: Hunted, made: Report, source: Source) -> Iterator[str]:
    """Which suspects of the whole way from GOOD to BAD lie in the step that was found, and which do not."""
    older, newer = (side.compiler.revision for side in _in_time(hunted, hunted.ends))
    step = made.base.compiler.revision, made.head.compiler.revision
    whole = with_suspects(replace(made, notes=()), source, revisions=(older, newer))
    where = f"between {hunted.names[hunted.found.good]} and {hunted.names[hunted.found.bad]}"
    files = {
        one.commit: (one.title, known.files)
        for root in whole.root_causes
        if (known := root.looked_up)
        for one in root.suspects
    }
    try:
        for sha, (title, touched) in files.items():
            inside = {one.sha for file in touched for one in source.commits(file, *step)}
            answer = "is confirmed to lie" if sha in inside else "is cleared: it does not lie"
            yield f"suspect {sha[:10]} ({clip(title, _TITLE)}) {answer} {where}"
    except Interrupted:
        raise
    except BotError as error:
        yield f"{UNFINISHED}{error.line}"
    yield from whole.notes


def _commands(hunted: Hunted, request: Request) -> Iterator[str]:
    """What makes the report of the step again, and what tells all of it."""
    places = hunted.found.good, hunted.found.bad
    named = [hunted.specs[place] for place in places] if hunted.specs else []
    base, head = _in_time(hunted, (named[0], named[1])) if named else _kept(request)
    cell = ["--model", hunted.key.model, "--target", hunted.key.target]
    config = ["--config", str(request.config or "default")]
    command = "report" if is_snapshot(base) and is_snapshot(head) else "compare"
    out = ["--out", str(request.out)]
    yield shlex.join(["code-size-bot", command, "--base", base, "--head", head, *cell, *config, *out])
    yield shlex.join(["code-size-bot", "explain", str(request.out / "report.json"), *cell])


def _kept(request: Request) -> tuple[str, str]:
    return str(request.out / "base.json"), str(request.out / "head.json")


# `bisect`: the first bad one among releases, wheels or snapshots, found in as few measurements as there can be.
#
# Both ends are measured, then always the candidate in the middle of those that are left. Each is held against the good
# end, so that what moved is compiled again to see whether that holds.


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


def bisect(
    options: BisectOptions, request: Request, config: Config, show: Show, cancel: Cancel
) -> tuple[Bisection, Report]:
    """The first bad candidate, and the report of its step.

    Raises:
        UsageError: the ends are the same, swapped, or of no row; or not one cell is selected.
        NoVerdict: an end has no value.
    """
    with ExitStack() as stack:
        opened = _stored if options.stored else _specs
        row = opened(options, request, config, stack, show, cancel)
        key = _only_cell({cell.key for end in row.ends for cell in end.cells})
        hunt = _Hunt(options.metric, key, row, show)
        bound, rule = bound_of(options, hunt.end_values(), config)
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
        return _found_step(replace(hunted, sides=(sides["base"], sides["head"])), request, config, cancel)


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
