"""One value of a YAML text replaced, where not a byte changes beside it."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

from bot.errors import ConfigError
from bot.inputs.yaml.yaml_file import KeyPath, parse_yaml


def with_value(path: Path, text: str, at: KeyPath, new: str) -> str:
    """The text with another plain value at a key; raises ConfigError where that cannot be edited.

    Of all places that look like the old value the one is taken by which the file changes there and nowhere else.

    Args:
        path: of the file, for what is said.
    """
    file = parse_yaml(path, text)
    wanted, old = _replaced(file.data, at, new)
    for match in re.finditer(re.escape(str(old)), text):
        edited = f"{text[: match.start()]}{new}{text[match.end() :]}"
        if _data(path, edited) == wanted:
            return edited
    raise file.error(at, "is written in a way that cannot be edited", f"write {new} by hand")


def _replaced(data: Any, at: KeyPath, new: str) -> tuple[Any, Any]:
    """The values with another one at a key, of the same type, and the one that was there."""
    found = deepcopy(data)
    inside = found
    for part in at[:-1]:
        inside = inside[part]
    old = inside[at[-1]]
    inside[at[-1]] = type(old)(new)
    return found, old


def _data(path: Path, text: str) -> Any:
    try:
        return parse_yaml(path, text).data
    except ConfigError:
        return None
