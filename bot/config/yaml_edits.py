"""Values of a YAML text replaced, where not a byte changes beside them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from bot.config.yaml_file import KeyPath, composed, parse_yaml
from bot.errors import ConfigError


def with_values(path: Path, text: str, values: Mapping[KeyPath, str]) -> tuple[str, dict[KeyPath, ConfigError]]:
    """The text with other plain values at these keys, and why at some of them it is as it was.

    Args:
        path: of the file, for what is said.
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
    made, last = list[str](), 0
    for start, end, written in sorted(edits):
        made += [text[last:start], written]
        last = end
    edited = "".join((*made, text[last:]))
    if _data(path, edited) != wanted:
        raise ConfigError("is written in a way that cannot be edited", where=str(path))
    return edited, refused


def _data(path: Path, text: str) -> Any:
    try:
        return parse_yaml(path, text).data
    except ConfigError:
        return None
