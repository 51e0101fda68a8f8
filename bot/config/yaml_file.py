"""Read a YAML file strictly, and keep its line numbers.

UTF-8, one document, no anchors, tags or double keys.

Configuration may come from a pull request, so nothing in it is executed or expanded:
the YAML nodes are turned into plain values here. What YAML 1.1 and 1.2 do not read
alike (0100, 1:30, 1e3, `on`) is the text that was written, and so a mistake where a
number or a switch is wanted.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
import yaml

from bot.core.json_text import canonical, converted
from bot.core.near import near_or_known, nearest
from bot.core.record import Small
from bot.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?")
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}

KeyPath = tuple["str | int", ...]  # keys and list indices from the document's root


def key_text(path: KeyPath) -> str:
    """Return the path as people write it: `thresholds[2].warn.absolute`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


class YamlFile(Small, frozen=True):
    """Hold a file's plain values, and where each of them stands.

    A plain value is a dict, list, str, int, float, bool or None.
    """

    path: Path
    data: Any
    # path → line, counted from 1; of the key for a value in a mapping
    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """Return the line of a value.

        Of the nearest one around it where the path does not exist.
        """
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, path: KeyPath, message: str, hint: str = "") -> ConfigError:
        """Return the error to raise about a value: it names file, line and key."""
        return _error(
            self.path,
            line=self.line(path),
            message=message,
            hint=hint,
            key=key_text(path),
        )


def _error(
    path: Path, line: int, message: str, hint: str = "", *, key: str = ""
) -> ConfigError:
    return ConfigError(
        message, where=f"{path}:{line}" + (f": {key}" if key else ""), hint=hint
    )


class _Refused(Exception):
    """A node that is valid YAML and not accepted; args: line, what, hint."""


class _StrictLoader(yaml.BaseLoader):
    """Compose YAML without anchors, aliases, tags and deep nesting.

    They are refused before anything can be expanded.
    """

    depth = 0

    def next_line(self) -> int:
        return int(self.peek_event().start_mark.line) + 1  # type: ignore[no-untyped-call]

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = self.next_line()
        if getattr(event, "anchor", None) is not None:
            raise _Refused(
                line, "anchors and aliases are not allowed", "repeat the value instead"
            )
        if getattr(event, "tag", None) is not None:
            raise _Refused(
                line, f"the tag {event.tag!r} is not allowed", "write a plain value"
            )
        if self.depth >= MAX_DEPTH:
            raise _Refused(line, f"is nested more than {MAX_DEPTH} levels deep", "")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _composed(path: Path, text: str) -> yaml.Node:
    """Return the nodes of a text, which know where they stand in it.

    Raises ConfigError for what is not accepted.
    """
    try:
        loader = _StrictLoader(text)
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            raise _Refused(1, "is empty", "begin with 'schema: code-size-config/1'")
        if loader.check_node():
            raise _Refused(
                loader.next_line(),
                "a second document begins here",
                "keep one document per file",
            )
    except _Refused as error:
        raise _error(path, *error.args) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _error(
            path,
            line,
            f"the character U+{ord(text[error.position]):04X} is not allowed",
        ) from error
    except yaml.MarkedYAMLError as error:
        last_line = text.rstrip().count("\n") + 1
        marks = [
            mark.line + 1 for mark in (error.problem_mark, error.context_mark) if mark
        ]
        line = next((line for line in marks if line <= last_line), last_line)
        hint = "check the brackets, quotes and indentation"
        raise _error(
            path, line=line, message=f"is not YAML: {error.problem}", hint=hint
        ) from error
    return node


class _Walk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[KeyPath, int] = {}

    def value(self, node: yaml.Node, key_path: KeyPath) -> Any:
        self.lines.setdefault(key_path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            mapping: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key, line = self.key(key_node), key_node.start_mark.line + 1
                place: KeyPath = (*key_path, key)
                if key in mapping:
                    message = f"repeats the key of line {self.lines[place]}"
                    raise _error(
                        self.path,
                        line=line,
                        message=message,
                        hint="keep one of them",
                        key=key_text(place),
                    )
                self.lines[place] = line
                mapping[key] = self.value(value_node, place)
            return mapping
        if isinstance(node, yaml.ScalarNode):
            return _scalar(self.printable(node))
        return [
            self.value(item, (*key_path, index))
            for index, item in enumerate(node.value)
        ]

    def key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _error(
                self.path,
                node.start_mark.line + 1,
                "a key is text, not a list or a mapping",
            )
        return str(self.printable(node).value)

    def printable(self, node: yaml.ScalarNode) -> yaml.ScalarNode:
        """Return the node.

        Refused for a character, written as an escape, that is not allowed in the file
        either.
        """
        if refused := yaml.reader.Reader.NON_PRINTABLE.search(node.value):
            message = f"the character U+{ord(refused[0]):04X} is not allowed"
            raise _error(self.path, node.start_mark.line + 1, message)
        return node


def _scalar(node: yaml.ScalarNode) -> str | int | float | bool | None:
    """Text, but where it is not in quotes and everybody reads it as something else."""
    text: str = node.value
    if node.style:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _DECIMAL.fullmatch(text):
        if "." in text:
            return float(text)
        return int(text)
    return text


def read_yaml(path: Path) -> YamlFile:
    """Read one file.

    Raises ConfigError naming file and line for everything that is not accepted.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror}", where=str(path)
        ) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES:,} bytes", where=str(path))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise _error(
            path, line=line, message=message, hint="save the file as UTF-8"
        ) from error
    walk = _Walk(path)
    return YamlFile(path, walk.value(_composed(path, text), ()), walk.lines)


# A YAML file as a value of a type. The types are the only description of what a file
# may hold: a JSON Schema for editors is made from them, and what does not fit is looked
# for by it.

_T = TypeVar("_T")
Plain = Mapping[str, Any]  # a JSON Schema, or a part of one
Problem = tuple[KeyPath, str, str]  # where, what, how to fix it


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of a file with these keys, and no others.

    The `Attributes` of its docstring are what editors show.
    """

    # what its JSON Schema says beside the types: `dependentSchemas` (a key beside which
    # others are refused) and `minProperties`
    keywords: ClassVar[Plain] = {}


def examples(*values: Any, **constraints: Any) -> msgspec.Meta:
    """Examples for editors, and for the message about a value that does not fit.

    With constraints of the library.
    """
    return msgspec.Meta(examples=list(values), **constraints)


END = r"(?![\s\S])"  # of a text; `$` would allow a line feed behind it


def pattern(regex: str, means: str, *values: Any, **constraints: Any) -> msgspec.Meta:
    """Return the type of a text that fits a regular expression as a whole.

    With what it means in words, and values that fit.
    """
    extra = {"patternErrorMessage": means}
    return examples(
        *values, pattern=f"^{regex}{END}", extra_json_schema=extra, **constraints
    )


def distinct(*values: Any, minimum: int = 0, **keywords: Any) -> msgspec.Meta:
    """For a list of at least so many, without anything twice."""
    return examples(
        *values, min_length=minimum, extra_json_schema={"uniqueItems": True, **keywords}
    )


FLAG = r"-[^\u0000-\u001f]+"
Text = Annotated[str, msgspec.Meta(min_length=1)]
Globs = Annotated[tuple[Text, ...], distinct(["*"], minimum=1)]
Flag = Annotated[
    str, pattern(FLAG, "a flag begins with - and is on one line", "--iree-opt-level=O2")
]
Flags = Annotated[tuple[Flag, ...], examples(["--iree-opt-level=O2"])]
Spec = Annotated[
    Text, examples("3.13.0", "iree-base-compiler==3.13.0", "build/tools/iree-compile")
]
_SHARE = "a relative level is a non-negative number with %"
Percentage = Annotated[str, pattern("(0|[1-9][0-9]*)([.][0-9]+)? *%", _SHARE, "1.5%")]


def except_beside(**others: tuple[str, ...]) -> dict[str, Any]:
    """Keywords for keys that cannot be combined with these others."""
    beside: dict[str, Any] = {
        key: {"properties": {name: {"not": {}} for name in names}}
        for key, names in others.items()
    }
    return {"dependentSchemas": beside}


def read_as(file: YamlFile, kind: type[_T]) -> _T:
    """Return the file's data as a value of the type.

    Raises ConfigError for the first problem, with line, key and remedy.
    """
    top = json_schema(kind)
    if problem := next(_problems(top, schema=top, value=file.data, key_path=()), None):
        raise file.error(*problem)
    return converted(file.data, kind, str(file.path))


def _json_schema(kind: Any) -> dict[str, Any]:
    (root,), parts = msgspec.json.schema_components(
        [kind], ref_template="#/$defs/{name}"
    )
    for entry in Keys.__subclasses__():
        if part := parts.get(entry.__name__):
            text, _, attributes = inspect.cleandoc(entry.__doc__ or "").partition(
                "\n\nAttributes:\n"
            )
            described = dict(
                re.findall(
                    r"^    (\w\S*): (.*(?:\n {5,}.*)*)", attributes, re.MULTILINE
                )
            )
            for key, value in part["properties"].items():
                value.pop("default", None)
                if key in described:
                    value["description"] = " ".join(described[key].split())
            del part["title"]
            part |= {"description": " ".join(text.split()), **entry.keywords}
    top = parts.pop(root["$ref"].rpartition("/")[2])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **top,
        "$defs": parts,
    }


json_schema: Callable[[Any], dict[str, Any]] = lru_cache(_json_schema)
"""The JSON Schema of a type, with descriptions from the docstrings of its mappings."""


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


def _problems(
    top: Plain, schema: Plain, value: Any, key_path: KeyPath
) -> Iterator[Problem]:
    """Yield all that does not fit, in the order of the file."""
    alternatives = _alternatives(top, schema)
    fitting = [
        alternative
        for alternative in alternatives
        if type(value) is _TYPES[alternative.get("type", "string")][0]
    ]
    if not fitting:
        expected = {part.get("type", "string") for part in alternatives}
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
            yield from _problems(
                top, schema=fitting[0]["items"], value=item, key_path=(*key_path, index)
            )


def _other_type(value: Any, expected: Set[str]) -> tuple[str, str]:
    """Say what a value is and what it must be, and how to mend it."""
    actual = next(text for kind, text in _TYPES.values() if kind is type(value))
    must = " or ".join(text for name, (_, text) in _TYPES.items() if name in expected)
    message = f"is {actual}, but must be {must}"
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
            yield from _problems(
                top, schema=part, value=item, key_path=(*key_path, key)
            )
    yield from (
        (key_path, f"the key {key!r} is missing", "")
        for key in schema.get("required", ())
        if key not in value
    )
    for key, beside in schema.get("dependentSchemas", {}).items():
        for beside_key in beside["properties"]:
            if key in value and beside_key in value:
                yield (
                    (*key_path, beside_key),
                    f"cannot be combined with {key!r}",
                    "keep one of them",
                )


def _alternatives(top: Plain, schema: Plain) -> list[Plain]:
    """Return all that a value may be, without references."""
    if "$ref" in schema:
        return _alternatives(top, top["$defs"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" not in schema:
        return [schema]
    return [
        alternative
        for option in schema["anyOf"]
        for alternative in _alternatives(top, option)
    ]


def _unfit(value: Any, schema: Plain) -> tuple[str, str] | None:
    """Say what is wrong with a value of the right type, and how to mend it.

    Whatever is in it is not looked at.
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
    """Return what limits are about, how an error begins, and the keys of both limits."""
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
