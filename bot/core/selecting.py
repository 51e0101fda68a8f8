"""What a selector means: a glob of names, else of the short names that reports show; and which names are near.

Short names count where no full one matches, so that a glob never takes more than it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase

from bot.errors import UsageError

_NEAR = 0.6
"""The least likeness of a name that may have been meant: two letters in three."""
_SUGGESTED = 3
_LISTED = 12


def short_names(targets: Iterable[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Target → its name without the backend it shares with others, where that leaves the names different."""
    full = sorted(targets)
    short = {}
    for target in full:
        backend = backends.get(target, "")
        rest = target[len(backend) :].lstrip("-_") if backend and target.startswith(backend) else ""
        short[target] = rest or target.removesuffix("-spirv")
    names = [*short.values(), *full]
    return {t: s if s == t or names.count(s) == 1 else t for t, s in short.items()}


def matching(names: Sequence[str], selector: str, short: Mapping[str, str] | None = None) -> list[str]:
    """The names that a selector takes: one that is a name takes that one; `…` stands for what a report leaves out.

    Args:
        short: name → its short name, where it has one.
    """
    if selector in names:
        return [selector]
    glob = selector.replace("…", "*")
    full = [name for name in names if fnmatchcase(name, glob)]
    return full or [name for name in names if fnmatchcase((short or {}).get(name, name), glob)]


def kept(names: Sequence[str], selectors: Sequence[str], short: Mapping[str, str] | None = None) -> set[str]:
    """What any of the selectors takes; all names where there is none."""
    if not selectors:
        return set(names)
    return {name for selector in selectors for name in matching(names, selector, short)}


def require_matches(
    names: Sequence[str], selectors: Iterable[str], what: str, short: Mapping[str, str] | None = None
) -> None:
    """Raise UsageError, with the nearest names, for a selector that takes none; `what` is `model` or `target`."""
    for selector in selectors:
        if not matching(names, selector, short):
            hint = near_or_known(selector, names, short)
            raise UsageError(f"matches no {what}", where=f"--{what} {selector}", hint=hint)


def near_or_known(wanted: str, names: Sequence[str], short: Mapping[str, str] | None = None) -> str:
    """`did you mean 'bert'?`; where no name is near, those that there are."""
    if near := nearest(wanted, names, short):
        return f"did you mean {' or '.join(map(repr, near))}?"
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"known: {', '.join(names[:_LISTED])}{more}" if names else "there is none"


def nearest(wanted: str, names: Iterable[str], short: Mapping[str, str] | None = None) -> list[str]:
    """The names that are most like a selector, or begin like it, the best first; none that is far from it."""
    word = wanted.strip("*?").lower()
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(word)

    def likeness(name: str) -> float:
        best = 0.0
        for text in {name.lower(), (short or {}).get(name, name).lower()}:
            for part in {text, text[: len(word)]}:
                matcher.set_seq1(part)
                best = max(best, matcher.ratio())
        return best

    ranked = sorted((-likeness(name), name) for name in dict.fromkeys(names))
    return [name for unlike, name in ranked[:_SUGGESTED] if word and -unlike >= _NEAR]
