"""The experiments of the lab: one YAML file, the packaged one or the user's own, as frozen values.

`configs/experiments-schema.json` says which keys there are and what shape each has; this module gives them meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.config.configuration import MODEL_SUFFIXES, configs_dir, load_schema
from bot.config.schema_errors import check_shape
from bot.config.targets import parse_targets
from bot.config.yaml_file import YamlFile, read_yaml
from bot.core.codec.kinds import mistaken
from bot.core.constraint import Constraint, constraint_of
from bot.core.lab.experiment import COLUMN_BY_ID, FOLDED_AWAY, Experiment, Variant
from bot.core.selecting import near_or_known
from bot.errors import ConfigError, InputError, UsageError
from bot.system.files import whole_or_nothing

COLUMNS = (*COLUMN_BY_ID, FOLDED_AWAY)
_ROOT = "experiments"


def load_experiments(path: Path | None = None) -> dict[str, Experiment]:
    """All experiments of a file, by name in its order; of the packaged one where there is none.

    Raises:
        ConfigError: one line that names file, line and key.
    """
    file = _read(path or configs_dir() / "experiments.yml")
    default = read_yaml(configs_dir() / "default.yml")
    return {name: _experiment(name, file.part(_ROOT, name), default) for name in file.data[_ROOT]}


def chosen_experiment(name: str, path: Path | None = None, where: str = "EXPERIMENT") -> Experiment:
    """One of them; raises UsageError, with the nearest names, where there is none of that name."""
    known = load_experiments(path)
    if name not in known:
        raise UsageError(f"no experiment is called {name!r}", where=where, hint=near_or_known(name, list(known)))
    return known[name]


def _read(path: Path) -> YamlFile:
    schema = json.loads((configs_dir() / "experiments-schema.json").read_text(encoding="utf-8"))
    try:
        file = read_yaml(path)
        check_shape(file, schema, {"schema.json": load_schema()})
    except ConfigError:
        if other := mistaken(whole_or_nothing(path), "file of experiments"):
            raise ConfigError(other[0], where=str(path), hint=other[1]) from None
        raise
    return file


def _experiment(name: str, file: YamlFile, default: YamlFile) -> Experiment:
    plain: Mapping[str, Any] = file.data
    for index, column in enumerate(plain["columns"]):
        if column not in COLUMNS:
            raise file.error(("columns", index), f"no metric is called {column!r}", near_or_known(column, COLUMNS))
    own = isinstance(plain.get("targets"), dict)
    variants = tuple(_variant(each, file) for each in plain["variants"])
    _require_alike(file, variants)
    return Experiment(
        name=name,
        question=plain["question"],
        columns=tuple(plain["columns"]),
        variants=variants,
        models=tuple(plain.get("models", ())),
        targets=() if own else tuple(plain.get("targets", ())),
        own_targets=parse_targets(file, default) if own else (),
        run=plain.get("run", False),
        axis=plain.get("axis", ""),
    )


def _variant(name: str, file: YamlFile) -> Variant:
    plain: Mapping[str, Any] = file.data["variants"][name]
    targets = plain.get("targets")
    return Variant(
        name=name,
        flags=tuple(plain.get("flags", ())),
        compiler=plain.get("compiler"),
        files={
            row: _file(file, ("variants", name, "models", row), text) for row, text in plain.get("models", {}).items()
        },
        shapes=_shapes(file, name, plain["shapes"]) if "shapes" in plain else None,
        folded=plain.get("folded", False),
        targets=None if targets is None else {glob: tuple(flags) for glob, flags in targets.items()},
        at=plain.get("at"),
    )


def _shapes(file: YamlFile, name: str, plain: Mapping[str, Any]) -> Constraint:
    try:
        return constraint_of(plain, "shapes")
    except InputError as error:
        raise file.error(("variants", name, "shapes"), error.what) from None


def _file(file: YamlFile, at: tuple[str, ...], text: str) -> str:
    path = file.path.parent / text
    if not text.endswith(MODEL_SUFFIXES) or not path.is_file():
        what = f"{text!r} is no model ({', '.join(MODEL_SUFFIXES)}) in {file.path.parent}"
        raise file.error(at, what, "the path is relative to this file")
    return str(path)


def _require_alike(file: YamlFile, variants: tuple[Variant, ...]) -> None:
    """Rows are those of all variants or of none, and so are places on an axis."""
    named = [variant for variant in variants if variant.files]
    if named and len(named) != len(variants):
        bare = next(variant.name for variant in variants if not variant.files)
        raise file.error(("variants", bare), "has no models, and other variants have", "give it models, too")
    if named and "models" in file.data:
        raise file.error(("models",), "cannot stand beside models of the variants", "keep one of them")
    placed = [variant for variant in variants if variant.at is not None]
    if bool(placed) != ("axis" in file.data) or (placed and len(placed) != len(variants)):
        hint = "give the experiment an axis, and every variant its place"
        where = ("axis",) if "axis" in file.data else ("variants", (placed or variants)[0].name)
        raise file.error(where, "an axis needs the place ('at') of every variant, and a place needs an axis", hint)
    if variants[0].folded:
        what = "the first variant is what the others are compared with, and cannot be folded"
        raise file.error(("variants", variants[0].name, "folded"), what, "put another one first")
