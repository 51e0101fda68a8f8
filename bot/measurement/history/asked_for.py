"""What `--releases` asks for: ranges, lists and globs of snapshots, as SPECs in their order."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from packaging.version import Version

from bot.compiler.tools.offered import between, newest
from bot.core.rules.spec import MOVING, Places, release_of
from bot.errors import UsageError
from bot.measurement.naming import exists, in_order, named_file
from bot.system.processes import Cancel

_HINT = "write both ends, the older one first: 3.8.0..3.13.0"
_WHERE = "--releases"


def asked_for(texts: Sequence[str], places: Places, cancel: Cancel, say: Callable[[str], None]) -> tuple[str, ...]:
    """SPECs: each range with all releases offered between its ends, each glob with all snapshots that it matches.

    Raises UsageError for a range without two ends in order, CompilerUnavailable where there is no list of releases.
    """
    words = [word for text in texts for word in _words(text)]
    if not words:
        raise UsageError("names no release", where=_WHERE, hint=_HINT)
    specs = [spec for word in words for spec in _specs(word, places, cancel)]
    if len(specs) > len(words):
        say(f"releases: {', '.join(release_of(spec) or Path(spec).name for spec in specs)}")
    return tuple(specs)


def _words(text: str) -> list[str]:
    return [text] if exists(text) else [word.strip() for word in text.split(",") if word.strip()]


def _specs(word: str, places: Places, cancel: Cancel) -> Iterator[str]:
    first, dots, last = word.partition("..")
    if dots and any(map(_is_end, (first, last))) and not exists(word):
        if not (_is_end(first) and _is_end(last)):
            raise UsageError("is no range of releases", where=f"{_WHERE} {word}", hint=_HINT)
        old, new = (newest(end, places, cancel) if end in MOVING else release_of(end) or end for end in (first, last))
        if Version(old) > Version(new):
            what = "goes from a newer release to an older one"
            raise UsageError(what, where=f"{_WHERE} {word}", hint=f"write {last}..{first}")
        yield from dict.fromkeys((old, *between(old, new, places, cancel), new))
    elif set(word) & set("*?[") and (snapshots := _snapshots(word)):
        yield from snapshots
    else:
        yield named_file(word)


def _is_end(text: str) -> bool:
    return text in MOVING or release_of(text) is not None


def _snapshots(pattern: str) -> list[str]:
    paths = in_order(map(Path, glob.glob(pattern, recursive=True)))
    return [str(path) for path in paths] if all(path.suffix == ".json" for path in paths) else []
