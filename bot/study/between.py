"""The releases between the compilers of two sides: which there are, which are looked at, and their snapshots."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from packaging.version import InvalidVersion, Version

from bot.compiler.toolchain import between, only_fitting
from bot.core.planned import SIDES
from bot.core.snapshot import Snapshot
from bot.core.spec import Places, release_in, release_of
from bot.errors import CompilerUnavailable, UsageError
from bot.show.filters import plural
from bot.study.comparison import Release
from bot.study.prepare import Work
from bot.study.run import SidePlan
from bot.study.tracing import traced

Steps = int | None  # How many of them are looked at; None for all


def spread(names: Sequence[str], most: Steps) -> tuple[str, ...]:
    """All, or as many as are wanted, with like distances."""
    if most is None or most >= len(names):
        return tuple(names)
    return tuple(names[(number + 1) * (len(names) + 1) // (most + 1) - 1] for number in range(most))


Way = list[tuple[Release, Release]]
"""Each step from base to head: a release and the next that is looked at, with what was traced of what moved."""


def way_between(
    work: Work, sides: Mapping[str, Snapshot], most: Steps, places: Places, plan: Callable[[str], SidePlan]
) -> tuple[Way, tuple[str, ...]]:
    """The steps from base to head over the releases that are looked at, and all that are offered between the two.

    `sides`: both of a release (`release_in`); `plan`: a release → the side, ready to be measured, as `head`.

    Raises CompilerUnavailable where there is no list of releases.
    """
    first, last = (release_in(sides[side].compiler.spec) or "" for side in SIDES)
    offered = between(first, last, places, work.cancel)
    names = spread(offered, most)
    work.show.say(f"{plural(len(offered), 'release')} between {first} and {last}, {len(names)} measured")
    middle: list[Release] = []
    for name in names:
        before = middle[-1][1] if middle else sides["base"]  # each is doubted against the one before
        try:
            ready = plan(name)
        except (CompilerUnavailable, UsageError) as error:  # gone from the page, or without an option of the flags
            work.show.say(f"left out: {error.line}")
            continue
        middle.append((name, work.measured([ready], {"base": before})["head"]))
    way = [(first, sides["base"]), *middle, (last, sides["head"])]
    if not middle:
        return [(way[0], way[1])], offered
    plans: dict[str, SidePlan] = {}
    for name, _ in way:
        with suppress(CompilerUnavailable, UsageError):  # a snapshot at an end, whose compiler is gone
            plans[name] = plan(name)
    steps = Way()
    for (old, base), (new, head) in pairwise(way):
        named = {"base": old, "head": new}
        here = [replace(plans[name], label=side) for side, name in named.items() if name in plans]
        pair = traced(here, {"base": base, "head": head}, work)
        steps.append(((old, pair["base"]), (new, pair["head"])))
    return steps, offered


# Which file is meant by the SPEC of a side that is a glob, or a directory with a snapshot in it.

SNAPSHOT = "snapshot.json"  # The name under which a directory's snapshot is looked for
_WHEELS = "iree_base_compiler-*.whl"
_HINT = "name one wheel of iree-base-compiler, one snapshot.json, or a directory that holds one"


def named_file(spec: str) -> str:
    """The SPEC with a glob replaced by the one path that it matches, and a directory by the snapshot that it holds.

    Of several wheels the compiler's counts, and of several of these the one for this machine. Any other SPEC is
    returned as it is.

    Raises UsageError where a glob matches nothing, or several things that could be meant; CompilerUnavailable: of
    several wheels of the compiler none is for this machine, or more than one is.
    """
    is_glob = set("*?[") & set(spec) and release_of(spec) is None and not exists(spec)
    path = _matched(spec) if is_glob else spec
    if not exists(path) or not (Path(path) / SNAPSHOT).is_file():
        return path
    if any(Path(path).glob(_WHEELS)):
        raise UsageError(f"holds a {SNAPSHOT} and a wheel of the compiler", where=path, hint="name one of them")
    return str(Path(path) / SNAPSHOT)


def in_order(paths: Iterable[Path]) -> list[Path]:
    """By their versions where all in one directory are named by these, else by the numbers in names: 9 before 10."""
    named = sorted(paths, key=_numbers)
    try:
        return (
            sorted(named, key=lambda path: Version(path.stem)) if len({path.parent for path in named}) == 1 else named
        )
    except InvalidVersion:
        return named


def _numbers(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]+)", str(path))
    return [(int(part), "") if at % 2 else (-1, part) for at, part in enumerate(parts)]


def exists(spec: str) -> bool:
    """Whether a text is the path of something; no text is too odd for that."""
    try:
        return Path(spec).exists()
    except (OSError, ValueError):  # too long, a null character
        return False


def _matched(pattern: str) -> str:
    paths = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
    wheels = [path for path in paths if path.match(_WHEELS)]
    if len(wheels) > 1:
        return str(only_fitting(wheels, Path(pattern)))
    meant = wheels or [path for path in paths if path.suffix != ".whl"]
    if len(meant) == 1:
        return str(meant[0])
    names = ", ".join(map(str, meant[:4])) + (" …" if len(meant) > 4 else "")
    if meant:
        raise UsageError(f"matches {len(meant)} paths: {names}", where=pattern, hint=_HINT)
    what = f"matches {plural(len(paths), 'wheel')}, and none of the compiler" if paths else "matches no file"
    raise UsageError(what, where=pattern, hint=_HINT)
