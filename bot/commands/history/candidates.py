"""Which candidates stand between GOOD and BAD, and in which order: releases, wheels of a directory, or snapshots."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from bot.compiler.tools.offered import between, newest
from bot.compiler.tools.wheels import only_fitting
from bot.core.rules.spec import MOVING, PROJECT, Places, release_of
from bot.errors import CompilerUnavailable, UsageError
from bot.measurement.prepare import is_snapshot
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

    Args:
        among: those between, in their order: SPECs, globs, directories of wheels or snapshots; () to find them out.
    """
    good, bad = (newest(spec, places, cancel) if spec in MOVING else spec for spec in (good, bad))
    if _same(good, bad):
        raise UsageError("GOOD and BAD are the same", where=bad, hint="name two between which the value moved")
    ends = _version(good), _version(bad)
    backward = None not in ends and ends[0] > ends[1]  # type: ignore[operator]
    if not among and release_of(good) and release_of(bad):
        middle = between(release_of(good) or "", release_of(bad) or "", places, cancel)
        specs = (f"{PROJECT}=={release}" for release in (release_of(good), *middle, release_of(bad)))
        return Row(tuple(specs), backward)
    if not among and _is_wheel(good) and _is_wheel(bad) and Path(good).parent.resolve() == Path(bad).parent.resolve():
        among = (str(Path(good).parent),)
    if not among:
        raise UsageError("nothing says what lies between the two", where=f"{good} and {bad}", hint=_AMONG)
    return _cut(good, bad, [spec for place in among for spec in expanded(place)], backward=backward)


def _cut(good: str, bad: str, specs: list[str], *, backward: bool) -> Row:
    """The part of a row that lies between the ends, where these are in it."""
    places = [next((at for at, spec in enumerate(specs) if _same(spec, end)), None) for end in (good, bad)]
    turned = backward and len([spec for spec in specs if _version(spec)]) == len(specs)
    if None not in places:
        turned = places[0] > places[1]  # type: ignore[operator]
        backward = backward or turned
    first, last = places[::-1] if turned else places
    middle = specs[(-1 if first is None else first) + 1 : last]
    middle = [spec for spec in middle if not _same(spec, good) and not _same(spec, bad) and _is_inside(spec, good, bad)]
    return Row((good, *(middle[::-1] if turned else middle), bad), backward)


def _is_inside(spec: str, good: str, bad: str) -> bool:
    """False where versions say that it lies outside of the two."""
    version, ends = _version(spec), [_version(good), _version(bad)]
    known = [end for end in ends if end is not None]
    return version is None or len(known) < len(ends) or min(known) < version < max(known)


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
    path = Path(place).expanduser()
    if path.is_dir():
        found = _wheels(path) or [str(one) for one in sorted(path.glob("*.json"), key=_natural)]
        if not found:
            raise UsageError(f"holds no {_WHEELS} and no snapshot", where=place, hint=_AMONG)
        return found
    if release_of(place) or path.exists():
        return [str(path) if path.exists() else place]
    matched = sorted(map(Path, glob.glob(str(path), recursive=True)), key=_natural)
    if not matched:
        raise UsageError("is no release, file or directory, and matches none", where=place, hint=_AMONG)
    wheels = [one for one in matched if _is_wheel(one.name)]
    return _by_version(wheels) if wheels and not is_snapshot(matched[0].name) else [str(one) for one in matched]


def _wheels(directory: Path) -> list[str]:
    return _by_version(sorted(directory.glob(_WHEELS)))


def _by_version(wheels: Sequence[Path]) -> list[str]:
    """One wheel of each version that has one for this machine, the oldest first."""
    by_version: dict[Version, list[Path]] = {}
    for wheel in wheels:
        if (version := _version(str(wheel))) is not None:
            by_version.setdefault(version, []).append(wheel)
    found = []
    for version in sorted(by_version):
        try:
            found.append(str(only_fitting(by_version[version], wheels[0].parent)))
        except CompilerUnavailable:  # of another platform
            continue
    return found


def _natural(path: Path) -> list[tuple[int, str]]:
    """Names with numbers in the order of the numbers: 3.8.0 before 3.10.0."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", path.name)]
