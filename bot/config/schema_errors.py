"""Says in one line what a JSON Schema has against a configuration: file, line, key, nearest fit.

The schema file is the only description of shapes; this module only words its verdicts. Texts for patterns
come from the schema's own `patternErrorMessage`, which editors show too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry

from bot.config.yaml_file import KeyPath, YamlFile

_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "empty",
}
Problem = tuple[KeyPath, str, str]
"""Where, what, how to fix it."""
_Error = Any
"""A jsonschema ValidationError; the stubs call its attributes possibly unset, which they never are here."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the nearest known word; without a near one, all of them."""
    words = sorted(known)
    near = get_close_matches(word, words, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known: " + ", ".join(words) if words else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(value: object) -> str:
    for name, kind in _KINDS.items():
        if Draft202012Validator.TYPE_CHECKER.is_type(value, name):
            return kind
    return type(value).__name__


def _unknown_key(error: _Error, at: KeyPath) -> Problem:
    known = error.schema["properties"]
    key = next(key for key in error.instance if key not in known)
    return (*at, key), "unknown key", did_you_mean(key, known)


def _missing(error: _Error, at: KeyPath) -> Problem:
    key = next(key for key in error.schema["required"] if key not in error.instance)
    return at, f"the key {key!r} is missing", ""


def _type(error: _Error, at: KeyPath) -> Problem:
    wanted = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    given = _kind(error.instance)
    simple = not isinstance(error.instance, (dict, list, type(None)))
    hint = ""
    if simple and "array" in wanted:
        hint = f"write [{error.instance}]"
    elif simple and wanted == ["string"]:
        hint = "put it in quotes"
    return at, f"is {given}, must be {' or '.join(_KINDS[name] for name in wanted)}", hint


def _constant(error: _Error, at: KeyPath) -> Problem:
    return at, f"is {_shown(error.instance)}, must be {error.validator_value!r}", ""


def _enum(error: _Error, at: KeyPath) -> Problem:
    words = [str(word) for word in error.validator_value]
    if "title" in error.schema:
        return _unknown_name(error, at, words)
    what = f"is {_shown(error.instance)}, must be one of {', '.join(words)}"
    near = get_close_matches(str(error.instance), words, n=1, cutoff=0.5)
    return at, what, f"did you mean {near[0]!r}?" if near else ""


def _unknown_name(error: _Error, at: KeyPath, words: Iterable[str]) -> Problem:
    """The schema's `title` says what it would be the name of."""
    if "propertyNames" in error.absolute_schema_path:
        at = (*at, error.instance)
    what = f"no {error.schema['title']} is called {_shown(error.instance)}"
    return at, what, did_you_mean(str(error.instance), words)


def _name_or_glob(error: _Error, at: KeyPath) -> Problem:
    return _unknown_name(error, at, error.validator_value[0]["enum"])


def _pattern(error: _Error, at: KeyPath) -> Problem:
    examples = " or ".join(str(example) for example in error.schema.get("examples", ())[:3])
    message = error.schema.get("patternErrorMessage", f"must match {error.validator_value}")
    if "propertyNames" in error.absolute_schema_path:
        at = (*at, error.instance)
    what = f"{_shown(error.instance)} does not fit: {message}"
    return at, what, f"for example {examples}" if examples else ""


def _forbidden(error: _Error, at: KeyPath) -> Problem:
    return at, f"cannot stand beside {error.absolute_schema_path[-4]!r}", "keep one of them"


def _empty(_error: _Error, at: KeyPath) -> Problem:
    return at, "is empty", "leave the key out, or give it a value"


def _bound(error: _Error, at: KeyPath) -> Problem:
    side = "least" if error.validator == "minimum" else "most"
    return at, f"is {_shown(error.instance)}, must be at {side} {error.validator_value}", ""


def _twice(error: _Error, at: KeyPath) -> Problem:
    items = error.instance
    index = next(i for i, item in enumerate(items) if item in items[:i])
    return (*at, index), f"{_shown(items[index])} is in the list twice", ""


_WORDING: dict[str, Callable[[_Error, KeyPath], Problem]] = {
    "additionalProperties": _unknown_key,
    "required": _missing,
    "type": _type,
    "const": _constant,
    "enum": _enum,
    "anyOf": _name_or_glob,
    "pattern": _pattern,
    "minItems": _empty,
    "minLength": _empty,
    "minProperties": _empty,
    "minimum": _bound,
    "maximum": _bound,
    "uniqueItems": _twice,
    "not": _forbidden,
}


def _problem(error: _Error) -> Problem:
    at = tuple(error.absolute_path)
    wording = _WORDING.get(error.validator)
    return wording(error, at) if wording else (at, error.message[:200], "")


def check_shape(
    file: YamlFile, schema: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Raise a ConfigError for the first problem in the order of the file's lines, if there is any.

    A missing key comes last: it has no line of its own, and is often another one's typo.

    Args:
        others: name → a schema that this one refers to by that name.
    """
    registry: Registry[Any] = Registry().with_contents((others or {}).items())

    def relevance(error: _Error) -> tuple[bool, int]:
        return error.validator != "required", -file.line(_problem(error)[0])

    error = best_match(Draft202012Validator(schema, registry=registry).iter_errors(file.data), key=relevance)
    if error is not None:
        raise file.error(*_problem(error))


def objection(value: object, schema: Mapping[str, Any]) -> str:
    """What a schema has against a value that is in no file, in one line; empty where it fits."""
    error = best_match(Draft202012Validator(schema).iter_errors(value))
    if error is None:
        return ""
    _, what, hint = _problem(error)
    return f"{what} ({hint})" if hint else what
