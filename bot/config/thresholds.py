"""Read the `thresholds` of a configuration as rules.

Rules that cannot mean what they say are refused: wrong units, unknown metrics,
contradictions, and rules that nothing can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from bot.config.units import parse_amount, parse_ratio
from bot.config.yaml_file import KeyPath, YamlFile
from bot.config.yaml_problems import Plain
from bot.config.yaml_types import Globs, Keys, Percentage, distinct, examples, pattern
from bot.core.metrics import INEXACT, METRIC_BY_ID, Metric, Unit
from bot.core.near import near_or_known
from bot.core.planned import covers
from bot.core.rules import (
    Amount,
    LevelSpec,
    Rule,
    any_match,
    hiding,
    is_catch_all,
    metrics_of,
)

_T = TypeVar("_T")


_NUMBER = "(0|[1-9][0-9]*)([.][0-9]+)? *"
_UNITS = "B|KiB|MiB|GiB|ms|s"
_AMOUNT = "an amount is a non-negative number with B, KiB, MiB, GiB, ms, s or no unit"
AmountText = Annotated[
    Annotated[int, Meta(ge=0)]
    | Annotated[str, pattern(f"{_NUMBER}({_UNITS})?", _AMOUNT, "4KiB")],
    examples("4KiB", 120, "500ms"),
]


class LevelKeys(Keys, frozen=True):
    """One level of a rule.

    Attributes:
        absolute: Largest allowed growth. Together with relative, a finding needs growth beyond
            both.
        relative: Largest allowed growth as a share of the base value. Growth from zero always
            exceeds it.
        limit: Largest allowed value on head, whatever base has.
    """

    keywords: ClassVar[Plain] = {"minProperties": 1}
    absolute: AmountText | UnsetType = UNSET
    relative: Percentage | UnsetType = UNSET
    limit: AmountText | UnsetType = UNSET


_LEVEL = "a level is a non-negative number with %, B, KiB, MiB, GiB, ms, s or no unit"
LevelText = Annotated[
    Annotated[int, Meta(ge=0)]
    | Annotated[str, pattern(f"{_NUMBER}(%|{_UNITS})?", _LEVEL, "4KiB", "1.5%", 0)]
    | LevelKeys,
    examples(
        "4KiB", "1.5%", 0, {"absolute": "4KiB", "relative": "1.5%"}, {"limit": "32KiB"}
    ),
]


class RuleKeys(Keys, frozen=True, kw_only=True):
    """One rule. A rule without warn, fail and limit only reports changes.

    It still matches, so the rules below it do not apply.

    Attributes:
        name: Name of the rule in findings. Defaults to 'rule N', counted from 1.
        metrics: Metric ids, or globs of ids. No rule judges compile time and memory, because they
            vary from run to run.
        models: Globs of model names. Defaults to all models.
        targets: Globs of target names. Defaults to all targets.
        warn: Growth that gives a warning.
        fail: Growth that fails the check. It wins over warn.
        limit: Largest allowed value on head. Short for fail: {limit: …}.
    """

    name: Annotated[str, examples("code size", min_length=1, max_length=100)] = ""
    metrics: Annotated[tuple[str, ...], distinct(["artifact_bytes"], ["*"], minimum=1)]
    models: Annotated[Globs, examples(["mobilenet_*"])] = ("*",)
    targets: Annotated[Globs, examples(["llvm-cpu-*"])] = ("*",)
    warn: LevelText | UnsetType = UNSET
    fail: LevelText | UnsetType = UNSET
    limit: AmountText | UnsetType = UNSET


def parse_rules(
    file: YamlFile,
    entries: tuple[RuleKeys, ...],
    declared: Mapping[str, Metric] = {},
    within: Mapping[str, Sequence[str]] = {},
) -> tuple[Rule, ...]:
    """Return the rules under `thresholds` of a file, in order.

    Raises ConfigError naming file, line and key.

    `declared`: the metrics that the configuration declares; `within`: the `models`
    and `targets` that rules may name; without it they may name any.
    """
    metrics = {**METRIC_BY_ID, **declared}
    rules = tuple(
        [_rule(file, index, entry, metrics) for index, entry in enumerate(entries)]
    )
    _check_names(file, rules, within)
    _check_hidden(file, rules, metrics)
    if not is_catch_all(rules[-1]):
        message = f"the last rule, {rules[-1].name!r}, is not a catch-all"
        hint = 'end with {metrics: ["*"]} and no models or targets'
        raise file.error(("thresholds", len(rules) - 1), message, hint)
    return rules


def _check_names(
    file: YamlFile, rules: Sequence[Rule], within: Mapping[str, Sequence[str]]
) -> None:
    """Raise ConfigError for a rule about models or targets that do not exist."""
    for index, rule in enumerate(rules):
        for key, names in within.items():
            for number, glob in enumerate(getattr(rule, key)):
                if not any(any_match([glob], name) for name in names):
                    raise file.error(
                        ("thresholds", index, key, number),
                        f"{glob!r} matches no {key[:-1]}",
                        near_or_known(glob, names),
                    )


def _check_hidden(
    file: YamlFile, rules: Sequence[Rule], metrics: Mapping[str, Metric]
) -> None:
    """Raise ConfigError for a rule that can never match.

    The last rule is accepted if it is the only catch-all.
    """
    for index, rule in enumerate(rules):
        above = rules[:index]
        hidden_by = hiding(above, rule, metrics)
        is_last = index == len(rules) - 1
        if is_last and is_catch_all(rule) and not any(map(is_catch_all, above)):
            continue
        if hidden_by:
            name = f"{hidden_by.name!r} (line {hidden_by.line})"
            message = (
                f"{rule.name!r} can never match: {name} above it matches everything"
                " that it matches"
            )
            raise file.error(
                ("thresholds", index),
                message,
                "put the special rule above the general one",
            )


def _rule(
    file: YamlFile, index: int, entry: RuleKeys, metrics: Mapping[str, Metric]
) -> Rule:
    """Return one rule with its levels; raises ConfigError."""
    key_path: KeyPath = ("thresholds", index)
    rule = Rule(
        name=entry.name or f"rule {index + 1}",
        metrics=entry.metrics,
        models=entry.models,
        targets=entry.targets,
        line=file.line(key_path),
    )
    has_levels = (entry.warn, entry.fail, entry.limit) != (UNSET, UNSET, UNSET)
    for number, glob in enumerate(rule.metrics):
        place = (*key_path, "metrics", number)
        _check_metric_glob(file, place, glob, metrics, has_levels=has_levels)
    judged = [metrics[id_] for id_ in metrics_of(rule, metrics)]
    warn = _level(file, key_path=(*key_path, "warn"), written=entry.warn, judged=judged)
    fail = _level(file, key_path=(*key_path, "fail"), written=entry.fail, judged=judged)
    if entry.limit is not UNSET:
        if fail is not None and fail.limit is not None:
            raise file.error(
                (*key_path, "limit"),
                "the rule has another limit in 'fail'",
                "keep one of them",
            )
        limit = _amount(
            file, key_path=(*key_path, "limit"), written=entry.limit, judged=judged
        )
        fail = replace(fail or LevelSpec(), limit=limit)
    if warn and fail:
        for metric in judged:
            _check_order(file, (*key_path, "warn"), warn=warn, fail=fail, metric=metric)
    return replace(rule, warn=warn, fail=fail)


def _check_metric_glob(
    file: YamlFile,
    key_path: KeyPath,
    glob: str,
    metrics: Mapping[str, Metric],
    *,
    has_levels: bool,
) -> None:
    """Raise ConfigError for a glob without a metric, or with one that has no levels."""
    if not any(any_match([glob], id_) for id_ in metrics):
        raise file.error(
            key_path,
            f"no metric is called {glob!r}",
            near_or_known(glob, tuple(metrics)),
        )
    varying = next((id_ for id_ in INEXACT if any_match([glob], id_)), None)
    if varying and not covers(glob, "*") and has_levels:
        raise file.error(
            key_path,
            f"{varying} varies from run to run, and has no thresholds",
            "leave it out, or leave out warn, fail and limit",
        )


def _check_order(
    file: YamlFile, key_path: KeyPath, warn: LevelSpec, fail: LevelSpec, metric: Metric
) -> None:
    """Raise ConfigError for a warning that comes with the failure, or after it."""
    warns = _numbers(warn, metric.unit)
    fails = _numbers(fail, metric.unit)
    if warns == fails:
        raise file.error(
            key_path, "is the same as 'fail', so it never warns", "keep one of them"
        )
    kinds = ("absolute", "relative", "limit")
    for kind, low, high in zip(kinds, warns, fails, strict=True):
        if low is not None and high is not None and low > high:
            message = (
                f"its {kind} level is higher than that of 'fail', so the rule fails"
                " before it warns"
            )
            raise file.error(key_path, message, "make 'warn' the smaller value")


def _level(
    file: YamlFile,
    key_path: KeyPath,
    written: LevelText | UnsetType,
    judged: Sequence[Metric],
) -> LevelSpec | None:
    if isinstance(written, UnsetType):
        return None
    if not isinstance(written, LevelKeys):
        if str(written).endswith("%"):
            return LevelSpec(
                relative=parsed(
                    file, key_path=key_path, parse=parse_ratio, written=written
                )
            )
        return LevelSpec(
            absolute=_amount(file, key_path=key_path, written=written, judged=judged)
        )
    relative = written.relative
    return LevelSpec(
        absolute=_amount(
            file,
            key_path=(*key_path, "absolute"),
            written=written.absolute,
            judged=judged,
        ),
        relative=(
            parsed(
                file,
                key_path=(*key_path, "relative"),
                parse=parse_ratio,
                written=relative,
            )
            if relative
            else None
        ),
        limit=_amount(
            file, key_path=(*key_path, "limit"), written=written.limit, judged=judged
        ),
    )


def parsed(
    file: YamlFile, key_path: KeyPath, parse: Callable[[Any], _T], written: Any
) -> _T:
    """Return the meaning of a text.

    Raises ConfigError with its place if `parse` raises ValueError.
    """
    try:
        return parse(written)
    except ValueError as error:
        raise file.error(key_path, str(error)) from error


def _amount(
    file: YamlFile,
    key_path: KeyPath,
    written: AmountText | UnsetType,
    judged: Sequence[Metric],
) -> Amount | None:
    if written is UNSET:
        return None
    amount = parsed(file, key_path=key_path, parse=parse_amount, written=written)
    for metric in judged:
        try:
            amount.steps(metric.unit)
        except ValueError as error:
            hint = (
                "write a plain number, or give metrics of different units rules of"
                " their own"
            )
            raise file.error(
                key_path, f"{error}, which {metric.id!r} needs", hint
            ) from error
    return amount


def _numbers(spec: LevelSpec, unit: Unit) -> tuple[Fraction | None, ...]:
    absolute = Fraction(spec.absolute.steps(unit)) if spec.absolute else None
    relative = spec.relative.value if spec.relative else None
    limit = Fraction(spec.limit.steps(unit)) if spec.limit else None
    return absolute, relative, limit
