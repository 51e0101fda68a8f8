"""Find the candidates of a bisection between its two ends, in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from bot.compiler.wheels import between, newest, only_fitting
from bot.core.spec import MOVING, Places, meant_spec, release_in
from bot.errors import CompilerUnavailable, UsageError
from bot.study.specs import WHEELS, in_order, matched
from bot.system.cancel import Cancel

_AMONG = (
    "name the candidates with --among: a directory of wheels, or snapshots in order"
)


def candidates_of(
    good: str, bad: str, among: Sequence[str], places: Places, cancel: Cancel
) -> tuple[tuple[str, ...], bool]:
    """Return the candidates from GOOD to BAD, and whether GOOD is the newer end.

    Both ends are among the candidates.

    Args:
        among: the candidates between, in their order: SPECs, globs, directories of
            wheels or snapshots. If it is empty, the candidates are looked up.

    Raises:
        UsageError: the candidates are not known.
    """
    if good in MOVING:
        good = newest(good, places, cancel)
    if bad in MOVING:
        bad = newest(bad, places, cancel)
    if _same(good, bad):
        raise UsageError(
            "GOOD and BAD are the same",
            where=bad,
            hint="name two ends with different values",
        )
    ends = _ordering((good, bad))
    backward = ends is not None and ends[good] > ends[bad]
    first = places.release(good)
    last = places.release(bad)
    if not among and first and last:
        middle = between(first, new=last, places=places, cancel=cancel)
        releases = (first, *middle, last)
        return tuple(f"{places.project}=={release}" for release in releases), backward
    if not among:
        among = _common_folder(good, bad)
    if not among:
        raise UsageError(
            "the candidates between the two are unknown",
            where=f"{good} and {bad}",
            hint=_AMONG,
        )
    specs = dict[str, None]()
    for place in among:
        specs |= dict.fromkeys(expanded(place))
    return _between_ends(good, bad, list(specs), backward=backward)


def _common_folder(good: str, bad: str) -> tuple[str, ...]:
    """Return the folder of both ends if they are wheels of one folder, else ()."""
    if not good.endswith(".whl") or not bad.endswith(".whl"):
        return ()
    folder = Path(good).parent
    if folder.resolve() != Path(bad).parent.resolve():
        return ()
    return (str(folder),)


def _between_ends(
    good: str, bad: str, specs: Sequence[str], *, backward: bool
) -> tuple[tuple[str, ...], bool]:
    """Return the ends, the SPECs between them, and whether GOOD is the newer end.

    If all have versions, these decide the order. Otherwise the places of the ends in
    `specs` do, if they are there.
    """
    inner = [spec for spec in specs if not _same(spec, good) and not _same(spec, bad)]
    versions = _ordering([good, *inner, bad])
    if versions is not None:
        low, high = sorted((versions[good], versions[bad]))
        inside = set()
        for spec in inner:
            if low < versions[spec] < high:
                inside.add(spec)
        ordered = sorted(inside, key=versions.__getitem__, reverse=backward)
        return (good, *ordered, bad), backward
    begin = _index_of(good, specs)
    end = _index_of(bad, specs)
    if begin is not None and end is not None and begin > end:
        return (good, *specs[end + 1 : begin][::-1], bad), True
    start = 0 if begin is None else begin + 1
    return (good, *specs[start:end], bad), backward


def _index_of(wanted: str, specs: Sequence[str]) -> int | None:
    for index, spec in enumerate(specs):
        if _same(spec, wanted):
            return index
    return None


def _same(spec: str, other_spec: str) -> bool:
    if release_in(spec) or release_in(other_spec):
        return release_in(spec) == release_in(other_spec)
    return Path(spec).absolute() == Path(other_spec).absolute()


def expanded(place: str) -> list[str]:
    """Return the SPECs that a word of the command line stands for, in their order.

    Raises:
        UsageError: the word stands for no SPEC.
    """
    if release_in(place):
        return [place]
    path = Path(place)
    if path.is_dir():
        problem = f"holds no {WHEELS} and no snapshot"
        wheels = in_order(path.glob(WHEELS))
        snapshots = in_order(path.glob("*.json"))
    elif path.exists():
        return [str(path)]
    else:
        problem = "is not a release, a file or a directory, and matches no file"
        snapshots = matched(str(path))
        wheels = [path for path in snapshots if path.match(WHEELS)]
    fitting = _fitting_wheels(wheels)
    snapshots = [path for path in snapshots if path not in wheels]
    if fitting:
        versions = _ordering(fitting)
        if versions:
            return sorted(fitting, key=versions.__getitem__)
        return fitting
    if snapshots:
        return list(map(str, snapshots))
    if wheels:
        problem = f"holds no {WHEELS} for this machine"
    meant = meant_spec(place)
    hint = f"did you mean {meant}?" if meant else _AMONG
    raise UsageError(problem, where=place, hint=hint)


def _fitting_wheels(wheels: Sequence[Path]) -> list[str]:
    """Return the wheel for this machine of each version in each directory."""
    wheels_of_version = dict[tuple[Path, Version], list[Path]]()
    for wheel in wheels:
        version = version_of(str(wheel))
        if version is not None:
            wheels_of_version.setdefault((wheel.parent, version), []).append(wheel)
    fitting = list[str]()
    for (directory, _), same_version in wheels_of_version.items():
        try:
            fitting.append(str(only_fitting(same_version, directory)))
        except CompilerUnavailable:  # a wheel of another platform
            continue
    return fitting


def _ordering(specs: Sequence[str]) -> dict[str, Version] | None:
    """Return the version of each SPEC; None unless all versions are different.

    Builds of commits may share a version, or add letters to it.
    """
    versions = dict[str, Version]()
    for spec in specs:
        version = version_of(spec)
        if version is not None and version.local is None:
            versions[spec] = version
    if len(set(versions.values())) != len(specs):
        return None
    return versions


def version_of(spec: str) -> Version | None:
    """Return the version of a release or a wheel file; None if the name has none."""
    if release := release_in(spec):
        return Version(release)
    if not spec.endswith(".whl"):
        return None
    try:
        return parse_wheel_filename(Path(spec).name)[1]
    except InvalidWheelFilename:
        return None
