"""configs/schema.json: valid, complete, described for editors, and in step with the code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from bot.core.rules.delta import STATES
from bot.core.rules.policy import DEFAULT_STATES
from bot.core.values.planned import Target
from bot.inputs.config import BaselineChoice, CompilerChoice, Config, configs_dir, load_schema
from bot.inputs.yaml.schema_errors import _WORDING, check_shape
from bot.inputs.yaml.yaml_file import read_yaml

SCHEMA = load_schema()
FILES = sorted(path for path in configs_dir().glob("*.yml") if path.name != "experiments.yml")
"""Those that are configurations."""


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**SCHEMA["$defs"][name], **schema} if name else schema


def keys(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All keys that a file can have, with what the schema says of each."""
    schema = resolve(schema)
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}", resolve(inner)
        yield from keys(inner, f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            yield from keys(schema[part], f"{path}[]")


KEYS = dict(keys(SCHEMA, ""))


def properties(*path: str) -> set[str]:
    node: Any = SCHEMA
    for step in path:
        node = node[step]
    return set(cast("dict[str, Any]", node["properties"]))


def test_it_is_a_valid_schema_of_2020_12() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_packaged_configurations_validate_and_name_it_for_editors(path: Path) -> None:
    check_shape(read_yaml(path), SCHEMA)
    assert path.read_text(encoding="utf-8").startswith("# yaml-language-server: $schema=schema.json\n")


def test_default_and_quick_are_there() -> None:
    assert {path.name for path in FILES} >= {"default.yml", "quick.yml"}


@pytest.mark.parametrize("name", KEYS)
def test_every_key_is_described(name: str) -> None:
    text = KEYS[name].get("description", "")
    assert len(text) > 10 and text.endswith("."), name


@pytest.mark.parametrize("name", [name for name in KEYS if "enum" not in KEYS[name]])
def test_every_key_has_examples_that_are_valid(name: str) -> None:
    key = KEYS[name]
    examples = key.get("examples", key.get("items", {}).get("examples", []))
    assert examples, name
    validator = Draft202012Validator({**key, "$ref": "#/$defs/none", "$defs": {**SCHEMA["$defs"], "none": {}}})
    for example in examples:
        assert not list(validator.iter_errors(example)), (name, example)


def test_no_mapping_takes_unknown_keys() -> None:
    for name, key in [("", SCHEMA), *KEYS.items()]:
        if "properties" in key:
            assert key["additionalProperties"] is False, name


def test_the_configuration_has_the_keys_of_the_schema() -> None:
    target = ("properties", "targets", "additionalProperties")
    named = {"sections": "components"}
    assert {named.get(field.name, field.name) for field in fields(Config)} == properties() - {"schema"}
    assert {field.name for field in fields(CompilerChoice)} == properties("properties", "compiler")
    assert {field.name for field in fields(BaselineChoice)} == properties("properties", "baseline")
    assert properties("properties", "pairs", "items") == {"static", "dynamic"}
    assert {field.name for field in fields(Target)} - {"name", "whole"} == properties(*target)
    assert properties("properties", "states") == set(STATES) == set(DEFAULT_STATES)
    assert properties("$defs", "rule") == {"name", "metrics", "models", "targets", "warn", "fail", "limit"}
    assert properties("$defs", "level") == {"absolute", "relative", "limit"}


@pytest.mark.parametrize(
    ("key", "value", "fits"),
    [
        ("targets", ["vmvx", "cuda"], True),
        ("targets", ["vmvxx"], False),
        ("targets", {"mine": {"backend": "cuda"}}, True),
        ("targets", {"vmvx": {"backend": "cu da"}}, False),
        ("targets", {"vmvx": {"extends": "vmvx"}}, True),
        ("targets", {"mine": {"extends": "vmvx", "backend": "vmvx"}}, False),
        ("targets", {"mine": {"flags": []}}, False),
        ("thresholds", [{"metrics": ["stack_*_bytes", "vm_bytes", "*_b?tes", "[ev]*"]}], True),
        ("thresholds", [{"metrics": ["artefact_bytes"]}], False),
        ("noise", {"compile_cpu_ms": "8%"}, True),
        ("noise", {"vm_bytes": "8%"}, False),
    ],
)
def test_an_editor_catches_what_the_bot_refuses(key: str, value: object, fits: bool) -> None:
    written = {"schema": "code-size-config/1", key: value}
    assert Draft202012Validator(SCHEMA).is_valid(written) is fits


def test_the_default_names_every_key_but_those_without_a_default() -> None:
    data = read_yaml(configs_dir() / "default.yml").data
    assert properties() - set(data) == {"templates", "pairs", "repeats", "fold"}, "some are in the suite"
    assert set(data["states"]) == set(STATES)
    assert set(data["baseline"]) == {field.name for field in fields(BaselineChoice)}


def test_every_keyword_that_can_fail_has_its_wording() -> None:
    silent = {"$ref", "$defs", "$schema", "title", "description", "examples", "patternErrorMessage"}
    silent |= {"properties", "items", "propertyNames", "dependentSchemas", "if", "then", "maxLength"}

    def keywords(node: dict[str, Any]) -> Iterator[str]:
        for keyword, value in node.items():
            yield keyword
            if keyword in {"properties", "$defs", "dependentSchemas"}:
                for inner in value.values():
                    yield from keywords(inner)
            elif isinstance(value, dict) and keyword != "not":
                yield from keywords(value)

    assert set(keywords(SCHEMA)) - silent == set(_WORDING)
