"""Which globs take everything that others could match: finds rules that can never decide anything.

Sound, not complete: what is called covered is covered; an unusual pair of globs may go unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import product

from bot.core.metrics import METRIC_IDS
from bot.core.policy import Rule, any_match


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


def metrics_of(rule: Rule) -> tuple[str, ...]:
    """The metric ids that the rule's globs match."""
    return tuple(id_ for id_ in METRIC_IDS if any_match(rule.metrics, id_))


def is_catch_all(rule: Rule) -> bool:
    """True where the rule matches every metric of every cell, whatever they are called."""
    everything = (rule.metrics, rule.models, rule.targets)
    return all(any(covers(glob, "*") for glob in globs) for globs in everything)


def _takes(rule: Rule, metric: str, model: str, target: str) -> bool:
    globs = ((rule.metrics, metric), (rule.models, model), (rule.targets, target))
    return all(any(covers(wide, narrow) for wide in wides) for wides, narrow in globs)


def shadowing(rules: Sequence[Rule], index: int) -> list[Rule] | None:
    """The earlier rules that leave nothing to rule `index`; None where it can decide something."""
    rule, earlier = rules[index], rules[:index]
    takers: list[Rule] = []
    for piece in product(metrics_of(rule), rule.models, rule.targets):
        taker = next((other for other in earlier if _takes(other, *piece)), None)
        if taker is None:
            return None
        if taker not in takers:
            takers.append(taker)
    return takers
