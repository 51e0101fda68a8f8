"""Fields of GitHub's answers, each with the type that its documentation gives it; anything else is Unexpected."""

from __future__ import annotations

from typing import Any, TypeVar

from bot.publish.connection import Unexpected

T = TypeVar("T")


def at(value: Any, path: str) -> Any:
    """The value under a dotted path (`head.repo.full_name`); None where something on the way to its end is null."""
    done: list[str] = []
    for name in path.split("."):
        if value is None and done:
            return None
        if not isinstance(value, dict):
            place = f"`{'.'.join(done)}`" if done else "it"
            raise Unexpected(f"has {_kind(value)} where {place} is an object")
        done.append(name)
        if name not in value:
            raise Unexpected(f"has no `{'.'.join(done)}`")
        value = value[name]
    return value


def text(value: Any, path: str) -> str:
    """A string."""
    return _typed(at(value, path), str, path)


def number(value: Any, path: str) -> int:
    """An integer."""
    return _typed(at(value, path), int, path)


def flag(value: Any, path: str) -> bool:
    """True or False."""
    return _typed(at(value, path), bool, path)


def text_or_none(value: Any, path: str) -> str | None:
    """A string, or None for null."""
    found = at(value, path)
    return None if found is None else _typed(found, str, path)


def optional(value: Any, name: str) -> Any:
    """A field of an object that some servers leave out; None there."""
    return at(value, name) if isinstance(value, dict) and name in value else None


def rows(value: Any, path: str = "") -> list[Any]:
    """A list, of the answer itself where there is no path."""
    return _typed(at(value, path) if path else value, list, path)


def _typed(found: Any, kind: type[T], path: str) -> T:
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise Unexpected(f"has {_kind(found)} where {f'`{path}`' if path else 'it'} is {_NAMES[kind]}")
    return found


def _kind(found: Any) -> str:
    return "nothing" if found is None else _NAMES.get(type(found), "a number")


_NAMES: dict[type, str] = {str: "a text", int: "a number", bool: "a yes or no", list: "a list", dict: "an object"}
