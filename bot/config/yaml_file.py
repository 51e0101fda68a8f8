"""Reads a YAML file strictly and keeps its line numbers: UTF-8, one document, no anchors, tags, double keys.

Configuration may come from a pull request, so nothing in it is executed or expanded: the YAML nodes are turned into
plain values here, by a table of the plain scalar types of YAML 1.1 (https://yaml.org/type/). That reads 0100 as 64,
1:30 as 90 and `on` as true; YAML 1.2 and people read something else. What they do not agree on is refused, with how to
write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from bot.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NUMBER_CHARACTERS = 100
"""No number that means anything here is longer, and reading a long one in base 60 takes quadratic time."""
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_DIGITS = re.compile(r"[-+]?[0-9]+")
_NUMBER_OF_YAML_1_2 = re.compile(r"[-+]?(?:0o[0-7]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)")
_SWITCHES = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})

KeyPath = tuple["str | int", ...]
"""Keys and list indices from the document's root."""


def key_text(path: KeyPath) -> str:
    """The path as people write it: `thresholds[2].warn.absolute`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A file's plain values (dict, list, str, int, float, bool, None) and where each of them stands.

    Attributes:
        lines: path → line, counted from 1; of the key for a value in a mapping.
        above: the keys that lead to the document's root, where that is a part of the file.
    """

    path: Path
    data: Any
    lines: Mapping[KeyPath, int]
    above: KeyPath = ()

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
