"""Expand the ranges, lists and globs of a history to SPECs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from packaging.version import Version

from bot.compiler.wheels import between, newest
from bot.core.spec import MOVING, Places, meant_spec, short_name
from bot.errors import UsageError
from bot.study.specs import exists, has_wildcard, matched, named_file
from bot.system.cancel import Cancel

_RANGE = "write both ends, the older release first: 3.8.0..3.13.0"
_RELEASES = "--releases"


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
        words += filter(None, parts)
    if not words:
        raise UsageError("names no release", where=_RELEASES, hint=_RANGE)
    specs = list[str]()
    for word in words:
        specs += _specs(word, places, cancel)
    if len(specs) > len(words):
        say(f"releases: {', '.join(map(short_name, specs))}")
    return tuple(specs)


def _specs(word: str, places: Places, cancel: Cancel) -> list[str]:
    """Return the SPECs that one word of --releases stands for."""
    where = f"{_RELEASES} {word}"
    first, dots, last = word.partition("..")
    are_ends = []
    for end in (first, last):
        are_ends.append(end in MOVING or places.release(end) is not None)
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
    if has_wildcard(word):
        paths = matched(word)
        if paths and all(path.suffix == ".json" for path in paths):
            return list(map(str, paths))
    return [named_file(word)]


def _end_release(end: str, places: Places, cancel: Cancel) -> str:
    """Return the release at one end of a range."""
    if end in MOVING:
        return newest(end, places, cancel)
    return places.release(end) or end
