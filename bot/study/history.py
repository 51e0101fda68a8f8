"""A history: which releases or stored baselines it is of, measured together, and what moved in each and why."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs
from packaging.version import InvalidVersion, Version

from bot.compiler.cell_cache import CellCache, TextStore
from bot.compiler.compiler import Session
from bot.compiler.probe import flags_of
from bot.compiler.toolchain import between, newest
from bot.config.configuration import BaselineChoice, Config
from bot.core.baseline import Entry
from bot.core.delta import MetricDelta
from bot.core.history import TRACKED, History, HistoryStep, Move, StepCause, totals_of
from bot.core.metrics import METRIC_BY_ID
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.record import difference, lowest, range_of
from bot.core.report import Baseline, Report
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.spec import MOVING, Places, release_in, release_of
from bot.core.study import SHORT, Study, Variant, named_apart, neighbours, of_commit, united
from bot.errors import CompilerUnavailable, InputError, UsageError
from bot.explain.texts import Texts, no_texts
from bot.show.facts import build_facts
from bot.show.headline import everything
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.store.entries import Store, by_commit
from bot.study.between import exists, in_order, named_file
from bot.study.comparison import reported
from bot.study.prepare import Request, Show, is_snapshot, load_snapshot, planned, prepare, repository_at, selected
from bot.study.run import Resources, SidePlan, measure_sides, recheck, repeat_unsteady
from bot.system.files import is_writable, temporary_directory, write_atomically
from bot.system.git import Git
from bot.system.processes import Cancel, Meter

_HINT = "write both ends, the older one first: 3.8.0..3.13.0"
_WHERE = "--releases"


def asked_for(texts: Sequence[str], places: Places, cancel: Cancel, say: Callable[[str], None]) -> tuple[str, ...]:
    """SPECs: each range with all releases offered between its ends, each glob with all snapshots that it matches.

    Raises UsageError for a range without two ends in order, CompilerUnavailable where there is no list of releases.
    """
    words = [part for text in texts for part in ([text] if exists(text) else map(str.strip, text.split(","))) if part]
    if not words:
        raise UsageError("names no release", where=_WHERE, hint=_HINT)
    specs = [spec for word in words for spec in _specs(word, places, cancel)]
    if len(specs) > len(words):
        say(f"releases: {', '.join(release_of(spec) or Path(spec).name for spec in specs)}")
    return tuple(specs)


def _specs(word: str, places: Places, cancel: Cancel) -> Iterator[str]:
    """What one word stands for."""
    first, dots, last = word.partition("..")
    are_ends = [end in MOVING or release_of(end) is not None for end in (first, last)]
    if dots and any(are_ends) and not exists(word):
        if not all(are_ends):
            raise UsageError("is no range of releases", where=f"{_WHERE} {word}", hint=_HINT)
        old, new = (newest(end, places, cancel) if end in MOVING else release_of(end) or end for end in (first, last))
        if Version(old) > Version(new):
            what = "goes from a newer release to an older one"
            raise UsageError(what, where=f"{_WHERE} {word}", hint=f"write {last}..{first}")
        yield from dict.fromkeys((old, *between(old, new, places, cancel), new))
        return
    paths = in_order(map(Path, glob.glob(word, recursive=True))) if set(word) & set("*?[") else []
    if paths and all(path.suffix == ".json" for path in paths):
        yield from map(str, paths)
    else:
        yield named_file(word)


# Many releases measured together: those that can be had fill the processors, those that cannot are gaps with a reason.


def release_study(specs: Sequence[str], request: Request, config: Config, show: Show, cancel: Cancel) -> Study:
    """Each release with its snapshot or the reason why there is none; sorted by version, each compiler once.

    Raises:
        InputError: a snapshot cannot be read.
        UsageError: nothing is selected.
        CompilerUnavailable: not one of them can be had.
    """
    known = {spec: load_snapshot(Path(spec)) for spec in specs if is_snapshot(spec)}
    known = selected(known, request, must_match=len(known) == len(set(specs)))
    plans, missing = _plans([spec for spec in specs if spec not in known], request, config, show, cancel)
    sides, variants = _sides(plans, known, request, config, show, cancel), list[Variant]()
    for spec in specs:
        shown = plans[spec].compiler.info.spec if spec in plans else Path(spec).name if is_snapshot(spec) else spec
        if (side := sides.get(spec)) is None:
            variants.append(Variant(release_of(spec) or Path(spec).name, shown, reason=missing[spec]))
        else:
            name = release_in(side.compiler.spec) or side.compiler.spec or side.compiler.version or shown
            variants.append(Variant(name, shown, side))
    study = united(variants)
    if len(missing) == len(set(specs)):
        first = study.variants[0]
        raise CompilerUnavailable("not one release can be had", where=first.spec, hint=first.reason)
    # by version; as they were asked for where one tells none
    versions = {one.name: _version(one.snapshot) if one.snapshot else _parsed(one.name) for one in study.variants}
    if without := next((name for name, version in versions.items() if version is None), None):
        show.say(f"{without} tells no version that can be ordered: releases are in the order in which they were named")
        return study
    return Study(tuple(sorted(study.variants, key=lambda one: versions[one.name] or _ZERO)))


def _plans(
    specs: Sequence[str], request: Request, config: Config, show: Show, cancel: Cancel
) -> tuple[dict[str, SidePlan], dict[str, str]]:
    """SPEC → the side, ready to be measured; SPEC → why it cannot be."""
    plans, missing = dict[str, SidePlan](), dict[str, str]()
    if not specs:
        return plans, missing
    repository = repository_at(request.config, cancel)
    planned(request, config, repository)  # what is wrong with the selectors is wrong for all releases
    for spec in dict.fromkeys(specs):
        try:
            plan = prepare(release_of(spec) or Path(spec).name, spec, request, config, repository, show, cancel)
            with temporary_directory("run-") as scratch:
                session = Session(spec, scratch, config.timeout_seconds, cancel, Meter())
                with plan.compiler.at_work(session):  # one that cannot start would end all
                    pass
            plans[spec] = replace(plan, label=spec)
        except (CompilerUnavailable, UsageError) as error:  # gone from the page, or without an option of the flags
            missing[spec] = error.line
            show.say(f"left out: {error.line}")
    return plans, missing


def _sides(
    plans: dict[str, SidePlan], known: dict[str, Snapshot], request: Request, config: Config, show: Show, cancel: Cancel
) -> dict[str, Snapshot]:
    """All snapshots, those that were measured here doubted, each against the one before."""
    if not plans:
        return known
    with show.progress() as progress:
        keeps = is_writable(request.cache.absolute())
        cache, texts = CellCache(request.cache, keeps), TextStore(request.cache, keeps)
        resources = Resources(cache, request.jobs, config.timeout_seconds, cancel, progress, texts)
        sides = {**known, **measure_sides(list(plans.values()), resources)}
        before: Snapshot | None = None
        for spec in sorted(sides, key=lambda spec: _version(sides[spec]) or _ZERO):
            if spec in plans and before is not None:
                pair = {"base": before, "head": sides[spec]}
                sides[spec] = recheck([replace(plans[spec], label="head")], pair, config, resources)["head"]
            before = sides[spec]
        return repeat_unsteady(list(plans.values()), sides, config, resources)


_ZERO = Version("0")


def _version(side: Snapshot) -> Version | None:
    """Of the release that its compiler is, else as that calls itself: wheels of 3.13.0 say `3.13.0rc20261016`."""
    return _parsed(release_in(side.compiler.spec) or side.compiler.version)


def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


# The stored baselines as a history: of one report, in the order of the commits.


def stored_study(
    store: Store, report_id: str, line: Sequence[str], last: int, request: Request, say: Callable[[str], None]
) -> Study:
    """The `last` baselines of a report, the oldest first; one that is damaged has its reason.

    Args:
        line: the commits of the default branch, newest first. Baselines of other commits are left out, and that is
            said; where none is of the line, all are in the order in which they were stored.

    Raises UsageError where there is none or a selector matches nothing, NetworkError where the store cannot be asked.
    """
    entries = [entry for entry in store.entries() if entry.report_id == report_id]
    if not entries:
        hint = "the first push to the default branch stores one; is `report_id` that of the configuration?"
        raise UsageError(f"no baseline of report {report_id!r} is stored", where="--store", hint=hint)
    place = {sha: -at for at, sha in enumerate(line)}
    stored = store.in_order(entries)
    on_line = sorted((entry for entry in stored if entry.sha in place), key=lambda entry: place[entry.sha])
    if not on_line:
        say("in the order in which they were stored: no baseline is of a commit of the default branch here")
    elif other := len(stored) - len(on_line):
        say(f"left out: {other} of {len(stored)} stored baselines, of no commit on the default branch's line here")
    variants, held = list[Variant](), dict[CellKey, Cell]()
    for entry in (on_line or stored)[-last:]:
        try:
            variants.append(of_commit(entry.sha, _held_once(store.load(entry), held)))
        except InputError as error:
            variants.append(Variant(entry.sha[:SHORT], entry.sha, reason=error.line))
    study = named_apart(variants)
    chosen = selected({one.name: one.snapshot for one in study.variants if one.snapshot}, request)
    return Study(tuple(structs.replace(one, snapshot=chosen.get(one.name)) for one in study.variants))


_OF_CELLS = Cell.__struct_fields__


def _held_once(side: Snapshot, held: dict[CellKey, Cell]) -> Snapshot:
    """The snapshot with whatever a cell has in common with its last one as one object: in a night few cells move.

    Args:
        held: the last cell of each key, which becomes this snapshot's.
    """
    for cell in side.cells:
        last = held.get(cell.key, cell)
        same = {name: old for name in _OF_CELLS if (old := getattr(last, name)) == getattr(cell, name)}
        held[cell.key] = last if len(same) == len(_OF_CELLS) else structs.replace(cell, **same)
    return structs.replace(side, cells=tuple(held[cell.key] for cell in side.cells))


# What moved in each release, and why, as the report of each step tells it.
#
# A cell is held against the last release that measured it: where it did not compile in between, that is not its
# neighbour, and the step across the gap is reported for such cells alone.


_CAUSES = 10
_UNSTABLE = "not deterministic: the same command gives several artifacts, and no pair of them explains the step"
_SINCE = Baseline("the last release that measured the cell")
Moves = dict[tuple[str, CellKey], Move]
"""Release and cell → what moved."""


def explained_history(study: Study, config: Config, texts: Texts = no_texts) -> History:
    """What happened between neighbours that were measured, and in each cell since it was measured before."""
    steps, moves = list[HistoryStep](), Moves()
    for (before, base), (name, head), gaps, across in neighbours(study.variants, lambda cell: cell.measured):
        report = reported(config, base, head, Baseline(before), texts)
        steps.append(_step(before, name, gaps, report))
        moves |= _moves(before, name, report, config)
        for (earlier, side), keys in across:
            old, new = (
                structs.replace(one, cells=tuple(cell for cell in one.cells if cell.key in keys))
                for one in (side, head)
            )
            moves |= _moves(earlier, name, reported(config, old, new, _SINCE, texts), config)
    unjudged = [METRIC_BY_ID[id_].label for id_ in TRACKED if not METRIC_BY_ID[id_].exact and id_ not in config.noise]
    why = "no move is told, as nobody knows how much it varies; calibrate measures that"
    notes = (f"{' and '.join(unjudged)}: {why}",) if unjudged else ()
    return History(study, moves, tuple(steps), totals_of(study), notes)


def _moves(since: str, name: str, report: Report, config: Config) -> Moves:
    """What moved in the cells of a report that both sides measured."""
    moves = Moves()
    for delta in report.deltas:
        if not (delta.base and delta.head and delta.base.measured and delta.head.measured):
            continue
        moved = [one for id_ in TRACKED if (one := delta.metrics[id_]).change and _counts(one, config)]
        if not moved:
            continue
        changes = {one.id: one.change or 0 for one in moved}
        ranges = {one.id: both for one in moved if (both := range_of(difference(*one.sides)))}
        explanation = report.explanations.get(delta.key)
        cause, why = (explanation.cause, explanation.why) if explanation else (None, _UNSTABLE if delta.noise else "")
        words = "; ".join(filter(None, (_flags(delta.base.command, delta.head.command), why)))
        moves[name, delta.key] = Move(since, changes, cause, words, ranges)
    return moves


def _flags(*commands: str) -> str:
    """That both releases compiled the cell with other flags, which the program did not just call by another name."""
    left, right = ([flag for flag in flags_of(one) if flag != LIFTED_LIMIT_FLAG] for one in commands)
    gone, new = ([flag for flag in one if flag not in other] for one, other in ((left, right), (right, left)))
    if not (left and right) or not (gone or new):
        return ""
    return f"compiled with other flags ({', '.join([*(f'without {flag}' for flag in gone), *new])})"


def _counts(metric: MetricDelta, config: Config) -> bool:
    """False for what another run may have given as well."""
    if METRIC_BY_ID[metric.id].exact:
        return True
    band = config.noise.get(metric.id)
    return band is not None and abs(metric.change or 0) > band.value * max(metric.base or 0, metric.head or 0)


def _step(base: str, head: str, gaps: tuple[str, ...], report: Report) -> HistoryStep:
    total, states = everything(build_facts(report)), [delta.state for delta in report.deltas]
    roots = [root for root in report.root_causes if root.total.absolute_bytes][:_CAUSES]
    causes = (
        StepCause(root.cause, root.what, root.models, root.targets, root.total.net_bytes, root.total.absolute_bytes)
        for root in roots
    )
    sizes = (total.cells, lowest(total.base), lowest(total.head), total.larger, total.smaller)
    counts = (states.count("newly-broken"), states.count("fixed"))
    return HistoryStep(base, head, gaps, *sizes, *counts, tuple(causes), range_of(total.base), range_of(total.head))


# Stored baselines along the first parents of a branch: which store is meant here, and its commits between two.


_SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True)
class StoredLine:
    """Commits with a stored baseline, from GOOD to BAD.

    Attributes:
        backward: True where GOOD is the newer end.
    """

    store: Store
    entries: tuple[Entry, ...]
    backward: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The commits, shortened."""
        return tuple(entry.sha[:_SHOWN_DIGITS] for entry in self.entries)

    def load(self, place: int) -> Snapshot:
        """The baseline at a place of the line; raises InputError, NetworkError."""
        return self.store.load(self.entries[place])


@contextmanager
def opened_store(chosen: BaselineChoice, git: Git, option: str) -> Iterator[Store]:
    """The store that is chosen; `auto` is the directory where it is there, else the data branch.

    Raises UsageError, with the option that asks for it, where only a run on GitHub can read it.
    """
    if chosen.store == "artifact":
        hint = "download them, and name the files or their directory instead"
        raise UsageError("baselines that are workflow artifacts can only be read on GitHub", where=option, hint=hint)
    directory = Path(chosen.directory)
    if chosen.store == "directory" or (chosen.store == "auto" and directory.is_dir()):
        yield DirectoryStore(directory, write_atomically)
        return
    with DataBranch(git, chosen.branch, default_branch=git.default_branch()) as store:
        yield store


def default_line(git: Git, most: int) -> tuple[str, ...]:
    """The default branch's newest commit as origin has it, and at most so many first parents; empty without one."""
    name = git.default_branch()
    sha = (git.resolve(f"origin/{name}") or git.resolve(name)) if name else None
    return (sha, *git.ancestors(sha, most)) if sha else ()


@contextmanager
def stored_line(config: Config, top: Path, good: str, bad: str, cancel: Cancel) -> Iterator[StoredLine]:
    """The stored commits from GOOD to BAD, both refs of the repository at `top`.

    Raises UsageError where a ref names no commit, has no baseline, or neither is a first-parent ancestor of the other.
    """
    git = Git(top, cancel)
    ends = tuple(_commit(git, ref) for ref in (good, bad))
    if ends[0] == ends[1]:
        raise UsageError("GOOD and BAD are the same commit", where=bad, hint="name two between which the value moved")
    line, backward = _way(git, ends[0], ends[1], config.baseline.ancestors)
    with opened_store(config.baseline, git, "--stored") as store:
        at = by_commit(store, config.report_id)
        for ref, sha in zip((good, bad), ends, strict=True):
            if sha not in at:
                hint = "name commits of the default branch whose run has stored one"
                raise UsageError("no baseline is stored for this commit", where=ref, hint=hint)
        places = [at[sha] for sha in line if sha in at]
        entries = tuple(each[0] if len(each) == 1 else store.in_order(each)[-1] for each in places)
        yield StoredLine(store, entries, backward)


def _commit(git: Git, ref: str) -> str:
    sha = git.resolve(ref)
    if sha is None:
        raise UsageError("is no commit, branch or tag here", where=ref, hint="with --stored, name commits")
    return sha


def _way(git: Git, good: str, bad: str, most: int) -> tuple[list[str], bool]:
    """The commits from good to bad, both with them, and whether good is the newer one."""
    for newer, older in ((bad, good), (good, bad)):
        line = [newer, *git.ancestors(newer, most)]
        if older in line:
            way = line[: line.index(older) + 1]
            return (way, True) if newer == good else (way[::-1], False)
    what = f"neither is a first parent of the other, within {most} commits"
    raise UsageError(what, where=f"{good[:_SHOWN_DIGITS]} and {bad[:_SHOWN_DIGITS]}", hint="see baseline.ancestors")


CONFIGURED = "configured"
"""In place of the name of a store: the configuration's own."""


def last_stored(where: str, last: int, config: Config, request: Request, show: Show, cancel: Cancel) -> Study:
    """The last so many baselines of the default branch.

    `where`: CONFIGURED, `data-branch`, `directory`, or a directory.
    """
    choice = config.baseline
    if where == "data-branch":
        choice = structs.replace(choice, store="data-branch")
    elif where != CONFIGURED:
        choice = structs.replace(
            choice, store="directory", directory=choice.directory if where == "directory" else where
        )
    git = Git(request.config.resolve().parent if request.config else Path.cwd(), cancel)
    with opened_store(choice, git, "--store") as store:
        line = default_line(git, config.baseline.ancestors)
        return stored_study(store, config.report_id, line, last, request, show.say)
