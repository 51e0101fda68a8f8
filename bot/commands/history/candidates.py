"""Which candidates stand between GOOD and BAD, and in which order: releases, wheels of a directory, or snapshots."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from bot.compiler.tools.offered import between, newest
from bot.compiler.tools.wheels import only_fitting
from bot.core.rules.spec import MOVING, PROJECT, Places, release_of
from bot.errors import CompilerUnavailable, UsageError
from bot.measurement.naming import in_order
from bot.system.processes import Cancel

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
