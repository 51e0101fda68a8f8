"""Which file is meant by the SPEC of a side that is a glob, or a directory with a snapshot in it."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from bot.compiler.tools.wheels import only_fitting
from bot.core.rules.spec import release_of
from bot.errors import UsageError
from bot.render.text.filters import plural

SNAPSHOT = "snapshot.json"
"""The name under which a directory's snapshot is looked for."""
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
