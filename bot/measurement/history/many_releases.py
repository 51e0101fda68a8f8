"""Many releases measured together: those that can be had fill the processors, those that cannot are told why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from bot.compiler.caches.cell_cache import CellCache, TextStore
from bot.compiler.tools.probe import known_measuring_options
from bot.config.configuration import Config
from bot.core.history.repeats import Found, once
from bot.core.rules.spec import release_in, release_of
from bot.core.values.snapshot import CompilerInfo, Snapshot
from bot.errors import CompilerUnavailable, UsageError
from bot.measurement.prepare import Request, Show, is_snapshot, load_snapshot, planned, prepare, repository_at, selected
from bot.measurement.recheck import recheck, repeat_unsteady
from bot.measurement.run import SidePlan, Workshop, measure_sides
from bot.system.files import is_writable, temporary_directory
from bot.system.processes import Cancel


def found_releases(
    specs: Sequence[str], request: Request, config: Config, show: Show, cancel: Cancel
) -> tuple[Found, ...]:
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
    releases = once(_found(spec, measured, missing, plans) for spec in specs)
    if len(missing) == len(set(specs)):
        raise CompilerUnavailable("not one release can be had", where=releases[0].spec, hint=releases[0].reason)
    # by version; as they were asked for where one tells none
    versions = [_version(one.snapshot.compiler) if one.snapshot else _parsed(one.name) for one in releases]
    if None in versions:
        without = releases[versions.index(None)].name
        show.say(f"{without} tells no version that can be ordered: releases are in the order in which they were named")
        return releases
    ordered = sorted(
        zip(versions, range(len(releases)), releases, strict=True), key=lambda one: (one[0] or _ZERO, one[1])
    )
    return tuple(one for _, _, one in ordered)


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
                known_measuring_options(plan.toolchain, scratch, cancel)  # one that cannot start would end all
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


def _found(spec: str, measured: dict[str, Snapshot], missing: dict[str, str], plans: dict[str, SidePlan]) -> Found:
    snapshot = measured.get(spec)
    shown = plans[spec].toolchain.info.spec if spec in plans else Path(spec).name if is_snapshot(spec) else spec
    if snapshot is None:
        return Found(release_of(spec) or Path(spec).name, shown, None, missing[spec])
    name = release_in(snapshot.compiler.spec) or snapshot.compiler.spec or snapshot.compiler.version or shown
    return Found(name, shown, snapshot)


_ZERO = Version("0")


def _version(compiler: CompilerInfo) -> Version | None:
    """Of the release that it is, else as it calls itself: wheels of 3.13.0 say `3.13.0rc20261016`."""
    return _parsed(release_in(compiler.spec) or compiler.version)


def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
