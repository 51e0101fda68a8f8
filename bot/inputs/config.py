"""The configuration: one YAML file, completed key by key from the packaged default, as one frozen value.

`configs/schema.json` says which keys there are and what shape each has; this module gives them their meaning.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.core.plan import Target
from bot.core.policy import Rule
from bot.core.verdict import Status
from bot.errors import ConfigError
from bot.inputs.schema_errors import check_shape, did_you_mean
from bot.inputs.thresholds import parse_rules
from bot.inputs.yaml_file import YamlFile, read_yaml

MODEL_SUFFIXES = (".mlir", ".mlirbc", ".onnx")


@dataclass(frozen=True, slots=True)
class CompilerChoice:
    """Where the compilers of the two sides come from; `requirements` excludes the other two.

    Attributes:
        base, head: a SPEC, as written; None where the file does not say.
        requirements: path in the repository of a requirements file to read on each side.
    """

    base: str | None = None
    head: str | None = None
    requirements: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be configured; the fields are the keys of the schema (but for `schema` itself).

    Attributes:
        models: files with unique stems, sorted by stem; relative where the configuration's own path is.
        targets: in the order of the file.
        flags: appended for every cell.
        thresholds: first match decides; the last is a catch-all.
        states: every cell state → what it does to the verdict.
        templates: a directory that overrides packaged templates.
        report_id: names the comment that the report updates.
    """

    compiler: CompilerChoice
    models: tuple[Path, ...]
    targets: tuple[Target, ...]
    flags: tuple[str, ...]
    timeout_seconds: int
    thresholds: tuple[Rule, ...]
    states: Mapping[str, Status]
    templates: Path | None
    report_id: str


def configs_dir() -> Path:
    """Where default.yml, schema.json and the default suite are: in an installed package or a checkout."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "_data" / "configs", package.parent / "configs")
    for place in places:
        if (place / "default.yml").is_file():
            return place
    raise ConfigError("the packaged default.yml is missing", mend="install the bot again")


def load_schema() -> dict[str, Any]:
    """The JSON Schema of configurations."""
    schema: dict[str, Any] = json.loads((configs_dir() / "schema.json").read_text(encoding="utf-8"))
    return schema


def load_config(path: Path | None = None) -> Config:
    """Read a configuration file, or the packaged default.

    A key that the file leaves out is taken from default.yml, whole; only `states` is completed entry by
    entry. Raises ConfigError: one line that names file, line and key.
    """
    default = _read(configs_dir() / "default.yml")
    file = default if path is None else _read(path)
    source = {key: file if key in file.data else default for key in {*file.data, *default.data}}
    return Config(
        compiler=CompilerChoice(**source["compiler"].data["compiler"]),
        models=_models(source["models"]),
        targets=_targets(file, default),
        flags=tuple(source["flags"].data["flags"]),
        timeout_seconds=source["timeout_seconds"].data["timeout_seconds"],
        thresholds=parse_rules(source["thresholds"]),
        states={**default.data["states"], **file.data.get("states", {})},
        templates=_templates(file),
        report_id=source["report_id"].data["report_id"],
    )


def _read(path: Path) -> YamlFile:
    file = read_yaml(path)
    check_shape(file, load_schema())
    return file


def _matches(file: YamlFile, index: int, pattern: str) -> list[Path]:
    root = file.path.parent
    found = sorted(glob.glob(pattern, root_dir=root, recursive=True))
    models = [root / name for name in found if name.endswith(MODEL_SUFFIXES) and (root / name).is_file()]
    if not models:
        what = f"{pattern!r} matches no model ({', '.join(MODEL_SUFFIXES)}) in {root}"
        raise file.error(("models", index), what, "globs are relative to this file")
    return models


def _models(file: YamlFile) -> tuple[Path, ...]:
    by_stem: dict[str, Path] = {}
    for index, pattern in enumerate(file.data["models"]):
        for model in _matches(file, index, pattern):
            other = by_stem.setdefault(model.stem, model)
            if other.resolve() != model.resolve():
                what = f"{other} and {model} are both called {model.stem!r}"
                raise file.error(("models", index), what, "rename one of them")
    return tuple(by_stem[stem] for stem in sorted(by_stem))


def _defined(plain: Mapping[str, Mapping[str, Any]]) -> dict[str, Target]:
    return {
        name: Target(name, target["backend"], tuple(target.get("flags", ())), target.get("unsupported"))
        for name, target in plain.items()
    }


def _targets(file: YamlFile, default: YamlFile) -> tuple[Target, ...]:
    known = _defined(default.data["targets"])
    wanted = file.data.get("targets", default.data["targets"])
    if isinstance(wanted, dict):
        return tuple(_defined(wanted).values())
    for index, name in enumerate(wanted):
        if name not in known:
            what = f"no default target is called {name!r}"
            raise file.error(("targets", index), what, did_you_mean(name, known))
    return tuple(known[name] for name in wanted)


def _templates(file: YamlFile) -> Path | None:
    if "templates" not in file.data:
        return None
    place: Path = file.path.parent / file.data["templates"]
    if not place.is_dir():
        raise file.error(("templates",), f"{str(place)!r} is no directory", "the path is relative to this file")
    return place
