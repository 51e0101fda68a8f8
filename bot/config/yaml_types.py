"""Read a YAML file as a value of a type.

The types are the only description of what a file may hold. The JSON Schema for editors
is made from them, and it also finds values that do not fit.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from bot.config.yaml_file import YamlFile
from bot.config.yaml_problems import Plain, problems_of
from bot.core.json_text import converted

_T = TypeVar("_T")


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of a file with these keys, and no others.

    The `Attributes` of its docstring are what editors show.
    """

    # what its JSON Schema says beside the types: `dependentSchemas` (a key beside which
    # others are refused) and `minProperties`
    keywords: ClassVar[Plain] = {}


def examples(*values: Any, **constraints: Any) -> msgspec.Meta:
    """Return examples for editors, and for the message about a value that does not fit.

    `constraints`: those of the library.
    """
    return msgspec.Meta(examples=list(values), **constraints)


END = r"(?![\s\S])"  # of a text; `$` would allow a line feed behind it


def pattern(regex: str, means: str, *values: Any, **constraints: Any) -> msgspec.Meta:
    """Return the type of a text that fits a regular expression as a whole.

    `means`: what it means in words. `values`: some that fit.
    """
    extra = {"patternErrorMessage": means}
    return examples(
        *values, pattern=f"^{regex}{END}", extra_json_schema=extra, **constraints
    )


def distinct(*values: Any, minimum: int = 0, **keywords: Any) -> msgspec.Meta:
    """Return the type of a list of at least `minimum` items, without duplicates."""
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
    """Return the keywords for keys that cannot be combined with these others."""
    beside: dict[str, Any] = {}
    for key, names in others.items():
        beside[key] = {"properties": {name: {"not": {}} for name in names}}
    return {"dependentSchemas": beside}


def read_as(file: YamlFile, kind: type[_T]) -> _T:
    """Return the file's data as a value of the type.

    Raises ConfigError for the first problem, with line, key and remedy.
    """
    top = json_schema(kind)
    if problem := next(
        problems_of(top, schema=top, value=file.data, key_path=()), None
    ):
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
