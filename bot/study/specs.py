"""What words of a command line mean: the file of a side, the releases of a history, what a bisection looks at."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from bot.compiler.wheels import between, newest, only_fitting
from bot.core.spec import MOVING, Places, is_release, meant_spec, release_in, release_of
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
    """Whether a text is the path of something; no text is too odd for that."""
    try:
        return Path(spec).exists()
    except (OSError, ValueError):  # too long, a null character
        return False


def in_order(paths: Iterable[Path]) -> list[Path]:
    """By their versions where all in one directory are named by these, else by the numbers in names: 9 before 10."""

    def numbers(path: Path) -> list[tuple[int, str]]:
        parts = re.split(r"([0-9]+)", str(path))
        return [
            (int(part), "") if index % 2 else (-1, part)
            for index, part in enumerate(parts)
        ]

    ordered = sorted(paths, key=numbers)
    try:
        return (
            sorted(ordered, key=lambda wheel: Version(wheel.stem))
            if len({path.parent for path in ordered}) == 1
            else ordered
        )
    except InvalidVersion:
        return ordered


def _matched(pattern: str) -> list[Path]:
    return in_order(map(Path, glob.glob(pattern, recursive=True)))


def named_file(spec: str) -> str:
    """The SPEC with a glob replaced by the one path that it matches, and a directory by the snapshot that it holds.

    Of several wheels the compiler's counts, and of several of these the one for this
    machine. Any other SPEC is returned as it is.

    Raises UsageError where a glob matches nothing, or several things that could be
    meant; CompilerUnavailable: of several wheels of the compiler none is for this
    machine, or more than one is.
    """
    if is_release(spec):
        return spec
    path = spec
    if set("*?[") & set(spec) and release_of(spec) is None and not exists(spec):
        paths = _matched(spec)
        wheels = [path for path in paths if path.match(_WHEELS)]
        meant = wheels or [path for path in paths if path.suffix != ".whl"]
        if len(wheels) > 1:
            meant = [only_fitting(wheels, Path(spec))]
        if len(meant) != 1:
            problem = (
                f"matches {plural(len(paths), 'wheel')}, but none is of the compiler"
                if paths
                else "matches no file"
            )
            if meant:
                names = ", ".join(map(str, meant[:4])) + (
                    " …" if len(meant) > 4 else ""
                )
                problem = f"matches {len(meant)} paths: {names}"
            raise UsageError(problem, where=spec, hint=_ONE)
        path = str(meant[0])
    if not exists(path) or not (Path(path) / SNAPSHOT).is_file():
        return path
    if any(Path(path).glob(_WHEELS)):
        raise UsageError(
            f"holds a {SNAPSHOT} and a wheel of the compiler",
            where=path,
            hint="name one of them",
        )
    return str(Path(path) / SNAPSHOT)


def releases_of(
    texts: Sequence[str], places: Places, cancel: Cancel, say: Callable[[str], None]
) -> tuple[str, ...]:
    """SPECs: each range with all releases offered between its ends, each glob with all snapshots that it matches.

    Raises UsageError for a range without two ends in order, CompilerUnavailable where
    there is no list of releases.
    """
    sentences = [
        part
        for text in texts
        for part in ([text] if exists(text) else map(str.strip, text.split(",")))
        if part
    ]
    if not sentences:
        raise UsageError("names no release", where=_RELEASES, hint=_RANGE)
    specs = [spec for word in sentences for spec in _specs(word, places, cancel)]
    if len(specs) > len(sentences):
        say(
            "releases:"
            f" {', '.join(release_in(spec) or Path(spec).name for spec in specs)}"
        )
    return tuple(specs)


def _specs(word: str, places: Places, cancel: Cancel) -> Iterator[str]:
    first, dots, last = word.partition("..")
    are_ends = [
        end in MOVING or places.release(end) is not None for end in (first, last)
    ]
    meant = [meant_spec(end) for end in (first, last)]
    if dots and any(meant) and not exists(word):
        hint = f"did you mean {meant[0] or first}..{meant[1] or last}?"
        raise UsageError(
            "is not a range of releases", where=f"{_RELEASES} {word}", hint=hint
        )
    if not dots or not any(are_ends) or (exists(word) and not all(are_ends)):
        paths = _matched(word) if set(word) & set("*?[") else []
        yield from (
            map(str, paths)
            if paths and all(path.suffix == ".json" for path in paths)
            else [named_file(word)]
        )
        return
    if not all(are_ends):
        raise UsageError(
            "is not a range of releases", where=f"{_RELEASES} {word}", hint=_RANGE
        )
    old, new = (
        newest(end, places, cancel) if end in MOVING else places.release(end) or end
        for end in (first, last)
    )
    if Version(old) > Version(new):
        problem = "goes from a newer release to an older one"
        raise UsageError(
            problem, where=f"{_RELEASES} {word}", hint=f"write {last}..{first}"
        )
    yield from dict.fromkeys(
        (old, *between(old, new=new, places=places, cancel=cancel), new)
    )


def expanded(place: str) -> list[str]:
    """The SPECs that a word of the command line stands for, in their order.

    Raises UsageError for none.
    """
    if release_in(place):
        return [place]
    path = Path(place)
    if path.is_dir():
        problem = f"holds no {_WHEELS} and no snapshot"
        wheels, snapshots = in_order(path.glob(_WHEELS)), in_order(path.glob("*.json"))
    elif path.exists():
        return [str(path)]
    else:
        problem, snapshots = (
            "is not a release, a file or a directory, and matches no file",
            _matched(str(path)),
        )
        wheels = [path for path in snapshots if path.match(_WHEELS)]
    # Of each version in each directory the wheel for this machine; by version where
    # that orders all.
    same = dict[tuple[Path, Version], list[Path]]()
    for wheel in wheels:
        if (version := _version(str(wheel))) is not None:
            same.setdefault((wheel.parent, version), []).append(wheel)
    fitting = list[str]()
    for (directory, _), found_place in same.items():
        try:
            fitting.append(str(only_fitting(found_place, directory)))
        except CompilerUnavailable:  # of another platform
            continue
    if not (specs := fitting or list(map(str, snapshots))):
        meant = meant_spec(place)
        raise UsageError(
            problem, where=place, hint=f"did you mean {meant}?" if meant else _AMONG
        )
    versions = _ordering(fitting)
    return sorted(fitting, key=versions.__getitem__) if versions else specs


def candidates_of(
    good: str, bad: str, among: Sequence[str], places: Places, cancel: Cancel
) -> tuple[tuple[str, ...], bool]:
    """The candidates from GOOD to BAD, both with them, and whether GOOD is the newer end.

    `among`: those between, in their order: SPECs, globs, directories of wheels or
    snapshots; () to find them out. Raises UsageError where nobody says which there are.
    """
    good, bad = (
        newest(spec, places, cancel) if spec in MOVING else spec for spec in (good, bad)
    )
    if _same(good, bad):
        raise UsageError(
            "GOOD and BAD are the same",
            where=bad,
            hint="name two ends with different values",
        )
    ends = _ordering((good, bad))
    backward = ends is not None and ends[good] > ends[bad]
    first, last = places.release(good), places.release(bad)
    if not among and first and last:
        middle = between(first, new=last, places=places, cancel=cancel)
        return (
            tuple(f"{places.project}=={release}" for release in (first, *middle, last)),
            backward,
        )
    folders = [
        Path(end).parent.resolve() if end.endswith(".whl") else None
        for end in (good, bad)
    ]
    if not among and folders[0] and folders[0] == folders[1]:
        among = (str(Path(good).parent),)
    if not among:
        raise UsageError(
            "the candidates between the two are unknown",
            where=f"{good} and {bad}",
            hint=_AMONG,
        )
    specs = list(dict.fromkeys(spec for place in among for spec in expanded(place)))
    # What lies between the ends: by version where that orders all, else by place, where
    # the ends have one.
    inner = [spec for spec in specs if not _same(spec, good) and not _same(spec, bad)]
    if (versions := _ordering([good, *inner, bad])) is not None:
        low, high = sorted((versions[good], versions[bad]))
        inside = {spec for spec in inner if low < versions[spec] < high}
        return (
            good,
            *sorted(inside, key=versions.__getitem__, reverse=backward),
            bad,
        ), backward
    begin, end = (
        next((index for index, spec in enumerate(specs) if _same(spec, path)), None)
        for path in (good, bad)
    )
    if begin is not None and end is not None and begin > end:
        return (good, *specs[end + 1 : begin][::-1], bad), True
    return (good, *specs[0 if begin is None else begin + 1 : end], bad), backward


def _ordering(specs: Sequence[str]) -> dict[str, Version] | None:
    """The versions, where each has one of its own.

    None else: builds of commits may share one, or add letters to it.
    """
    versions = {
        spec: version
        for spec in specs
        if (version := _version(spec)) is not None and version.local is None
    }
    return versions if len(set(versions.values())) == len(specs) else None


def _same(spec: str, other_spec: str) -> bool:
    if release_in(spec) or release_in(other_spec):
        return release_in(spec) == release_in(other_spec)
    return Path(spec).absolute() == Path(other_spec).absolute()


def _version(spec: str) -> Version | None:
    """The version of a release or a wheel file; None where the name does not tell."""
    if release := release_in(spec):
        return Version(release)
    try:
        return (
            parse_wheel_filename(Path(spec).name)[1] if spec.endswith(".whl") else None
        )
    except InvalidWheelFilename:
        return None
