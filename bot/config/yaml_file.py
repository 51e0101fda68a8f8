"""Reads a YAML file strictly and keeps its line numbers: UTF-8, one document, no anchors, tags, double keys.

Configuration may come from a pull request, so nothing in it is executed or expanded: the YAML nodes are turned into
plain values here, by a table of the plain scalar types of YAML 1.1 (https://yaml.org/type/). That reads 0100 as 64,
1:30 as 90 and `on` as true; YAML 1.2 and people read something else. What they do not agree on is refused, with how to
write it.
"""

from __future__ import annotations

import inspect
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import islice
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
import yaml
from msgspec.structs import replace

from bot.core.json_text import canonical
from bot.core.planned import near_or_known, nearest
from bot.core.record import Small
from bot.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NUMBER_CHARACTERS = 100
"""No number that means anything here is longer, and reading a long one in base 60 takes quadratic time."""
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_DIGITS = re.compile(r"[-+]?[0-9]+")
_NUMBER_OF_YAML_1_2 = re.compile(r"[-+]?(?:0o[0-7]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)")
_SWITCHES = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})

KeyPath = tuple["str | int", ...]  # keys and list indices from the document's root


def key_text(path: KeyPath) -> str:
    """The path as people write it: `thresholds[2].warn.absolute`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


class YamlFile(Small, frozen=True):
    """A file's plain values (dict, list, str, int, float, bool, None) and where each of them stands."""

    path: Path
    data: Any
    lines: Mapping[KeyPath, int]  # path → line, counted from 1; of the key for a value in a mapping
    above: KeyPath = ()  # the keys that lead to the document's root, where that is a part of the file

    def part(self, *keys: str) -> YamlFile:
        """What stands under these keys, as a document of its own."""
        data, depth = self.data, len(keys)
        for key in keys:
            data = data[key]
        lines = {path[depth:]: line for path, line in self.lines.items() if path[:depth] == keys}
        return replace(self, data=data, lines=lines, above=(*self.above, *keys))

    def line(self, path: KeyPath) -> int:
        """The line of a value; of the nearest one around it where the path does not exist."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, path: KeyPath, what: str, hint: str = "") -> ConfigError:
        """The error to raise about a value: it names file, line and key."""
        return _error(self.path, self.line(path), what, hint, key=key_text((*self.above, *path)))


def _error(path: Path, line: int, what: str, hint: str = "", *, key: str = "") -> ConfigError:
    return ConfigError(what, where=f"{path}:{line}" + (f": {key}" if key else ""), hint=hint)


class _Refused(Exception):
    """A node that is valid YAML and not accepted; args: line, what, hint."""


class _StrictLoader(yaml.SafeLoader):
    """Refuses anchors, aliases, tags and deep nesting while composing, before anything can be expanded."""

    depth = 0

    def next_line(self) -> int:
        return int(self.peek_event().start_mark.line) + 1  # type: ignore[no-untyped-call]

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = self.next_line()
        if getattr(event, "anchor", None) is not None:
            raise _Refused(line, "anchors and aliases are not allowed", "write the value out")
        if getattr(event, "tag", None) is not None:
            raise _Refused(line, f"the tag {event.tag!r} is not allowed", "write a plain value")
        if self.depth >= MAX_DEPTH:
            raise _Refused(line, f"is nested more than {MAX_DEPTH} levels deep", "")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def composed(path: Path, text: str) -> tuple[_StrictLoader, yaml.Node]:
    """The nodes of a text, which know where they stand in it; raises ConfigError for what is not accepted."""
    try:
        loader = _StrictLoader(text)
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            raise _Refused(1, "is empty", "begin with 'schema: code-size-config/1'")
        if loader.check_node():
            raise _Refused(loader.next_line(), "a second document begins here", "keep one document per file")
    except _Refused as error:
        raise _error(path, *error.args) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _error(path, line, f"the character U+{ord(text[error.position]):04X} is not allowed") from error
    except yaml.MarkedYAMLError as error:
        last_line = text.rstrip().count("\n") + 1
        marks = [mark.line + 1 for mark in (error.problem_mark, error.context_mark) if mark]
        raise _error(
            path, next((line for line in marks if line <= last_line), last_line), f"is not YAML: {error.problem}"
        ) from error
    return loader, node


_CONSTRUCT: dict[str, Callable[[yaml.SafeLoader, Any], Any]] = {
    "tag:yaml.org,2002:int": yaml.SafeLoader.construct_yaml_int,
    "tag:yaml.org,2002:float": yaml.SafeLoader.construct_yaml_float,
    "tag:yaml.org,2002:bool": yaml.SafeLoader.construct_yaml_bool,
    "tag:yaml.org,2002:null": yaml.SafeLoader.construct_yaml_null,
}
"""What is not listed (dates among it) stays the text that was written."""


def _refusal(text: str, value: str | int | float | bool | None) -> tuple[str, str] | None:
    """What is wrong with an unquoted word, and how to fix it; None where everybody reads it alike.

    `value`: what YAML 1.1 reads.
    """
    if isinstance(value, bool) and text not in _SWITCHES:
        word = str(value).lower()
        return f"{text!r} is {word} in YAML 1.1 and text in YAML 1.2", f"write {word}, or put it in quotes"
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not _DECIMAL.fullmatch(text):
        return _no_decimal(text, value, "YAML 1.1")
    if isinstance(value, str) and len(text) <= MAX_NUMBER_CHARACTERS and _NUMBER_OF_YAML_1_2.fullmatch(text):
        return _no_decimal(text, int(text, 8) if "o" in text else float(text), "YAML 1.2")
    return None


def _no_decimal(text: str, value: int | float, version: str) -> tuple[str, str]:
    read = int(value) if isfinite(value) and value == int(value) else value
    meant = int(text) if _DIGITS.fullmatch(text) else read
    write = f"write {meant}" if isfinite(meant) else "write a decimal number"
    what = f"{text!r} is {read} in {version}, and numbers here are decimal"
    return what, f"{write}, or put it in quotes where text is meant"


class _Walk:
    def __init__(self, path: Path, loader: _StrictLoader) -> None:
        self.path, self.loader = path, loader
        self.lines: dict[KeyPath, int] = {}

    def value(self, node: yaml.Node, at: KeyPath) -> Any:
        self.lines.setdefault(at, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            mapping: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key, line = self.key(key_node), key_node.start_mark.line + 1
                here: KeyPath = (*at, key)
                if key in mapping:
                    what = f"is there already, at line {self.lines[here]}"
                    raise _error(self.path, line, what, key=key_text(here))
                self.lines[here] = line
                mapping[key] = self.value(value_node, here)
            return mapping
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, at)
        return [self.value(item, (*at, index)) for index, item in enumerate(node.value)]

    def key(self, node: yaml.Node) -> str:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            raise _error(self.path, line, "a key is text, not a list or a mapping")
        if node.tag in _CONSTRUCT:
            kind = node.tag.rpartition(":")[2]
            raise _error(self.path, line, f"the key {node.value!r} reads as {kind}", "put it in quotes")
        return str(node.value)

    def scalar(self, node: yaml.ScalarNode, at: KeyPath) -> Any:
        construct, line = _CONSTRUCT.get(node.tag), node.start_mark.line + 1
        try:
            if construct and len(node.value) > MAX_NUMBER_CHARACTERS:
                raise ValueError
            value = construct(self.loader, node) if construct else node.value
        except ValueError as error:  # such as 0b_ or five thousand digits
            raise _error(self.path, line, "is no number", "put it in quotes", key=key_text(at)) from error
        if not node.style and (refused := _refusal(node.value, value)):
            raise _error(self.path, line, *refused, key=key_text(at))
        return value


def read_yaml(path: Path) -> YamlFile:
    """Read one file; raises ConfigError naming file and line for everything that is not accepted."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES:,} bytes", where=str(path))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise _error(path, line, what, "save the file as UTF-8") from error
    return parse_yaml(path, text)


def parse_yaml(path: Path, text: str) -> YamlFile:
    """The same of a text that is not in the file yet."""
    loader, node = composed(path, text)
    walk = _Walk(path, loader)
    data = walk.value(node, ())
    return YamlFile(path, data, walk.lines)


def with_values(path: Path, text: str, values: Mapping[KeyPath, str]) -> tuple[str, dict[KeyPath, ConfigError]]:
    """The text with other plain values at these keys, and why at some of them it is as it was.

    `path`: of the file, for what is said.
    """
    file, (_, root) = parse_yaml(path, text), composed(path, text)
    wanted, edits, refused = deepcopy(file.data), list[tuple[int, int, str]](), dict[KeyPath, ConfigError]()
    for at, new in values.items():
        inside, node = wanted, root
        for part in at:
            outside, inside = inside, inside[part]
            node = node.value[part] if isinstance(part, int) else next(v for key, v in node.value if key.value == part)
        start, end, value = node.start_mark.index, node.end_mark.index, type(inside)(new)
        written = text[start:end].replace(str(inside), new, 1)
        if _data(path, written) == value:
            outside[at[-1]] = value
            edits.append((start, end, written))
        else:
            refused[at] = file.error(at, "is written in a way that cannot be edited", f"write {new} by hand")
    parts, last = list[str](), 0
    for start, end, written in sorted(edits):
        parts += [text[last:start], written]
        last = end
    edited = "".join((*parts, text[last:]))
    if _data(path, edited) != wanted:
        raise ConfigError("is written in a way that cannot be edited", where=str(path))
    return edited, refused


def _data(path: Path, text: str) -> Any:
    try:
        return parse_yaml(path, text).data
    except ConfigError:
        return None


# A YAML file as a value of a type, the type as a JSON Schema for editors, and in one line what of a file does not fit.
#
# The types are the only description of what a file may hold; each stands beside the code that gives it its meaning.


_T = TypeVar("_T")
Plain = Mapping[str, Any]  # a JSON Schema, or a part of one
Problem = tuple[KeyPath, str, str]  # where, what, how to fix it
_ONE_AT_A_TIME = Lock()
"""The library fills in what it knows of a type when it is first asked for; two threads that ask at once crash it."""


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of a file with these keys, and no others; the `Attributes` of its docstring are what editors show."""

    # what its JSON Schema says beside the types. Of these `dependentSchemas` (a key beside which others are refused),
    # `minProperties` and `anyOf` (keys of which one is required) are checked here, too.
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
