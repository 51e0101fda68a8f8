"""How our own files are told apart, so that one given in place of another is called by its name."""

from __future__ import annotations

import re

import msgspec

_GIVE = {
    "snapshot": "give base.json or head.json, or measure one: code-size-bot measure --compiler SPEC --out FILE",
    "report": "give the report.json of a compare",
    "fold audit": "give the fold.json of a fold",
    "history": "give the history.json of a history",
    "lab result": "give the lab.json of a lab",
    "file of experiments": "give a YAML file that begins with 'schema: code-size-experiments/1'",
    "plan": "give what `plan --shards N` printed",
    "compiler": "give a release such as 3.13.0, a wheel, an iree-compile binary, or a directory that holds one",
    "configuration": "give a YAML file: `code-size-bot init` writes one",
}
"""What can be wanted, and what to do where something else is there."""
_NAMES = {
    "code-size-snapshot": "snapshot",
    "code-size-report": "report",
    "code-size-fold": "fold audit",
    "code-size-bisect": "bisection",
    "code-size-history": "history",
    "code-size-lab": "lab result",
    "code-size-experiments": "file of experiments",
    "code-size-config": "configuration",
    "code-size-suite": "manifest of models",
}
_COMMENT = b"<!-- code-size-bot"
_SCHEMA_OF_YAML = re.compile(rb"^schema: *[\"']?(code-size-[a-z]+)/", re.MULTILINE)
_YAML_HEAD_BYTES = 1 << 16


class Headed(msgspec.Struct):
    """The fields by which a file says what it is."""

    schema: str = ""
    include: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(Headed)


def kind_of(text: bytes | str) -> str:
    """`snapshot`, `report`, `plan`, `configuration`, `comment`, …; empty for what is none of ours, or is cut off."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if data[: len(_COMMENT)] == _COMMENT:
        return "comment"  # what it remembers is in its second line
    try:
        headed = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        schema = _SCHEMA_OF_YAML.search(data[:_YAML_HEAD_BYTES])
        return _NAMES.get(schema[1].decode(), "") if schema else ""
    return _NAMES.get(headed.schema.partition("/")[0], "") or ("plan" if bytes(headed.include) else "")


def mistaken(text: bytes | str, wanted: str) -> tuple[str, str] | None:
    """What the text is in place of what is wanted, and how to mend it; None where it is no other file of ours."""
    kind = kind_of(text) if wanted in _GIVE else ""
    return (f"is a {kind}, a {wanted} is wanted", _GIVE[wanted]) if kind not in ("", wanted) else None
