"""Suggests the name that somebody meant who typed another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

# the least likeness of a name that may have been meant: two letters in three
_NEAR = 0.6
_SUGGESTED = 3
_LISTED = 12


def near_or_known(
    typed: str, names: Sequence[str], short: Mapping[str, str] | None = None
) -> str:
    """Return `did you mean 'bert'?`, or the list of known names if no name is near."""
    if near := nearest(typed, names, short):
        return f"did you mean {' or '.join(map(repr, near))}?"
    if len(names) > _LISTED:
        suffix = f", and {len(names) - _LISTED} more"
    else:
        suffix = ""
    if names:
        return f"known: {', '.join(names[:_LISTED])}{suffix}"
    return "there is none"


def nearest(
    typed: str, names: Iterable[str], short: Mapping[str, str] | None = None
) -> list[str]:
    """Return the names that are most similar to a selector, or begin similarly.

    The best one is first.
    """
    word = typed.strip("*?").lower()
    meant = dict[str, list[str]]()
    for name in names if word else ():
        for text in (name.lower(), (short or {}).get(name, name).lower()):
            for part in (text, text[: len(word)]):
                meant.setdefault(part, []).append(name)
    near = get_close_matches(word, meant, _SUGGESTED, _NEAR)
    suggested = dict[str, None]()
    for text in near:
        suggested |= dict.fromkeys(meant[text])
    return list(suggested)[:_SUGGESTED]
