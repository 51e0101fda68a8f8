"""Turns the `thresholds` of a configuration into rules, and refuses those that cannot mean what they say.

Shapes have been checked by the schema before; here are units, unknown metrics, contradictions and unreachable
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from bot.config.schema_errors import did_you_mean
from bot.config.units import parse_amount, parse_ratio
from bot.config.yaml_file import KeyPath, YamlFile
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS, Unit
from bot.core.rules.coverage import Coverage, is_catch_all, metrics_of
from bot.core.rules.policy import Amount, LevelSpec, Ratio, Rule, any_match

_T = TypeVar("_T", Amount, Ratio)


def parse_rules(file: YamlFile) -> tuple[Rule, ...]:
    """The rules of a file that has `thresholds`, in order; raises ConfigError naming file, line and key."""
    plain: list[dict[str, Any]] = file.data["thresholds"]
    rules = tuple(_rule(file, ("thresholds", index), rule) for index, rule in enumerate(plain))
    _check_order(file, rules)
    return rules


def _rule(file: YamlFile, at: KeyPath, plain: Mapping[str, Any]) -> Rule:
    number = int(at[-1]) + 1
    metrics, models, targets = (tuple(plain.get(name, "*")) for name in ("metrics", "models", "targets"))
    rule = Rule(plain.get("name", f"rule {number}"), metrics, models, targets, line=file.line(at))
    _check_metrics(file, at, rule)
    warn = _level(file, (*at, "warn"), plain.get("warn"), rule)
    fail = _level(file, (*at, "fail"), plain.get("fail"), rule)
    if "limit" in plain:
        if fail is not None and fail.limit is not None:
            raise file.error((*at, "limit"), "the rule has a second limit in 'fail'", "keep one of them")
        limit = _amount(file, (*at, "limit"), plain["limit"], rule)
        fail = replace(fail or LevelSpec(), limit=limit)
    rule = replace(rule, warn=warn, fail=fail)
    _check_levels(file, at, rule)
    return rule


def _check_metrics(file: YamlFile, at: KeyPath, rule: Rule) -> None:
    for index, glob in enumerate(rule.metrics):
        if not any(any_match([glob], id_) for id_ in METRIC_IDS):
            what = f"no metric is called {glob!r}"
            raise file.error((*at, "metrics", index), what, did_you_mean(glob, METRIC_IDS))


def _level(file: YamlFile, at: KeyPath, plain: Any, rule: Rule) -> LevelSpec | None:
    if plain is None:
        return None
    if not isinstance(plain, dict):
        if str(plain).endswith("%"):
            return LevelSpec(relative=_parsed(file, at, parse_ratio, plain))
        return LevelSpec(absolute=_amount(file, at, plain, rule))
    relative = plain.get("relative")
    return LevelSpec(
        absolute=_amount(file, (*at, "absolute"), plain.get("absolute"), rule),
        relative=None if relative is None else _parsed(file, (*at, "relative"), parse_ratio, relative),
        limit=_amount(file, (*at, "limit"), plain.get("limit"), rule),
    )


def _parsed(file: YamlFile, at: KeyPath, parse: Callable[[Any], _T], written: Any) -> _T:
    try:
        return parse(written)
    except ValueError as error:
        raise file.error(at, str(error)) from error


def _amount(file: YamlFile, at: KeyPath, written: Any, rule: Rule) -> Amount | None:
    if written is None:
        return None
    amount = _parsed(file, at, parse_amount, written)
    for id_ in metrics_of(rule):
        try:
            amount.steps(METRIC_BY_ID[id_].unit)
        except ValueError as error:
            hint = "write a plain number, or give metrics of different units rules of their own"
            raise file.error(at, f"{error}, which {id_!r} needs", hint) from error
    return amount


def _numbers(spec: LevelSpec, unit: Unit) -> tuple[Fraction | None, ...]:
    absolute, limit = (Fraction(part.steps(unit)) if part else None for part in (spec.absolute, spec.limit))
    return absolute, spec.relative.value if spec.relative else None, limit


def _check_levels(file: YamlFile, at: KeyPath, rule: Rule) -> None:
    if rule.warn is None or rule.fail is None:
        return
    for id_ in metrics_of(rule):
        warn, fail = (_numbers(spec, METRIC_BY_ID[id_].unit) for spec in (rule.warn, rule.fail))
        if warn == fail:
            raise file.error((*at, "warn"), "is the same as 'fail': it can never warn", "keep one of them")
        for name, low, high in zip(("absolute", "relative", "limit"), warn, fail, strict=True):
            if low is not None and high is not None and low > high:
                what = f"its {name} level is looser than that of 'fail': it would fail before it warns"
                raise file.error((*at, "warn"), what, "let 'warn' be the smaller one")


def _check_order(file: YamlFile, rules: tuple[Rule, ...]) -> None:
    coverage = Coverage(rules)
    for index, rule in enumerate(rules):
        takers = coverage.takers(index)
        spared = index == len(rules) - 1 and is_catch_all(rule) and not any(map(is_catch_all, rules[:index]))
        if takers is None or spared:
            continue
        names = " and ".join(f"{taker.name!r} (line {taker.line})" for taker in takers)
        what = f"{rule.name!r} can never be reached: {names} above it match all that it could"
        raise file.error(("thresholds", index), what, "put the special rule above the general one")
    if not is_catch_all(rules[-1]):
        what = f"the last rule, {rules[-1].name!r}, is no catch-all"
        hint = 'end with {metrics: ["*"]} and no models or targets'
        raise file.error(("thresholds", len(rules) - 1), what, hint)
