"""What a bisection calls bad: from the words of the command line and the values of both ends to a bound."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from msgspec.structs import replace

from bot.config.configuration import Config
from bot.config.units import parse_amount, parse_ratio
from bot.core.bisecting import (
    Bisection,
    Bound,
    Bracket,
    Candidate,
    CauseBytes,
    Judged,
    bracket,
    half_way,
    other_moves,
    values_of,
)
from bot.core.metrics import METRIC_BY_ID, Metric
from bot.core.planned import SIDES, narrowed, near_or_known
from bot.core.report import Baseline, Report
from bot.core.snapshot import CellKey, Snapshot
from bot.core.spec import release_in
from bot.core.study import Variant
from bot.errors import BotError, CompilerUnavailable, InputError, Interrupted, NoVerdict, UsageError
from bot.explain.suspects import UNFINISHED, Source, with_suspects
from bot.show.bisect import candidate_words, moved_words
from bot.show.escape import clip
from bot.show.filters import amount, plural
from bot.study.comparison import reported, source_of
from bot.study.prepare import Show, Work, is_snapshot, load_snapshot
from bot.study.specs import candidates_of
from bot.study.tracing import traced


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """What is looked for."""

    metric: Metric
    good: str  # a SPEC
    bad: str  # likewise
    # limit, change: what is bad, as it was written: a value above it, or more growth since GOOD than it
    limit: str | None = None
    change: str | None = None
    among: tuple[str, ...] = ()  # what lies between, in order; () where that can be found out


def metric_of(name: str, own: Mapping[str, Metric]) -> Metric:
    """The metric of that id; `own`: those that the configuration declares. Raises UsageError."""
    known = {**METRIC_BY_ID, **own}
    if name not in known:
        raise UsageError(f"no metric is called {name!r}", where="--metric", hint=near_or_known(name, tuple(known)))
    return known[name]


def bound_of(options: BisectOptions, ends: tuple[Sequence[int], Sequence[int]], config: Config) -> tuple[Bound, str]:
    """What is bad, as a bound and in words; raises UsageError where GOOD is not good by it, or BAD not bad.

    `ends`: all values of GOOD, and of BAD.
    """
    metric, (good, bad), band = options.metric, ends, Fraction(0)
    if options.limit is not None:
        limit, how = _steps("--limit", options.limit, metric), ""
    elif options.change is not None:
        limit, how = max(good) + _steps("--change", options.change, metric, max(good)), f", GOOD and {options.change}"
    else:
        limit, how = half_way(max(good), min(bad)), ", half way from GOOD to BAD"
    if not metric.exact:
        if metric.id not in config.noise:
            hint = "give its noise band in the configuration: code-size-bot calibrate measures it"
            raise UsageError(f"{metric.id} varies from run to run", where="--metric", hint=hint)
        band = config.noise[metric.id].value
    bound, words = Bound(limit, band), f"more than {amount(limit, metric.unit)}{how}"
    judged = bound.judged(good), bound.judged(bad)
    texts = (" or ".join(amount(value, metric.unit) for value in values) for values in ends)
    said = "GOOD has {}, BAD {}".format(*texts)
    if judged == ("bad", "good") or max(bad) < min(good):
        raise UsageError(f"GOOD and BAD are swapped: {said}", hint="lower is better: name the lower one first")
    if list(good) == list(bad) and judged[0] == judged[1]:
        raise UsageError(f"{metric.id} is the same at both ends: {said}", hint="name two between which it moved")
    for place, result, wanted in zip(("GOOD", "BAD"), judged, ("good", "bad"), strict=True):
        if result != wanted:
            raise UsageError(f"{place} is not {wanted}: {said}, and bad is {words}", hint="name another end or limit")
    return bound, words


def _steps(option: str, text: str, metric: Metric, good: int | None = None) -> int:
    """An amount of the metric, or a percentage of `good`."""
    is_share = good is not None and text.endswith("%")
    try:
        return int(parse_ratio(text).value * (good or 0)) if is_share else parse_amount(text).steps(metric.unit)
    except ValueError as error:
        hint = "" if is_share else f"{metric.id} is in {metric.unit}"
        raise UsageError(str(error), where=option, hint=hint) from None


# The search: the first bad one among variants that are measured when they are asked for, in as few as there can be.
#
# Both ends are measured, then always the candidate in the middle of those that are left. Each is held against the good
# end, so that what moved is compiled again to see whether that holds.

_CAUSES = 5
_TITLE = 100
_SHOWN_CELLS = 4


@dataclass
class _Search:
    """One cell's metric over variants from GOOD to BAD."""

    metric: Metric
    variants: list[Variant]  # both ends are measured; those between when they are first looked at
    measure: Callable[[int], Snapshot]  # measures or reads the one at a place between
    backward: bool  # True where GOOD is the newer end
    show: Show
    bound: Bound = field(default_factory=lambda: Bound(0))
    candidates: dict[int, Candidate] = field(default_factory=dict)  # place → how the variant there is judged
    step: Bracket = field(init=False)  # places of the last good and the first bad one; both ends before the search

    def __post_init__(self) -> None:
        """Raise UsageError where more or less than one cell is meant."""
        self.step = Bracket(0, len(self.variants) - 1)
        self.key = _only_cell({cell.key for place in self.step for cell in self.snapshot(place).cells})

    def snapshot(self, place: int) -> Snapshot:
        """What was measured at a place; measures it where that is not yet done."""
        side = self.variants[place].snapshot or self.measure(place)
        self.variants[place] = replace(self.variants[place], snapshot=side)
        return side

    def values(self, place: int) -> tuple[tuple[int, ...], str]:
        """All values at a place, and why there are none."""
        good, cell = (next((one for one in self.snapshot(at).cells if one.key == self.key), None) for at in (0, place))
        return values_of(cell, good, self.metric.id)

    def judge(self, place: int) -> Judged:
        """How a variant is judged, with a line of news."""
        judged: Judged = "skipped"
        values: tuple[int, ...] = ()
        try:
            values, reason = self.values(place)
        except (CompilerUnavailable, UsageError, InputError) as error:  # gone, without an option, a damaged file
            reason = error.line
        if values and (judged := self.bound.judged(values)) == "skipped":
            reason = "its values lie on both sides of the limit" if len(values) > 1 else "within the noise band"
        self.candidates[place] = Candidate(self.variants[place].name, judged, values, reason)
        self.show.say(candidate_words(self.candidates[place], self.metric.unit))
        return judged

    def in_time(self, good: int, bad: int) -> tuple[int, int]:
        """Two places, the older one first."""
        return (bad, good) if self.backward else (good, bad)


def bisect(options: BisectOptions, work: Work) -> tuple[Bisection, Report]:
    """The first bad candidate, and the report of its step.

    Raises:
        UsageError: the ends are the same, swapped, or of no row; or not one cell is selected.
        NoVerdict: an end has no value.
    """
    variants, ends, load, backward = _named(options, work)
    variants[0] = replace(variants[0], snapshot=ends["base"])
    variants[-1] = replace(variants[-1], snapshot=ends["head"])
    search = _Search(options.metric, variants, load, backward, work.show)
    values = [search.values(place) for place in search.step]
    for word, (own, reason), end in zip(("GOOD", "BAD"), values, (variants[0], variants[-1]), strict=True):
        if not own:
            raise NoVerdict(f"{word} has no value: {reason[:200]}", where=end.name, hint="name another one")
    search.bound, rule = bound_of(options, (values[0][0], values[1][0]), work.config)
    for place in search.step:
        search.judge(place)
    search.step = bracket(len(variants), search.judge)
    sides = {side: search.snapshot(place) for side, place in zip(SIDES, search.step, strict=True)}
    specs = {side: variants[place].spec for side, place in zip(SIDES, search.step, strict=True)}
    plans = [work.prepare(side, spec) for side, spec in specs.items() if spec and not is_snapshot(spec)]
    sides = traced(plans, sides, work)
    for side, place in zip(SIDES, search.step, strict=True):
        variants[place] = replace(variants[place], snapshot=sides[side])
    return _result(search, rule, work)


def _named(
    options: BisectOptions, work: Work
) -> tuple[list[Variant], dict[str, Snapshot], Callable[[int], Snapshot], bool]:
    """Compilers and snapshots that SPECs name, and how each is had; both ends are measured at once."""
    specs, backward = candidates_of(options.good, options.bad, options.among, work.places, work.cancel)
    names = [release_in(spec) or spec for spec in specs]  # a release by its version alone
    ends = {"base": specs[0], "head": specs[-1]}
    if not all(map(is_snapshot, ends.values())):
        _only_cell({cell.key for cell in work.planned().cells})
    work.show.say(f"{len(specs)} candidates from {names[0]} to {names[-1]}")
    sides = work.sides(ends)

    def measure(place: int) -> Snapshot:
        if is_snapshot(spec := specs[place]):
            return load_snapshot(Path(spec))
        return work.measured([work.prepare("head", spec)], {"base": sides["base"]})["head"]

    return list(map(Variant, names, specs)), sides, measure, backward


def _only_cell(keys: Collection[CellKey]) -> CellKey:
    if len(keys) == 1:
        return next(iter(keys))
    shown = ", ".join(map(str, sorted(keys)[:_SHOWN_CELLS])) + (", …" if len(keys) > _SHOWN_CELLS else "")
    what = f"{len(keys)} builds are meant: {shown}" if keys else "no build is meant"
    raise UsageError(what, where="--model and --target", hint="name one model and one target")


def _result(search: _Search, rule: str, work: Work) -> tuple[Bisection, Report]:
    """The last good variant compared with the first bad one."""
    key, (good, bad), out = search.key, search.step, work.request.out
    places = search.in_time(good, bad)
    older, newer = (search.variants[place] for place in places)
    both = dict(zip(SIDES, map(search.snapshot, places), strict=True))
    sides = narrowed(both, model_globs=(key.model,), target_globs=(key.target,), must_match=False)
    report = reported(work.config, sides["base"], sides["head"], Baseline(older.name), work.texts)
    source = source_of(work)
    report = with_suspects(report, source) if source else report
    delta = next(one for one in report.deltas if one.key == key)
    explanation = report.explanations.get(key)
    roots = sorted(report.root_causes, key=lambda root: -root.total.absolute_bytes)
    names = tuple(one.name for one in search.variants)
    # what makes the report of the step again, and what tells all of it
    base, head = older.spec or str(out / "base.json"), newer.spec or str(out / "head.json")
    cell = ["--model", key.model, "--target", key.target]
    again = ["report" if is_snapshot(base) and is_snapshot(head) else "compare", "--base", base, "--head", head, *cell]
    again += ["--config", str(work.request.config or "default"), "--out", str(out)]
    commands = again, ["explain", str(out / "report.json"), *cell]
    result = Bisection(
        metric=search.metric.id,
        model=key.model,
        target=key.target,
        rule=rule,
        limit=search.bound.limit,
        candidates=len(names),
        looks=tuple(search.candidates[place] for place in sorted(search.candidates)),
        last_good=names[good],
        first_bad=names[bad],
        could_be=names[good + 1 : bad + 1] if bad - good > 1 else (),
        state=delta.state,
        cause=explanation.cause if explanation else None,
        why=explanation.why if explanation else "",
        root_causes=tuple(CauseBytes(root.cause, root.what, root.total.net_bytes) for root in roots[:_CAUSES]),
        notes=(*_notes(search), *report.notes, *(_suspects(search, report, source) if source else ())),
        commands=tuple(shlex.join(["code-size-bot", *words]) for words in commands),
    )
    return result, report


def _notes(search: _Search) -> Iterator[str]:
    if search.backward:
        yield "GOOD is the newer one: the first bad one is the last in time that is bad"
    good, bad = search.step
    candidates = [search.candidates[place] for place in sorted(search.candidates)]
    ends = search.variants[good].name, search.variants[bad].name
    moves = [moved_words(a, b, search.metric.unit) for a, b in other_moves(candidates, ends)]
    if moves:
        yield f"it moves elsewhere, too, as far as was looked: {', '.join(moves)}"
    known = sum(one.judged != "skipped" for one in candidates) + bad - good - 1
    if unknown := len(search.variants) - known:
        of = plural(len(search.variants), "candidate")
        if_so = "" if moves else "where the value goes up and down, "
        yield f"nothing is known of {unknown} of {of}: {if_so}there may be other places where good turns to bad"


def _suspects(search: _Search, report: Report, source: Source) -> Iterator[str]:
    """Which suspects of the whole way from GOOD to BAD lie in the step, and which do not."""
    older, newer = map(search.snapshot, search.in_time(0, len(search.variants) - 1))
    step = report.base.compiler.revision, report.head.compiler.revision
    whole = with_suspects(replace(report, base=older, head=newer, notes=()), source)
    where = f"between {' and '.join(search.variants[place].name for place in search.step)}"
    files = {s.commit: (s.title, r.looked_up.files) for r in whole.root_causes for s in r.suspects if r.looked_up}
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
