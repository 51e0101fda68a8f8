"""Find the parts of a YAML file that do not fit its type, and say how to mend them.

The file has to fit the JSON Schema of the type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from bot.config.yaml_file import KeyPath
from bot.core.json_text import canonical
from bot.core.near import near_or_known, nearest

Plain = Mapping[str, Any]  # a JSON Schema, or a part of one
Problem = tuple[KeyPath, str, str]  # where, what, how to fix it
_TYPES: dict[str, tuple[type, str]] = {
    "integer": (int, "a whole number"),
    "number": (float, "a number"),
    "boolean": (bool, "true or false"),
    "string": (str, "text"),
    "object": (dict, "a mapping"),
    "array": (list, "a list"),
    "null": (type(None), "empty"),
}
_HINTS = {
    "string": "put it in quotes",
    "integer": "write a decimal number, without quotes",
    "boolean": "write true or false, without quotes",
}
_SHOWN_CHARACTERS = 60
_EMPTY = ("is empty", "remove the key, or give it a value")


def problems_of(
    top: Plain, schema: Plain, value: Any, key_path: KeyPath
) -> Iterator[Problem]:
    """Yield all parts that do not fit, in the order of the file."""
    alternatives = _alternatives(top, schema)
    expected = set[str]()
    fitting = []
    for alternative in alternatives:
        kind = alternative.get("type", "string")
        expected.add(kind)
        if type(value) is _TYPES[kind][0]:
            fitting.append(alternative)
    if not fitting:
        yield key_path, *_other_type(value, expected)
    elif unfit := _unfit(value, fitting[0]):
        yield key_path, *unfit
    elif isinstance(value, dict):
        yield from _problems_of_mapping(
            top, schema=fitting[0], value=value, key_path=key_path
        )
    elif isinstance(value, list):
        seen_values = set[bytes]()
        for index, item in enumerate(value):
            if fitting[0].get("uniqueItems"):
                if (text := canonical(item)) in seen_values:
                    yield (*key_path, index), f"{_shown(item)} is in the list twice", ""
                seen_values.add(text)
            yield from problems_of(
                top, schema=fitting[0]["items"], value=item, key_path=(*key_path, index)
            )


def _other_type(value: Any, expected: Set[str]) -> tuple[str, str]:
    """Say what a value is and what it must be, and how to mend it."""
    actual = ""
    expected_texts = []
    for name, (kind, text) in _TYPES.items():
        if kind is type(value):
            actual = text
        if name in expected:
            expected_texts.append(text)
    message = f"is {actual}, but must be {' or '.join(expected_texts)}"
    if isinstance(value, (dict, list, type(None))):
        return message, ""
    if "array" in expected:
        return message, f"write [{value}]"
    return message, _HINTS.get(" ".join(expected), "")


def _problems_of_mapping(
    top: Plain, schema: Plain, value: Plain, key_path: KeyPath
) -> Iterator[Problem]:
    properties = schema.get("properties", {})
    for key, item in value.items():
        part = properties.get(key) or schema.get("additionalProperties")
        if not part:
            yield (
                (*key_path, key),
                "unknown key",
                near_or_known(key, sorted(properties)),
            )
        elif unfit := _unfit(
            key, {**schema.get("propertyNames", {}), "type": "string"}
        ):
            yield (*key_path, key), *unfit
        else:
            yield from problems_of(
                top, schema=part, value=item, key_path=(*key_path, key)
            )
    for key in schema.get("required", ()):
        if key not in value:
            yield key_path, f"the key {key!r} is missing", ""
    for key, beside in schema.get("dependentSchemas", {}).items():
        for beside_key in beside["properties"]:
            if key in value and beside_key in value:
                yield (
                    (*key_path, beside_key),
                    f"cannot be combined with {key!r}",
                    "keep one of them",
                )


def _alternatives(top: Plain, schema: Plain) -> list[Plain]:
    """Return all types that a value may have, without references."""
    if "$ref" in schema:
        return _alternatives(top, top["$defs"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" not in schema:
        return [schema]
    alternatives = list[Plain]()
    for option in schema["anyOf"]:
        alternatives += _alternatives(top, option)
    return alternatives


def _unfit(value: Any, schema: Plain) -> tuple[str, str] | None:
    """Say what is wrong with a value of the right type, and how to mend it.

    The values inside of it are not looked at.
    """
    if "enum" in schema and value not in schema["enum"]:
        return _not_allowed(value, schema["enum"])
    size, size_text, ends = _size_of(value)
    minimum, maximum = (schema.get(end) for end in ends)
    if minimum is not None and size < minimum:
        if not value and not isinstance(value, int):
            return _EMPTY
        return f"{size_text} at least {minimum}", ""
    if maximum is not None and size > maximum:
        return f"{size_text} at most {maximum}", ""
    if "pattern" in schema and not re.search(schema["pattern"], value):
        hint = f"for example {' or '.join(map(str, schema['examples'][:3]))}"
        return f"{_shown(value)} does not fit: {schema['patternErrorMessage']}", hint
    return None


def _not_allowed(value: Any, allowed: Sequence[str]) -> tuple[str, str]:
    if len(allowed) == 1:
        return f"is {_shown(value)}, but must be {allowed[0]!r}", ""
    near = nearest(value, allowed)
    hint = f"did you mean {near[0]!r}?" if near else ""
    return f"is {_shown(value)}, but must be one of {', '.join(allowed)}", hint


def _size_of(value: Any) -> tuple[float, str, tuple[str, str]]:
    """Return a value's size, the beginning of an error, and the keys of both limits."""
    if isinstance(value, (int, float)):
        return value, f"is {_shown(value)}, but must be", ("minimum", "maximum")
    noun = "entries"
    ends = ("minProperties", "maxProperties")
    if isinstance(value, str):
        noun = "characters"
        ends = ("minLength", "maxLength")
    elif isinstance(value, list):
        ends = ("minItems", "maxItems")
    size = len(value)
    if size == 1:
        return size, "has one entry, but must have", ends
    return size, f"has {size:,} {noun}, but must have", ends


def _shown(value: object) -> str:
    text = repr(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[: _SHOWN_CHARACTERS - 3]}..."
