"""Measure the releases of a history together. A release that cannot be had is a gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from packaging.version import InvalidVersion, Version

from bot.core.snapshot import Snapshot
from bot.core.spec import release_in, short_name
from bot.core.study import GAPS, Pair, Study, Variant, compiler_name, named_apart
from bot.errors import CompilerUnavailable
from bot.study.candidates import version_of
from bot.study.prepare import Work
from bot.study.side_plan import SidePlan
from bot.study.snapshot_files import is_snapshot, stored_sides
from bot.system.files import temporary_directory


def release_study(specs: Sequence[str], work: Work) -> Study:
    """Return each release with its snapshot, or the reason why it has none.

    They are sorted by version. All releases that can be fetched are measured together,
    so that no core is idle.

    Raises:
        InputError: a snapshot cannot be read.
        UsageError: nothing is selected.
        CompilerUnavailable: no release can be fetched.
    """
    specs = tuple(dict.fromkeys(work.release(spec) or spec for spec in specs))
    snapshots = stored_sides(dict(zip(specs, specs, strict=True)))
    snapshots = work.selected(snapshots, must_match=len(snapshots) == len(specs))
    plans, missing = _plans([spec for spec in specs if spec not in snapshots], work)
    sides = work.measured_variants(list(plans.values()), snapshots, _neighbours)
    variants = []
    for spec in specs:
        variants.append(_variant(spec, sides.get(spec), missing.get(spec, "")))
    study = named_apart(_each_once(variants, work.show.say))
    if len(missing) == len(specs):
        first = study.variants[0]
        raise CompilerUnavailable(
            "no release is available", where=first.spec, hint=first.reason
        )
    return _by_version(study, work.show.say)


def _plans(
    specs: Sequence[str], work: Work
) -> tuple[dict[str, SidePlan], dict[str, str]]:
    """Return SPEC → the side, ready to be measured; and SPEC → why it cannot be."""
    plans: dict[str, SidePlan] = {}
    missing: dict[str, str] = {}
    if specs:
        work.planned()  # what is wrong with the selectors is wrong for all releases
    for spec in dict.fromkeys(specs):
        try:
            plan = work.prepare(short_name(spec), spec)
            _require_start(plan, work)
            plans[spec] = replace(plan, label=spec)
        except GAPS as error:
            missing[spec] = error.line
            work.show.say(f"left out: {error.line}")
    return plans, missing


def _require_start(plan: SidePlan, work: Work) -> None:
    """Start the compiler of a side once: one that cannot start would end all."""
    with (
        temporary_directory("run-") as scratch,
        plan.compiler.at_work(work.session(scratch)),
    ):
        pass


def _neighbours(sides: Mapping[str, Snapshot]) -> list[Pair]:
    """Return each side with the one before it, as `_by_version` orders them."""
    versions = dict[str, Version]()
    for spec, side in sides.items():
        version = _version(side)
        if version is not None:
            versions[spec] = version
    in_order = list(sides)
    if len(versions) == len(sides):
        in_order.sort(key=versions.__getitem__)
    return [Pair(before, after) for before, after in pairwise(in_order)]


def _variant(spec: str, side: Snapshot | None, reason: str) -> Variant:
    """Return the snapshot of a SPEC, or the gap with its reason."""
    if side is None:
        return Variant(short_name(spec), spec, reason=reason)
    name = compiler_name(side.compiler)
    if is_snapshot(spec):
        file_name = Path(spec).name
        return Variant(name or file_name, file_name, side)
    return Variant(name, side.compiler.spec, side)


def _each_once(
    variants: Sequence[Variant], say: Callable[[str], None]
) -> list[Variant]:
    """Return the variants with each compiler once; of several the last one.

    The variants that are left out are reported to the user.
    """
    last = dict[object, Variant]()
    for place, variant in enumerate(variants):
        # a gap, or a compiler without a digest, is never the same as another
        same: object = place
        if (side := variant.snapshot) and side.compiler.digest:
            same = (
                side.compiler.digest,
                side.flags,
                frozenset(side.models.items()),
                frozenset(side.targets.items()),
            )
        if before := last.pop(same, None):
            say(
                f"left out: {before.spec}: the same compiler, models, targets and flags"
                f" as {variant.spec}"
            )
        last[same] = variant
    return list(last.values())


def _by_version(study: Study, say: Callable[[str], None]) -> Study:
    """Return the study sorted by version; unsorted if a variant has no version."""
    versions: dict[str, Version] = {}
    for variant in study.variants:
        if variant.snapshot is None:
            version = version_of(variant.spec)
        else:
            version = _version(variant.snapshot)
        if version is None:
            say(
                f"{variant.name} has a version that cannot be ordered: releases keep the"
                " order of the command"
            )
            return study
        versions[variant.name] = version
    return Study(
        tuple(sorted(study.variants, key=lambda variant: versions[variant.name]))
    )


def _version(side: Snapshot) -> Version | None:
    """Return the version of a compiler's release, else the version that it reports.

    Wheels of 3.13.0 report `3.13.0rc20261016`. Return None for text that is no version.
    """
    name = release_in(side.compiler.spec) or side.compiler.version
    try:
        return Version(name)
    except InvalidVersion:
        return None
