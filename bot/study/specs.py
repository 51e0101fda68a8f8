"""Resolve a SPEC of the command line to the one file that it names."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from bot.compiler.wheels import only_fitting
from bot.core.spec import is_release, release_of
from bot.errors import UsageError
from bot.show.filters import plural

SNAPSHOT = "snapshot.json"  # The name under which a directory's snapshot is looked for
WHEELS = "iree_base_compiler-*.whl"
_ONE = (
    "name one wheel of iree-base-compiler, one snapshot.json, or a directory that"
    " holds one"
)


def exists(spec: str) -> bool:
    """Return whether a text is the path of something; no text is too odd for that."""
    try:
        return Path(spec).exists()
    except (OSError, ValueError):  # too long, a null character
        return False


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Sort paths by their versions, or by the numbers in their names: 9 before 10.

    Versions count if all paths are in one directory and are named by versions.
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


def matched(pattern: str) -> list[Path]:
    """Return the paths that a glob matches, in order."""
    return in_order(map(Path, glob.glob(pattern, recursive=True)))


def has_wildcard(spec: str) -> bool:
    """Return whether a text has a character of a glob."""
    return bool(set("*?[") & set(spec))


def named_file(spec: str) -> str:
    """Resolve a glob to the one path that it matches, and a directory to its snapshot.

    If a glob matches several wheels, the compiler's wheel for this machine is taken.
    Any other SPEC is returned as it is.

    Raises:
        UsageError: a glob matches nothing, or several paths that could be meant.
        CompilerUnavailable: no wheel of the compiler is for this machine, or more than
            one is.
    """
    if is_release(spec):
        return spec
    path = spec
    if has_wildcard(spec) and release_of(spec) is None and not exists(spec):
        path = _only_match(spec)
    if not exists(path) or not (Path(path) / SNAPSHOT).is_file():
        return path
    if any(Path(path).glob(WHEELS)):
        raise UsageError(
            f"holds a {SNAPSHOT} and a wheel of the compiler",
            where=path,
            hint="name one of them",
        )
    return str(Path(path) / SNAPSHOT)


def _only_match(pattern: str) -> str:
    """Return the one path that a glob means; see `named_file`."""
    paths = matched(pattern)
    wheels = [path for path in paths if path.match(WHEELS)]
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
