"""Words that go with a number."""

from __future__ import annotations


def noun_of(count: int, noun: str) -> str:
    """Return the noun as it follows a count: `dispatch` of 1, `dispatches` of 2.

    It knows `families`, `days` and `parts of the whole`.
    """
    if count == 1:
        return noun
    head, of, tail = noun.partition(" of ")
    if head.endswith("y") and head[-2:-1] not in "aeiou":
        return f"{head[:-1]}ies{of}{tail}"
    return f"{head}{'es' if head.endswith(('ch', 'ss')) else 's'}{of}{tail}"
