"""configs/schema.json and experiments-schema.json: as the types are, described for editors.

And what is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from generated import SCHEMAS
from growth import steps
from jsonschema import Draft202012Validator

from bot.config.configuration import (
    Config,
    Configuration,
    configs_dir,
    read_configuration,
)
from bot.core.delta import STATES
from bot.core.rules import DEFAULT_STATES
from bot.errors import ConfigError

CONFIGURATION = SCHEMAS["configs/schema.json"]
FILES = sorted(
    path for path in configs_dir().glob("*.yml") if path.name != "experiments.yml"
)
"""Those that are configurations."""
SCHEMA = "schema: code-size-config/1\n"


def keys(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All keys that a file can have, with what the schema says of each.

    A part that is referred to stands in $defs.
    """
    if isinstance(node, dict):
        for name, inner in node.get("properties", {}).items():
            if "not" not in inner:
                yield f"{path}.{name}", inner
        for name, inner in node.items():
            if name not in ("examples", "dependentSchemas", "if", "else"):
                yield from keys(inner, f"{path}.{name}")
    elif isinstance(node, list):
        for inner in node:
            yield from keys(inner, path)


KEYS = [
    (file, name, key) for file, schema in SCHEMAS.items() for name, key in keys(schema)
]


def test_the_schemas_are_schemas() -> None:
    for schema in SCHEMAS.values():
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        Draft202012Validator.check_schema(schema)


def test_packaged_files_validate_and_name_their_schema_for_editors() -> None:
    assert {path.name for path in FILES} >= {"default.yml", "quick.yml"}
    for path in FILES:
        assert not list(
            Draft202012Validator(CONFIGURATION).iter_errors(
                read_configuration(path)[0].data
            )
        )
        assert path.read_text(encoding="utf-8").startswith(
            "# yaml-language-server: $schema=schema.json\n"
        )
    first = (
        (configs_dir() / "experiments.yml")
        .read_text(encoding="utf-8")
        .partition("\n")[0]
    )
    assert first == "# yaml-language-server: $schema=experiments-schema.json"


def test_every_key_is_described_and_has_examples_that_are_valid() -> None:
    assert len(KEYS) > 60
    for file, name, key in KEYS:
        defs = SCHEMAS[file]["$defs"]
        if name.endswith(".kind"):
            continue
        text = (
            key.get("description")
            or defs[key["$ref"].rpartition("/")[2]]["description"]
        )
        assert len(text) > 10 and text.endswith("."), name
        examples = key.get("examples", key.get("items", {}).get("examples", []))
        assert examples or key.keys() & {"enum", "$ref"}, name
        for example in examples:
            assert not list(
                Draft202012Validator({**key, "$defs": defs}).iter_errors(example)
            ), (name, example)


def test_no_mapping_takes_unknown_keys() -> None:
    for schema in SCHEMAS.values():
        assert all(
            mapping["additionalProperties"] is False
            for mapping in (schema, *schema["$defs"].values())
        )


def test_the_configuration_has_the_keys_of_the_file() -> None:
    assert {*Config.__struct_fields__} - {"places", "command"} | {"schema"} == {
        *CONFIGURATION["properties"]
    }
    assert (
        set(CONFIGURATION["$defs"]["StatesKeys"]["properties"])
        == set(STATES)
        == set(DEFAULT_STATES)
    )


def test_the_schema_lists_the_packaged_targets() -> None:
    defined = read_configuration(configs_dir() / "default.yml")[0].data["targets"]
    assert CONFIGURATION["properties"]["targets"]["anyOf"][0]["items"]["enum"] == list(
        defined
    )


@pytest.mark.parametrize(
    ("key", "value", "fits"),
    [
        ("targets", ["vmvx", "cuda"], True),
        ("targets", ["vmvxx"], False),
        ("targets", {"mine": {"backend": "cuda"}}, True),
        ("targets", {"vmvx": {"backend": "cu da"}}, False),
        ("targets", {"vmvx": {"extends": "vmvx"}}, True),
        ("targets", {"mine": {"extends": "vmvx", "backend": "vmvx"}}, False),
        (
            "thresholds",
            [{"metrics": ["stack_*_bytes", "vm_bytes", "*_b?tes", "[ev]*"]}],
            True,
        ),
        ("thresholds", [{"metrics": ["artefact_bytes"]}], False),
        (
            "compiler",
            {"kind": "command", "metrics": {"peak_bytes": {"unit": "bytes"}}},
            True,
        ),
        (
            "compiler",
            {"kind": "command", "metrics": {"Peak bytes": {"unit": "bytes"}}},
            False,
        ),
        (
            "compiler",
            {"kind": "command", "metrics": {"peak_bytes": {"unit": "B"}}},
            False,
        ),
    ],
)
def test_an_editor_catches_what_the_bot_refuses(
    key: str, value: object, fits: bool
) -> None:
    written = {"schema": "code-size-config/1", key: value}
    assert Draft202012Validator(CONFIGURATION).is_valid(written) is fits


def test_the_default_says_of_every_key_what_holds_without_it() -> None:
    file, default = read_configuration(configs_dir() / "default.yml")
    assert CONFIGURATION["properties"].keys() - file.data.keys() == {"templates"}
    assert set(file.data["states"]) == set(STATES)
    assert file.data["baseline"].keys() == msgspec.to_builtins(default.baseline).keys()
    bare = msgspec.convert({"schema": "code-size-config/1"}, Configuration)
    without_default = ("compiler", "models", "targets", "thresholds", "repeats")
    same = [
        name for name in Configuration.__struct_fields__ if name not in without_default
    ]
    assert [getattr(default, name) for name in same] == [
        getattr(bare, name) for name in same
    ]


def refusal(folder: Path, text: str) -> str:
    path = folder / "c.yml"
    path.write_text(SCHEMA + text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_configuration(path)
    assert "\n" not in caught.value.line
    return caught.value.line.removeprefix(f"{path}:")


def test_finding_the_wrong_entry_of_a_mapping_does_not_read_the_file_once_for_each(
    tmp_path: Path,
) -> None:
    def work(number: int) -> int:
        entries = "".join(f"  a{index}: x\n" for index in range(number))
        return steps(lambda: refusal(tmp_path, f"components:\n{entries}  z: 3\n"))

    assert work(400) < 2.4 * work(200)
