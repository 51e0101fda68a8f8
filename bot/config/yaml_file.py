"""Read a YAML file strictly, and keep its line numbers.

UTF-8, one document, no anchors, tags or double keys.

Configuration may come from a pull request, so nothing in it is executed or expanded:
the YAML nodes are turned into plain values here. What YAML 1.1 and 1.2 do not read
alike (0100, 1:30, 1e3, `on`) is the text that was written, and so a mistake where a
number or a switch is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

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
    """The plain values of a file, and the place of each of them.

    A plain value is a dict, list, str, int, float, bool or None.
    """

    path: Path
    data: Any
    # path → line, counted from 1; of the key for a value in a mapping
    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """Return the line of a value, or of the nearest value around a path without one."""
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
    """A node that is valid YAML and not accepted. Its args are line, what and hint."""


class _StrictLoader(yaml.BaseLoader):
    """Composes YAML without anchors, aliases, tags and deep nesting.

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
    """Return the nodes of a text, which know their places in it.

    Raises ConfigError for YAML that is not accepted.
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
        line = last_line
        for mark in (error.context_mark, error.problem_mark):
            if mark and mark.line < last_line:
                line = mark.line + 1
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
                key = self.key(key_node)
                line = key_node.start_mark.line + 1
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
        items = []
        for index, item in enumerate(node.value):
            items.append(self.value(item, (*key_path, index)))
        return items

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

        It is refused if an escape in it makes a character that the file may not
        have either.
        """
        if refused := yaml.reader.Reader.NON_PRINTABLE.search(node.value):
            message = f"the character U+{ord(refused[0]):04X} is not allowed"
            raise _error(self.path, node.start_mark.line + 1, message)
        return node


def _scalar(node: yaml.ScalarNode) -> str | int | float | bool | None:
    """Return the text, or the value that everybody reads if it is not in quotes."""
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
