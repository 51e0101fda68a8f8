"""Changed defaults of compiler options in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.defaults import ChangedDefaults, DefaultChange, TriedDefault
from bot.core.proof import PARTLY, PROVED
from bot.show.filters import plural, signed
from bot.show.proofs import STATUS_WORDS

_MOST_NAMED = 5


def default_words(change: DefaultChange) -> str:
    """Return `default of --x: auto → none`, or on which side the compiler does not report it."""
    if change.base is None:
        return (
            f"default of {change.option}: not reported by base → {_value(change.head)}"
        )
    if change.head is None:
        return (
            f"default of {change.option}: {_value(change.base)} → not reported by head"
        )
    return f"default of {change.option}: {_value(change.base)} → {_value(change.head)}"


def _value(value: str | None) -> str:
    return value or "empty"


def tried_words(tried: TriedDefault) -> str:
    """Return one changed default with what its experiment says, and of which dispatch."""
    trial = tried.tried
    words = default_words(DefaultChange(tried.option, tried.base, tried.head))
    if trial.base:
        words = (
            f"default of {tried.option}: {trial.base} (found by experiment) →"
            f" {_value(tried.head)}"
        )
    status = STATUS_WORDS[trial.status]
    if trial.restored_bytes is None or not trial.moved_bytes:
        return f"{words} · {status}: {trial.why}"
    percent = 100 * trial.restored_bytes // trial.moved_bytes
    where = f"{trial.dispatch} of {trial.model} on {trial.target}"
    return (
        f"{words} · {status}: base's value undoes {percent} % of the change of {where}"
        f" ({signed(trial.moved_bytes)})"
    )


def tried_lines(defaults: Sequence[TriedDefault]) -> Iterator[str]:
    """Yield a line for each default that an experiment says something about, then how many others changed."""
    others = 0
    for tried in defaults:
        if tried.tried.status in (PROVED, PARTLY) or tried.base is not None:
            yield tried_words(tried)
        else:
            others += 1
    if others:
        yield (
            f"{plural(others, 'default')} that only head reports: no trial showed an"
            " effect"
        )


def changed_defaults_lines(defaults: ChangedDefaults) -> Iterator[str]:
    """Yield a line for each changed default, for unreported ones, and for options of one side."""
    yield from map(default_words, defaults.changed)
    if not defaults.changed:
        yield "no default that both compilers report changed"
    if defaults.unreported:
        options = [change.option for change in defaults.unreported]
        yield (
            f"{plural(len(options), 'default')} reported on one side only:"
            f" {_named(options)}"
        )
    for side, other, names in (
        ("base", "head", defaults.base_only),
        ("head", "base", defaults.head_only),
    ):
        if names:
            yield (
                f"{plural(len(names), 'option')} of {side} that {other} does not have:"
                f" {_named(names)}"
            )


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
