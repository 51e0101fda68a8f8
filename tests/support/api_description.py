"""GitHub's API description, as far as the tests need it: loaded once, and its schemas as validators and as objects.

The file is described in tests/fixtures/github/README.md.
"""

from __future__ import annotations

import copy
import gzip
import json
from functools import cache, lru_cache
from typing import Any, cast

from openapi_schema_validator import OAS30Validator, oas30_format_checker
from places import FIXTURES
from referencing import Registry
from referencing.jsonschema import DRAFT4

_SLICE = FIXTURES / "github" / "api-slice.json.gz"
_URN = "urn:github"
_MOMENT = "2026-01-01T00:00:00Z"

Node = dict[str, Any]


@lru_cache(maxsize=1)
def description() -> Node:
    """The OpenAPI document.

    References carry the name of the document, so that any part of it is a schema by
    itself.
    """
    loaded: Node = json.loads(gzip.decompress(_SLICE.read_bytes()))
    _prepare(loaded)
    return loaded


def _prepare(node: Any) -> None:
    """In place: absolute references, and null among nullable enums (GitHub sends null, its description forgets it)."""
    if isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, str) and value.startswith("#/components/"):
                node[key] = _URN + value
        if (
            node.get("nullable")
            and isinstance(node.get("enum"), list)
            and None not in node["enum"]
        ):
            node["enum"].append(None)
    for child in (
        node.values()
        if isinstance(node, dict)
        else node
        if isinstance(node, list)
        else ()
    ):
        _prepare(child)


def resolve(node: Node) -> Node:
    """`node`, or what it refers to."""
    while "$ref" in node:
        target: Any = description()
        for part in node["$ref"].removeprefix(f"{_URN}#/").split("/"):
            target = target[part]
        node = target
    return node


@lru_cache(maxsize=1)
def _registry() -> Registry[Any]:
    resource = DRAFT4.create_resource(description())
    return cast("Registry[Any]", Registry().with_resource(_URN, resource))


_VALIDATORS: dict[int, OAS30Validator] = {}


def validator(schema: Node) -> OAS30Validator:
    """A validator of a part of `description()`.

    Kept by identity, as the description lives as long as the process.
    """
    if id(schema) not in _VALIDATORS:
        checker = OAS30Validator(
            schema, registry=_registry(), format_checker=oas30_format_checker
        )
        _VALIDATORS[id(schema)] = checker
    return _VALIDATORS[id(schema)]


def skeleton(name: str, /, **values: Any) -> Node:
    """An object of component schema `name`: its required properties filled in by type, then `values` over them."""
    return {**copy.deepcopy(_skeleton(name)), **values}


@cache
def _skeleton(name: str) -> Node:
    value = _value(description()["components"]["schemas"][name], top=True)
    assert isinstance(value, dict), f"{name} is no object"
    return value


_BY_FORMAT = {"uri": "https://github.com/", "date-time": _MOMENT}
_BY_TYPE = {"integer": 0, "number": 0, "boolean": False, "array": [], "string": ""}


def _value(schema: Node, top: bool = False) -> Any:
    """The plainest value that satisfies `schema`.

    `top` asks for an object even where null would do.
    """
    schema = resolve(schema)
    if schema.get("nullable") and "type" in schema and not top:
        return None
    for choice in ("oneOf", "anyOf"):
        if choice in schema and "properties" not in schema:
            return _value(schema[choice][0], top)
    if "allOf" in schema:
        return {
            key: value
            for part in schema["allOf"]
            for key, value in _value(part, top=True).items()
        }
    if "properties" in schema or schema.get("type") == "object":
        properties = schema.get("properties", {})
        return {
            key: _value(properties[key])
            for key in schema.get("required", ())
            if key in properties
        }
    return _scalar(schema)


def _scalar(schema: Node) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "string" and schema.get("format") in _BY_FORMAT:
        return _BY_FORMAT[schema["format"]]
    return _BY_TYPE.get(schema.get("type", "string"), "")
