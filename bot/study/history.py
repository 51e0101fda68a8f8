"""What `--releases` asks for: ranges, lists and globs of snapshots, as SPECs in their order."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from bot.compiler.cell_cache import CellCache, TextStore
from bot.compiler.compiler import Session
from bot.compiler.toolchain import between, newest
from bot.config.configuration import Config
from bot.core.baseline import Entry
from bot.core.snapshot import CompilerInfo, Snapshot
from bot.core.spec import MOVING, Places, release_in, release_of
from bot.core.study import SHORT, Study, Variant, named_apart, of_commit, united
from bot.errors import CompilerUnavailable, InputError, UsageError
from bot.store.entries import Store
from bot.study.between import exists, in_order, named_file
from bot.study.prepare import Request, Show, is_snapshot, load_snapshot, planned, prepare, repository_at, selected
from bot.study.recheck import recheck, repeat_unsteady
from bot.study.run import SidePlan, Workshop, measure_sides
from bot.system.files import is_writable, temporary_directory
from bot.system.processes import Cancel, Meter

_HINT = "write both ends, the older one first: 3.8.0..3.13.0"
_WHERE = "--releases"


def asked_for(texts: Sequence[str], places: Places, cancel: Cancel, say: Callable[[str], None]) -> tuple[str, ...]:
    """SPECs: each range with all releases offered between its ends, each glob with all snapshots that it matches.

    Raises UsageError for a range without two ends in order, CompilerUnavailable where there is no list of releases.
    """
    words = [word for text in texts for word in _words(text)]
    if not words:
        raise UsageError("names no release", where=_WHERE, hint=_HINT)
    specs = [spec for word in words for spec in _specs(word, places, cancel)]
    if len(specs) > len(words):
        say(f"releases: {', '.join(release_of(spec) or Path(spec).name for spec in specs)}")
    return tuple(specs)


def _words(text: str) -> list[str]:
    return [text] if exists(text) else [word.strip() for word in text.split(",") if word.strip()]


def _specs(word: str, places: Places, cancel: Cancel) -> Iterator[str]:
    first, dots, last = word.partition("..")
    if dots and any(map(_is_end, (first, last))) and not exists(word):
        if not (_is_end(first) and _is_end(last)):
            raise UsageError("is no range of releases", where=f"{_WHERE} {word}", hint=_HINT)
        old, new = (newest(end, places, cancel) if end in MOVING else release_of(end) or end for end in (first, last))
        if Version(old) > Version(new):
            what = "goes from a newer release to an older one"
            raise UsageError(what, where=f"{_WHERE} {word}", hint=f"write {last}..{first}")
        yield from dict.fromkeys((old, *between(old, new, places, cancel), new))
    elif set(word) & set("*?[") and (snapshots := _snapshots(word)):
        yield from snapshots
    else:
        yield named_file(word)


def _is_end(text: str) -> bool:
    return text in MOVING or release_of(text) is not None


def _snapshots(pattern: str) -> list[str]:
    paths = in_order(map(Path, glob.glob(pattern, recursive=True)))
    return [str(path) for path in paths] if all(path.suffix == ".json" for path in paths) else []


# Many releases measured together: those that can be had fill the processors, those that cannot are told why.


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
    measured = _measured(plans, known, request, config, show, cancel)
    study = united(_variant(spec, measured, missing, plans) for spec in specs)
    releases = study.variants
    if len(missing) == len(set(specs)):
        raise CompilerUnavailable("not one release can be had", where=releases[0].spec, hint=releases[0].reason)
    # by version; as they were asked for where one tells none
    versions = {one.name: _version(one.compiler) if one.compiler else _parsed(one.name) for one in releases}
    if without := next((name for name, version in versions.items() if version is None), None):
        show.say(f"{without} tells no version that can be ordered: releases are in the order in which they were named")
        return study
    return Study(tuple(sorted(releases, key=lambda one: versions[one.name] or _ZERO)))


def _plans(
    specs: Sequence[str], request: Request, config: Config, show: Show, cancel: Cancel
) -> tuple[dict[str, SidePlan], dict[str, str]]:
    """SPEC → the side, ready to be measured; SPEC → why it cannot be."""
    if not specs:
        return {}, {}
    repository = repository_at(request.config, cancel)
    planned(request, config, repository)  # what is wrong with the selectors is wrong for all releases
    plans, missing = dict[str, SidePlan](), dict[str, str]()
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


def _measured(
    plans: dict[str, SidePlan], known: dict[str, Snapshot], request: Request, config: Config, show: Show, cancel: Cancel
) -> dict[str, Snapshot]:
    """All snapshots, those that were measured here doubted, each against the one before."""
    if not plans:
        return known
    with show.progress() as progress:
        keeps = is_writable(request.cache.absolute())
        cache, texts = CellCache(request.cache, keeps), TextStore(request.cache, keeps)
        workshop = Workshop(cache, request.jobs, config.timeout_seconds, cancel, progress, texts)
        snapshots = {**known, **measure_sides(list(plans.values()), workshop)}
        before: Snapshot | None = None
        for spec in sorted(snapshots, key=lambda spec: _version(snapshots[spec].compiler) or Version("0")):
            if spec in plans and before is not None:
                plan, sides = replace(plans[spec], label="head"), {"base": before, "head": snapshots[spec]}
                snapshots[spec] = recheck([plan], sides, config, workshop)["head"]
            before = snapshots[spec]
        return repeat_unsteady(list(plans.values()), snapshots, config, workshop)


def _variant(spec: str, measured: dict[str, Snapshot], missing: dict[str, str], plans: dict[str, SidePlan]) -> Variant:
    snapshot = measured.get(spec)
    shown = plans[spec].compiler.info.spec if spec in plans else Path(spec).name if is_snapshot(spec) else spec
    if snapshot is None:
        return Variant(release_of(spec) or Path(spec).name, shown, reason=missing[spec])
    name = release_in(snapshot.compiler.spec) or snapshot.compiler.spec or snapshot.compiler.version or shown
    return Variant(name, shown, snapshot)


_ZERO = Version("0")


def _version(compiler: CompilerInfo) -> Version | None:
    """Of the release that it is, else as it calls itself: wheels of 3.13.0 say `3.13.0rc20261016`."""
    return _parsed(release_in(compiler.spec) or compiler.version)


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
    study = named_apart([_stored(store, entry) for entry in _stored_in_order(store, entries, line, say)[-last:]])
    chosen = selected({one.name: one.snapshot for one in study.variants if one.snapshot}, request)
    return Study(tuple(replace(one, snapshot=chosen.get(one.name)) for one in study.variants))


def _stored_in_order(
    store: Store, entries: Sequence[Entry], line: Sequence[str], say: Callable[[str], None]
) -> Sequence[Entry]:
    place = {sha: -at for at, sha in enumerate(line)}
    stored = store.in_order(entries)
    there = sorted((entry for entry in stored if entry.sha in place), key=lambda entry: place[entry.sha])
    if not there:
        say("in the order in which they were stored: no baseline is of a commit of the default branch here")
    elif other := len(stored) - len(there):
        say(f"left out: {other} of {len(stored)} stored baselines, of no commit on the default branch's line here")
    return there or stored


def _stored(store: Store, entry: Entry) -> Variant:
    try:
        return of_commit(entry.sha, store.load(entry))
    except InputError as error:
        return Variant(entry.sha[:SHORT], entry.sha, reason=error.line)
