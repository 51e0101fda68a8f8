"""A YAML file as a value of a type, the type as a JSON Schema for editors, and in one line what of a file does not fit.

The types are the only description of what a file may hold; each stands beside the code that gives it its meaning.
"""

from __future__ import annotations

import inspect
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from bot.config.yaml_file import KeyPath, YamlFile
from bot.core.json_text import canonical
from bot.core.planned import near_or_known, nearest

_T = TypeVar("_T")
Plain = Mapping[str, Any]
"""A JSON Schema, or a part of one."""
Problem = tuple[KeyPath, str, str]
"""Where, what, how to fix it."""
_ONE_AT_A_TIME = Lock()
"""The library fills in what it knows of a type when it is first asked for; two threads that ask at once crash it."""


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of a file with these keys, and no others; the `Attributes` of its docstring are what editors show.

    Attributes:
        keywords: what its JSON Schema says beside the types. Of these `dependentSchemas` (a key beside which others are
            refused), `minProperties` and `anyOf` (keys of which one is required) are checked here, too.
    """

    keywords: ClassVar[Plain] = {}


def examples(*values: Any, **constraints: Any) -> msgspec.Meta:
    """Examples for editors, and for the message about a value that does not fit; with constraints of the library."""
    return msgspec.Meta(examples=list(values), **constraints)


def pattern(regex: str, means: str, *values: Any, **constraints: Any) -> msgspec.Meta:
    """A regular expression that JavaScript reads alike, what it means in words, and values that fit."""
    return examples(*values, pattern=regex, extra_json_schema={"patternErrorMessage": means}, **constraints)


def distinct(*values: Any, least: int = 0, **keywords: Any) -> msgspec.Meta:
    """For a list without anything twice, of at least so many."""
    return examples(*values, min_length=least, extra_json_schema={"uniqueItems": True, **keywords})


FLAG = r"^--[^\u0000-\u001f]+(?![\s\S])"
Text = Annotated[str, msgspec.Meta(min_length=1)]
Globs = Annotated[tuple[Text, ...], distinct(["*"], least=1)]
Flag = Annotated[str, pattern(FLAG, "a flag begins with -- and is on one line", "--iree-opt-level=O2")]
Flags = Annotated[tuple[Flag, ...], examples(["--iree-opt-level=O2"])]
Spec = Annotated[Text, examples("3.13.0", "iree-base-compiler==3.13.0", "build/tools/iree-compile")]
Percentage = Annotated[
    str, pattern(r"^[0-9]+([.][0-9]+)? *%(?![\s\S])", "a relative level is a number, not negative, with %", "1.5%")
]


def except_beside(**others: tuple[str, ...]) -> dict[str, Any]:
    """Keywords for keys that cannot stand beside these others."""
    return {
        "dependentSchemas": {
            key: {"properties": {name: {"not": {}} for name in names}} for key, names in others.items()
        }
    }


def read_as(file: YamlFile, kind: type[_T]) -> _T:
    """The file's data as a value of the type; raises ConfigError for the first problem, with line, key and remedy."""
    try:
        with _ONE_AT_A_TIME:
            value = msgspec.convert(file.data, kind)
    except msgspec.ValidationError as error:
        raise file.error(*_worded(error, file.data, kind)) from None
    schema = json_schema(kind)
    if problem := next(_beyond_types(schema, schema, file.data, ()), None):
        raise file.error(*problem)
    return value


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A hint: the nearest known word; where none is near, those that there are."""
    near = nearest(word, known)[:1]
    return f"did you mean {near[0]!r}?" if near else near_or_known(word, known)


# --- for editors ----------------------------------------------------------------------------------------------------


def _json_schema(kind: Any) -> dict[str, Any]:
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    for entry in Keys.__subclasses__():
        if part := parts.get(entry.__name__):
            text, _, attributes = inspect.cleandoc(entry.__doc__ or "").partition("\n\nAttributes:\n")
            described = dict(re.findall(r"^    (\w\S*): (.*(?:\n {5,}.*)*)", attributes, re.MULTILINE))
            for key, value in part["properties"].items():
                value.pop("default", None)
                if key in described:
                    value["description"] = " ".join(described[key].split())
            del part["title"]
            part |= {"description": " ".join(text.split()), **entry.keywords}
    top = parts.pop(root["$ref"].rpartition("/")[2])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": parts}


json_schema: Callable[[Any], dict[str, Any]] = lru_cache(_json_schema)
"""The JSON Schema of a type, with descriptions from the docstrings of its mappings."""


# --- what does not fit ----------------------------------------------------------------------------------------------

_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "empty",
}
_JSON_TYPES = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean"}
_MESSAGE = re.compile(r"(.*?)(?: - at `(key` in `)?\$([\w.\[\]-]*)`)?", re.DOTALL)
"""The library's: what, whether a key is meant and not its value, and the place."""
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]|\[(\.\.\.)\]")
_SHOWN_CHARACTERS = 60
_EMPTY = ("is empty", "leave the key out, or give it a value")
_UNKNOWN = "unknown key"
_MOST = {">=": "least", "<=": "most"}


def _worded(error: msgspec.ValidationError, data: Any, kind: type[Any]) -> Problem:
    """What the library has against the data, in the words of people who write YAML."""
    top, at, value = json_schema(kind), KeyPath(), data
    if str(error).startswith("Object contains unknown field"):  # the rest of the message may be anything
        return next(problem for problem in _beyond_types(top, top, data, ()) if problem[1] == _UNKNOWN)
    message = _MESSAGE.fullmatch(str(error))
    said, of_key, place = message.groups() if message else (str(error), None, None)
    steps = [key or (int(index) if index else None) for key, index, _ in _STEP.findall(place or "")]
    schema = around = _branch(top, top, data)
    for step in [*steps, *([None] if of_key else [])]:
        known = _failing_key(str(error), data, kind, at, value) if step is None else step
        if step is None:  # entries behind it could have the same said of them
            value = dict(islice(value.items(), list(value).index(known) + 1))
            data = _with(data, at, value)
        at, value, around = (*at, known), value[known], schema
        schema = _branch(top, _below(schema, known) or {}, value)
    what, hint = _problem(said, at[-1], around["propertyNames"]) if of_key else _problem(said, value, schema)
    return at, what, hint


def _failing_key(message: str, data: Any, kind: type[Any], at: KeyPath, mapping: Mapping[str, Any]) -> str:
    """Which entry of a mapping is meant, as the library does not say: the last one of those with which it says this."""

    def fails(count: int) -> bool:
        try:
            msgspec.convert(_with(data, at, dict(islice(mapping.items(), count))), kind)
        except msgspec.ValidationError as error:
            return str(error) == message
        return False

    return list(mapping)[bisect_left(range(1, len(mapping)), True, key=fails)]


def _with(data: Any, at: KeyPath, new: Any) -> Any:
    if not at:
        return new
    copy = data.copy()
    copy[at[0]] = _with(data[at[0]], at[1:], new)
    return copy


def _branch(top: Plain, schema: Plain, value: Any) -> Plain:
    """The part of a schema that speaks of such a value: what is referred to, of alternatives the one of its type."""
    if "$ref" in schema:
        return _branch(top, top["$defs"][schema["$ref"].rpartition("/")[2]], value)
    if "anyOf" not in schema or "type" in schema:
        return schema
    of_type = [
        one
        for each in schema["anyOf"]
        if (one := _branch(top, each, value)).get("type") == _JSON_TYPES.get(type(value))
    ]
    if tagged := schema.get("discriminator"):
        tag, words = tagged["propertyName"], list(tagged["mapping"])
        of_type = [one for one in of_type if value.get(tag) in one["properties"][tag]["enum"]]
        of_type.append({"properties": {tag: {"enum": words}}})
    return of_type[0] if of_type else schema


def _below(schema: Plain, step: str | int) -> Plain | None:
    """The part of a mapping's or a list's schema that speaks of one of its values; None for an unknown key."""
    part: Plain = schema["items"] if isinstance(step, int) else schema.get("properties", {}).get(step)
    return part or schema.get("additionalProperties") or None


def _problem(said: str, value: Any, schema: Plain) -> tuple[str, str]:
    for regex, wording in _WORDING.items():
        if match := re.match(regex, said, re.DOTALL):
            return wording(match, value, schema)
    return said[:1].lower() + said[1:200], ""


def _wrong_type(match: re.Match[str], value: Any, _schema: Plain) -> tuple[str, str]:
    wanted, hint = match[1].split(" | "), ""
    if not isinstance(value, (dict, list, type(None))):
        hint = f"write [{value}]" if "array" in wanted else "put it in quotes" if wanted == ["str"] else ""
    return f"is {_KINDS.get(match[2], match[2])}, must be {' or '.join(_KINDS[name] for name in wanted)}", hint


def _wrong_length(match: re.Match[str], value: Any, _schema: Plain) -> tuple[str, str]:
    if not value:
        return _EMPTY
    counted = "characters" if match[1] == "str" else "entries"
    return f"has {len(value):,} {counted}, must have at {_MOST[match[2]]} {match[3]}", ""


def _unfit_text(_match: re.Match[str], value: Any, schema: Plain) -> tuple[str, str]:
    hint = f"for example {' or '.join(map(str, schema['examples'][:3]))}"
    return f"{_shown(value)} does not fit: {schema['patternErrorMessage']}", hint


def _none_of(_match: re.Match[str], value: Any, schema: Plain) -> tuple[str, str]:
    words = schema["enum"]
    if len(words) == 1:
        return f"is {_shown(value)}, must be {words[0]!r}", ""
    near = nearest(str(value), words)[:1]
    return f"is {_shown(value)}, must be one of {', '.join(words)}", f"did you mean {near[0]!r}?" if near else ""


_WORDING: dict[str, Callable[[re.Match[str], Any, Plain], tuple[str, str]]] = {
    "Expected `(.*)`, got `(.*)`$": _wrong_type,
    "Expected `int` ([<>]=) (.*)": lambda m, value, _: (f"is {_shown(value)}, must be at {_MOST[m[1]]} {m[2]}", ""),
    "Expected `(.*)` of length ([<>]=) (.*)": _wrong_length,
    "Expected `str` matching regex": _unfit_text,
    "Object missing required field `(.*)`$": lambda m, _value, _: (f"the key {m[1]!r} is missing", ""),
    "Invalid (enum )?value": _none_of,
}
"""What the library says → how it is said here."""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."


def _beyond_types(top: Plain, schema: Plain, value: Any, at: KeyPath) -> Iterator[Problem]:
    """What the library does not look at, or does not place, in the order of the file."""
    schema = _branch(top, schema, value)
    if isinstance(value, dict):
        for key, beside in schema.get("dependentSchemas", {}).items():
            for other in beside["properties"]:
                if key in value and other in value:
                    yield (*at, other), f"cannot stand beside {key!r}", "keep one of them"
        if len(value) < (least := schema.get("minProperties", 0)):
            yield at, *(_EMPTY if not value else (f"has one entry, must have at least {least}", ""))
        needed = [name for one in schema.get("anyOf", ()) for name in one["required"]]
        if needed and not value.keys() & needed:
            yield at, f"the key {needed[0]!r} is missing", ""
    there = set[bytes]()
    for step, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        part = _below(schema, step)
        if part is None:
            yield (*at, step), _UNKNOWN, did_you_mean(str(step), sorted(schema["properties"]))
        elif schema.get("uniqueItems") and (text := canonical(item)) in there:
            yield (*at, step), f"{_shown(item)} is in the list twice", ""
        else:
            there |= {text} if schema.get("uniqueItems") else set()
            yield from _beyond_types(top, part, item, (*at, step))
