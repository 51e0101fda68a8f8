"""Write the changed defaults of compiler options in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.defaults import DefaultChange, TriedDefault
from bot.core.proof import PARTLY, PROVED
from bot.show.filters import plural, signed
from bot.show.proofs import STATUS_WORDS


def default_words(change: DefaultChange) -> str:
    """Return `default of --x: auto → none`.

    If only one side's compiler reports the default, return which one does not.
    """
    base = "not reported by base"
    head = "not reported by head"
    if change.base is not None:
        base = _value(change.base)
    if change.base is None or change.head is not None:
        head = _value(change.head)
    return f"default of {change.option}: {base} → {head}"


def _value(value: str | None) -> str:
    return value or "empty"


def tried_words(tried: TriedDefault) -> str:
    """Return one changed default, with its experiment and the tried dispatch."""
    trial = tried.tried
    if trial.base:
        default = (
            f"default of {tried.option}: {trial.base} (found by experiment) →"
            f" {_value(tried.head)}"
        )
    else:
        default = default_words(DefaultChange(tried.option, tried.base, tried.head))
    status = STATUS_WORDS[trial.status]
    if trial.restored_bytes is None or not trial.moved_bytes:
        return f"{default} · {status}: {trial.why}"
    effect = _effect(trial.restored_bytes, trial.moved_bytes)
    where = f"{trial.dispatch} of {trial.model} on {trial.target}"
    return (
        f"{default} · {status}: base's value {effect} the change of {where}"
        f" ({signed(trial.moved_bytes)})"
    )


def _effect(restored_bytes: int, moved_bytes: int) -> str:
    """Return `undoes 80 % of`, `undoes none of`, or `adds 1 B to`."""
    if moved_bytes < 0:
        restored_bytes = -restored_bytes
    if restored_bytes < 0:
        return f"adds {-restored_bytes:,} B to"
    if restored_bytes == 0:
        return "undoes none of"
    percent = 100 * restored_bytes // abs(moved_bytes)
    if percent == 0:
        return "undoes less than 1 % of"
    return f"undoes {percent:,} % of"


def tried_lines(defaults: Sequence[TriedDefault]) -> Iterator[str]:
    """Yield a line for each default whose experiment has a result.

    The last line has the number of the other defaults that changed.
    """
    without_effect = 0
    for tried in defaults:
        if tried.tried.status in (PROVED, PARTLY) or tried.base is not None:
            yield tried_words(tried)
        else:
            without_effect += 1
    if without_effect:
        yield (
            f"{plural(without_effect, 'default')} that only head reports: no trial"
            " showed an effect"
        )
