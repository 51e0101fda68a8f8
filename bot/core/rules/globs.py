"""Which globs take everything that others could match, and an index that finds them among thousands.

Sound, not complete: what is called covered is covered; an unusual pair of globs may go unnoticed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase

_WILDCARD = re.compile(r"\*|\?|\[!?\]?[^\]]*\]")
_LETTERS = 16
"""The longest piece of a glob that is looked up: long enough to tell names, short enough to try all of a text."""


def covers(wide: str, narrow: str) -> bool:
    """True where every name that `narrow` matches is sure to be matched by `wide`.

    Where `wide` has no wildcard but `*`, only a `*` of it can take the wildcards of `narrow`, so matching the
    globs as text proves it. A character class in `narrow` is longer as text than what it matches, so it
    proves nothing.
    """
    if wide == narrow or (wide and not wide.strip("*")):
        return True
    if not set(narrow) & set("*?["):
        return fnmatchcase(narrow, wide)
    return not set(wide) & set("?[") and "[" not in narrow and fnmatchcase(narrow, wide)


class GlobIndex:
    """Finds those of many globs that cover one, and looks at few of the others.

    A glob covers only texts that contain all its letters between wildcards. So each stands under one piece of them, the
    one that the fewest others have, and a text is asked for its pieces. Globs without two letters in a row that tell
    them apart (`*a*b*`) are many under one piece: for them, and only for them, all are looked at.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        self._globs = frozenset(globs)
        pieces = {glob: _pieces(glob) for glob in self._globs if set(glob) & set("*?[")}
        common = Counter(piece for each in pieces.values() for piece in each)
        self._by_piece: dict[str, list[str]] = {}
        for glob, each in pieces.items():
            rarest = min(each, key=lambda piece: (common[piece], piece), default="")
            self._by_piece.setdefault(rarest, []).append(glob)
        self._lengths = sorted(set(map(len, self._by_piece)))

    def covering(self, narrow: str) -> set[str]:
        """All globs of the index that cover this one."""
        wide = {narrow} & self._globs
        for length in self._lengths:
            for piece in {narrow[at : at + length] for at in range(len(narrow) - length + 1)}:
                wide.update(glob for glob in self._by_piece.get(piece, ()) if covers(glob, narrow))
        return wide


def _pieces(glob: str) -> set[str]:
    runs = (run for run in _WILDCARD.split(glob) if run)
    sized = ((run, min(len(run), _LETTERS)) for run in runs)
    return {run[at : at + size] for run, size in sized for at in range(len(run) - size + 1)}
