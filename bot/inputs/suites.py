"""What a configuration says about models together: sections, pairs, what does not repeat, bands of noise, folds.

Pairs and repeats that a configuration leaves out are those of the default suite's manifest, `models/suite.yml`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bot.core.folds.fold_options import FoldOptions
from bot.core.metrics import INEXACT
from bot.core.rules.coverage import Coverage, metrics_of
from bot.core.rules.globs import covers
from bot.core.rules.policy import Ratio, Rule
from bot.errors import ConfigError
from bot.inputs.units import parse_ratio, parse_share
from bot.inputs.yaml.yaml_file import YamlFile

Pairs = tuple[tuple[str, str], ...]
"""Static and dynamic model of each."""
Repeats = tuple[tuple[str, str], ...]
"""Globs of model and target."""

MANIFEST_SCHEMA = "code-size-suite/1"


def parse_sections(file: YamlFile) -> tuple[tuple[str, str], ...]:
    """Name and glob of each section, in the order of the file; a name has an entry for each of its globs."""
    plain: Mapping[str, str | list[str]] = file.data.get("components", {})
    listed = {name: [globs] if isinstance(globs, str) else globs for name, globs in plain.items()}
    return tuple((name, glob) for name, globs in listed.items() for glob in globs)


def read_manifest(path: Path) -> tuple[Pairs, Repeats]:
    """The static-dynamic pairs and the repeats of a suite's manifest; raises ConfigError where it is none."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError("cannot be read", where=str(path), hint="install the bot again") from error
    if not isinstance(data, dict) or data.get("schema") != MANIFEST_SCHEMA:
        raise ConfigError(f"is no manifest {MANIFEST_SCHEMA!r}", where=str(path), hint="install the bot again")
    pairs = _pairs(pair for pair in data["pairs"] if pair["kind"] == "static-dynamic")
    return pairs, _repeats(data.get("repeats", {}))


def _pairs(plain: Any) -> Pairs:
    return tuple((pair["static"], pair["dynamic"]) for pair in plain)


def parse_pairs(file: YamlFile, default: Pairs) -> Pairs:
    """The static-dynamic pairs of a file, else the default ones; a model that is not measured gives no table."""
    if "pairs" not in file.data:
        return default
    pairs = _pairs(file.data["pairs"])
    for index, (static, dynamic) in enumerate(pairs):
        if static == dynamic:
            what = f"{static!r} is paired with itself"
            raise file.error(("pairs", index), what, "name a static and a dynamic model")
    return pairs


def _repeats(plain: Mapping[str, Sequence[str]]) -> Repeats:
    return tuple((model, target) for model, targets in plain.items() for target in targets)


def parse_repeats(file: YamlFile, default: Repeats) -> Repeats:
    """The cells of a file that are known not to repeat themselves, else the default ones."""
    return _repeats(file.data["repeats"]) if "repeats" in file.data else default


def parse_noise(file: YamlFile) -> dict[str, Ratio]:
    """Inexact metric → its band of noise; raises ConfigError for what is no share."""
    found: dict[str, Ratio] = {}
    for id_, written in file.data.get("noise", {}).items():
        try:
            found[id_] = parse_ratio(written)
        except ValueError as error:
            raise file.error(("noise", id_), str(error)) from error
    return found


def parse_fold(file: YamlFile) -> FoldOptions | None:
    """How folds are judged; None where the file does not ask for any. Raises ConfigError for what is no share."""
    if "fold" not in file.data:
        return None
    written = file.data["fold"].get("max_slowdown")
    try:
        return FoldOptions(None if written is None else parse_share(written))
    except ValueError as error:
        raise file.error(("fold", "max_slowdown"), str(error)) from error


def check_noise(file: YamlFile, rules: Sequence[Rule], noise: Mapping[str, Ratio]) -> None:
    """Refuse a rule that would judge a metric which varies, before it is known how much it varies.

    A rule for `*` is none: it does not ask for them, and they are not judged without a band.
    """
    coverage = Coverage(rules)
    for index, rule in enumerate(rules):
        for id_ in metrics_of(rule) if rule.levels() else ():
            if id_ in INEXACT and id_ not in noise and _asks(rule) and coverage.takers(index, (id_,)) is None:
                what = f"{id_} varies from run to run"
                hint = f"set noise.{id_}, which `code-size-bot calibrate` measures"
                raise file.error(("thresholds", index, "metrics"), what, hint)


def _asks(rule: Rule) -> bool:
    return not any(covers(glob, "*") for glob in rule.metrics)
