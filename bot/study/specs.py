"""Resolve the words of a command line to compilers and snapshots.

They name the file of a side, the releases of a history, or the candidates of a
bisection.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from bot.compiler.wheels import between, newest, only_fitting
from bot.core.spec import (
    MOVING,
    Places,
    is_release,
    meant_spec,
    release_in,
    release_of,
    short_name,
)
from bot.errors import CompilerUnavailable, UsageError
from bot.show.filters import plural
from bot.system.processes import Cancel

SNAPSHOT = "snapshot.json"  # The name under which a directory's snapshot is looked for
_WHEELS = "iree_base_compiler-*.whl"
_ONE = (
    "name one wheel of iree-base-compiler, one snapshot.json, or a directory that"
    " holds one"
)
_RANGE = "write both ends, the older release first: 3.8.0..3.13.0"
_AMONG = (
    "name the candidates with --among: a directory of wheels, or snapshots in order"
)
_RELEASES = "--releases"


def exists(spec: str) -> bool:
    """Return whether a text is the path of something; no text is too odd for that."""
    try:
        return Path(spec).exists()
    except (OSError, ValueError):  # too long, a null character
        return False


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Sort paths by their versions, or by the numbers in their names: 9 before 10.

    Versions count where all paths are in one directory and are named by versions.
    """
    ordered = sorted(paths, key=_numbers)
    if len({path.parent for path in ordered}) != 1:
        return ordered
    try:
        return sorted(ordered, key=lambda wheel: Version(wheel.stem))
    except InvalidVersion:
        return ordered


def _numbers(path: Path) -> list[tuple[int, str]]:
    """Return a sort key in which the digits of a path count as numbers."""
    key = []
    for index, part in enumerate(re.split(r"([0-9]+)", str(path))):
        if index % 2:
            key.append((int(part), ""))
        else:
            key.append((-1, part))
    return key


def _matched(pattern: str) -> list[Path]:
    return in_order(map(Path, glob.glob(pattern, recursive=True)))


def _has_wildcard(spec: str) -> bool:
    return bool(set("*?[") & set(spec))


def named_file(spec: str) -> str:
    """Resolve a glob to the one path that it matches, and a directory to its snapshot.

    Of several wheels the compiler's counts, and of several of these the one for this
    machine. Any other SPEC is returned as it is.

    Raises:
        UsageError: a glob matches nothing, or several things that could be meant.
        CompilerUnavailable: of several wheels of the compiler none is for this machine,
            or more than one is.
    """
    if is_release(spec):
        return spec
    path = spec
    if _has_wildcard(spec) and release_of(spec) is None and not exists(spec):
        path = _only_match(spec)
    if not exists(path) or not (Path(path) / SNAPSHOT).is_file():
        return path
    if any(Path(path).glob(_WHEELS)):
        raise UsageError(
            f"holds a {SNAPSHOT} and a wheel of the compiler",
            where=path,
            hint="name one of them",
        )
    return str(Path(path) / SNAPSHOT)


def _only_match(pattern: str) -> str:
    """Return the one path that a glob means; see `named_file`."""
    paths = _matched(pattern)
    wheels = [path for path in paths if path.match(_WHEELS)]
    if len(wheels) > 1:
        return str(only_fitting(wheels, Path(pattern)))
    meant = wheels or [path for path in paths if path.suffix != ".whl"]
    if len(meant) == 1:
        return str(meant[0])
    if meant:
        names = ", ".join(map(str, meant[:4]))
        if len(meant) > 4:
            names += " …"
        problem = f"matches {len(meant)} paths: {names}"
    elif paths:
        problem = f"matches {plural(len(paths), 'wheel')}, but none is of the compiler"
    else:
        problem = "matches no file"
    raise UsageError(problem, where=pattern, hint=_ONE)


def releases_of(
    texts: Sequence[str], places: Places, cancel: Cancel, say: Callable[[str], None]
) -> tuple[str, ...]:
    """Return the SPECs of a history, with all ranges and globs expanded.

    A range stands for all releases offered between its ends, a glob for all snapshots
    that it matches.

    Raises:
        UsageError: a range has not two ends in order.
        CompilerUnavailable: there is no list of releases.
    """
    words = list[str]()
    for text in texts:
        parts = [text]
        if not exists(text):
            parts = [part.strip() for part in text.split(",")]
        words.extend(part for part in parts if part)
    if not words:
        raise UsageError("names no release", where=_RELEASES, hint=_RANGE)
    specs = [spec for word in words for spec in _specs(word, places, cancel)]
    if len(specs) > len(words):
        say(f"releases: {', '.join(map(short_name, specs))}")
    return tuple(specs)


def _specs(word: str, places: Places, cancel: Cancel) -> list[str]:
    """Return the SPECs that one word of --releases stands for."""
    where = f"{_RELEASES} {word}"
    first, dots, last = word.partition("..")
    are_ends = [
        end in MOVING or places.release(end) is not None for end in (first, last)
    ]
    meant = [meant_spec(end) for end in (first, last)]
    if dots and any(meant) and not exists(word):
        hint = f"did you mean {meant[0] or first}..{meant[1] or last}?"
        raise UsageError("is not a range of releases", where=where, hint=hint)
    if not dots or not any(are_ends) or (exists(word) and not all(are_ends)):
        return _snapshots_or_file(word)
    if not all(are_ends):
        raise UsageError("is not a range of releases", where=where, hint=_RANGE)
    old = _end_release(first, places, cancel)
    new = _end_release(last, places, cancel)
    if Version(old) > Version(new):
        problem = "goes from a newer release to an older one"
        raise UsageError(problem, where=where, hint=f"write {last}..{first}")
    middle = between(old, new=new, places=places, cancel=cancel)
    return list(dict.fromkeys((old, *middle, new)))


def _snapshots_or_file(word: str) -> list[str]:
    """Return all snapshots that a glob matches, or the one file that a word names."""
    if _has_wildcard(word):
        paths = _matched(word)
        if paths and all(path.suffix == ".json" for path in paths):
            return list(map(str, paths))
    return [named_file(word)]


def _end_release(end: str, places: Places, cancel: Cancel) -> str:
    """Return the release at one end of a range."""
    if end in MOVING:
        return newest(end, places, cancel)
    return places.release(end) or end


def expanded(place: str) -> list[str]:
    """Return the SPECs that a word of the command line stands for, in their order.

    Raises:
        UsageError: the word stands for none.
    """
    if release_in(place):
        return [place]
    path = Path(place)
    if path.is_dir():
        problem = f"holds no {_WHEELS} and no snapshot"
        wheels = in_order(path.glob(_WHEELS))
        snapshots = in_order(path.glob("*.json"))
    elif path.exists():
        return [str(path)]
    else:
        problem = "is not a release, a file or a directory, and matches no file"
        snapshots = _matched(str(path))
        wheels = [path for path in snapshots if path.match(_WHEELS)]
    fitting = _fitting_wheels(wheels)
    if fitting:
        versions = _ordering(fitting)
        if versions:
            return sorted(fitting, key=versions.__getitem__)
        return fitting
    if snapshots:
        return list(map(str, snapshots))
    meant = meant_spec(place)
    hint = f"did you mean {meant}?" if meant else _AMONG
    raise UsageError(problem, where=place, hint=hint)


def _fitting_wheels(wheels: Sequence[Path]) -> list[str]:
    """Return the wheel for this machine of each version in each directory."""
    wheels_of_version = dict[tuple[Path, Version], list[Path]]()
    for wheel in wheels:
        version = _version(str(wheel))
        if version is not None:
            wheels_of_version.setdefault((wheel.parent, version), []).append(wheel)
    fitting = list[str]()
    for (directory, _), same_version in wheels_of_version.items():
        try:
            fitting.append(str(only_fitting(same_version, directory)))
        except CompilerUnavailable:  # of another platform
            continue
    return fitting


def candidates_of(
    good: str, bad: str, among: Sequence[str], places: Places, cancel: Cancel
) -> tuple[tuple[str, ...], bool]:
    """Return the candidates from GOOD to BAD, and whether GOOD is the newer end.

    Both ends are among the candidates.

    Args:
        among: the candidates between, in their order: SPECs, globs, directories of
            wheels or snapshots. () to find them out.

    Raises:
        UsageError: nobody says which candidates there are.
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
    specs = list(dict.fromkeys(spec for place in among for spec in expanded(place)))
    return _between_ends(good, bad, specs, backward=backward)


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
    """Return the SPECs between the ends, with them, and whether GOOD is the newer end.

    Versions decide where they order all; otherwise the places of the ends in `specs`
    do, as far as the ends have one.
    """
    inner = [spec for spec in specs if not _same(spec, good) and not _same(spec, bad)]
    versions = _ordering([good, *inner, bad])
    if versions is not None:
        low, high = sorted((versions[good], versions[bad]))
        inside = {spec for spec in inner if low < versions[spec] < high}
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


def _ordering(specs: Sequence[str]) -> dict[str, Version] | None:
    """Return the version of each SPEC, or None unless all have versions of their own.

    Builds of commits may share a version, or add letters to it.
    """
    versions = dict[str, Version]()
    for spec in specs:
        version = _version(spec)
        if version is not None and version.local is None:
            versions[spec] = version
    if len(set(versions.values())) != len(specs):
        return None
    return versions


def _same(spec: str, other_spec: str) -> bool:
    if release_in(spec) or release_in(other_spec):
        return release_in(spec) == release_in(other_spec)
    return Path(spec).absolute() == Path(other_spec).absolute()


def _version(spec: str) -> Version | None:
    """Return the version of a release or a wheel file; None if the name has none."""
    if release := release_in(spec):
        return Version(release)
    if not spec.endswith(".whl"):
        return None
    try:
        return parse_wheel_filename(Path(spec).name)[1]
    except InvalidWheelFilename:
        return None
