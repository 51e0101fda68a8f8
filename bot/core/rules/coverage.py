"""Finds rules that can never decide anything, because those above them match all that they could.

As sound and as incomplete as `globs.covers`. Thousands of rules are no trouble: a rule is compared only with those that
share a glob, or a glob that covers one of its own, not with every rule above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from bot.core.metrics import METRIC_IDS
from bot.core.rules.globs import GlobIndex, covers
from bot.core.rules.policy import Rule, any_match


def metrics_of(rule: Rule) -> tuple[str, ...]:
    """The metric ids that the rule's globs match."""
    return tuple(id_ for id_ in METRIC_IDS if any_match(rule.metrics, id_))


def is_catch_all(rule: Rule) -> bool:
    """True where the rule matches every metric of every cell, whatever they are called."""
    everything = (rule.metrics, rule.models, rule.targets)
    return all(any(covers(glob, "*") for glob in globs) for globs in everything)


class _Axis:
    """The rules by one kind of their globs. All globs that the same rules have are one *group*, which has a number.

    Attributes:
        members: for each group its rules, in order.
        sets: the same, to look a rule up.
    """

    def __init__(self, globs_of_rules: Iterable[Sequence[str]]) -> None:
        rules_of: dict[str, list[int]] = {}
        for index, globs in enumerate(globs_of_rules):
            for glob in dict.fromkeys(globs):
                rules_of.setdefault(glob, []).append(index)
        numbers: dict[tuple[int, ...], int] = {}
        self._group = {glob: numbers.setdefault(tuple(rules), len(numbers)) for glob, rules in rules_of.items()}
        self._index = GlobIndex(rules_of)
        self._known: dict[str, frozenset[int]] = {}
        self.members = tuple(numbers)
        self.sets = tuple(map(frozenset, numbers))

    def above(self, globs: Sequence[str], index: int) -> list[frozenset[int]]:
        """For each glob the groups that cover it and have a rule above this one; equal ones come once."""
        groups = (self._covering(glob) for glob in globs)
        return list(dict.fromkeys(frozenset(g for g in each if self.members[g][0] < index) for each in groups))

    def _covering(self, glob: str) -> frozenset[int]:
        if glob not in self._known:
            self._known[glob] = frozenset(self._group[wide] for wide in self._index.covering(glob))
        return self._known[glob]


class Coverage:
    """What the rules of one ordered list leave to each other."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._models, self._targets = _Axis(rule.models for rule in rules), _Axis(rule.targets for rule in rules)
        self._metrics = [frozenset(metrics_of(rule)) for rule in rules]
        self._known: dict[tuple[str, int, int], int] = {}

    def takers(self, index: int, metrics: Sequence[str] = ()) -> list[Rule] | None:
        """The earlier rules that leave nothing to rule `index`; None where it can decide something.

        Args:
            metrics: only these of the rule's; empty: all of them.
        """
        rule = self._rules[index]
        models, targets = self._models.above(rule.models, index), self._targets.above(rule.targets, index)
        takers: dict[int, None] = {}
        for metric, model_groups, target_groups in product(metrics or metrics_of(rule), models, targets):
            pairs = product(model_groups, target_groups)
            taker = min((self._first(metric, *pair) for pair in pairs), default=index)
            if taker >= index:
                return None
            takers[taker] = None
        return [self._rules[taker] for taker in takers]

    def _first(self, metric: str, models: int, targets: int) -> int:
        """The first rule of both groups that matches the metric; the number of rules where there is none."""
        key = (metric, models, targets)
        if key not in self._known:
            few, many = self._models.members[models], self._targets.sets[targets]
            if len(many) < len(few):
                few, many = self._targets.members[targets], self._models.sets[models]
            both = (index for index in few if index in many and metric in self._metrics[index])
            self._known[key] = next(both, len(self._rules))
        return self._known[key]
