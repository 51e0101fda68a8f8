"""Changed defaults of compiler options in words."""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.defaults import ChangedDefaults, DefaultChange
from bot.show.filters import plural

_MOST_NAMED = 5


def default_words(change: DefaultChange) -> str:
    """Return `default of --x: auto → none`, or on which side the compiler does not report it."""
    if change.base is None:
        return f"default of {change.option}: not reported by base → {_value(change.head)}"
    if change.head is None:
        return f"default of {change.option}: {_value(change.base)} → not reported by head"
    return f"default of {change.option}: {_value(change.base)} → {_value(change.head)}"


def _value(value: str | None) -> str:
    return value or "empty"


def changed_defaults_lines(defaults: ChangedDefaults) -> Iterator[str]:
    """Yield a line for each changed default, for unreported ones, and for options of one side."""
    yield from map(default_words, defaults.changed)
    if not defaults.changed:
        yield "no default that both compilers report changed"
    if defaults.unreported:
        options = [change.option for change in defaults.unreported]
        yield f"{plural(len(options), 'default')} reported on one side only: {_named(options)}"
    for side, other, names in (
        ("base", "head", defaults.base_only),
        ("head", "base", defaults.head_only),
    ):
        if names:
            yield f"{plural(len(names), 'option')} of {side} that {other} does not have: {_named(names)}"


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
