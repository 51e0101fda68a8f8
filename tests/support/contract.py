"""Does recorded traffic keep to GitHub's API description?

Requests and responses; what GitHub would silently ignore (an unknown query or body key)
counts as a violation too.

An exchange is one dict: `method`, `path`, `query`, `req_headers`, `req_body`, `status`,
`res_headers`, `res_body`, the bodies as text; `injected` marks an answer that a test
ordered, which is not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote

from api_description import Node, description, resolve, validator

Exchange = dict[str, Any]

_CHECKED = ("method", "path", "query", "req_body", "status", "res_body", "injected")
"""What of an exchange the description speaks of here."""
_METHODS = ("get", "put", "post", "patch", "delete")
_MULTI_SEGMENT = ("ref", "path", "basehead")
# GitHub answers these anywhere, described or not.
_ANYWHERE = (304, 401, 403, 404, 422, 429)
# The repository of a pull request whose fork was deleted is null, the schema demands an
# object.
_NULL_IN_FACT = ("head", "repo")


@dataclass(frozen=True, slots=True)
class Operation:
    """One described operation.

    `name` is method and path template, `parameters` is by place and name.
    """

    name: str
    method: str
    pattern: re.Pattern[str]
    body: Node | None
    responses: Node
    parameters: dict[tuple[str, str], Node]


def violations(traffic: list[Exchange]) -> list[str]:
    """One line for each thing the description does not allow, in the order of the traffic.

    Most exchanges repeat an earlier one, whose lines are theirs.
    """
    lines = list[str]()
    lines_of = dict[tuple[Any, ...], list[str]]()
    for number, exchange in enumerate(traffic, 1):
        checked = tuple(exchange.get(name) for name in _CHECKED)
        if checked not in lines_of:
            lines_of[checked] = list(_exchange(exchange))
        lines += [f"exchange {number}: {line}" for line in lines_of[checked]]
    return lines


def _exchange(exchange: Exchange) -> Iterator[str]:
    operation, match = _find(exchange["method"], exchange["path"])
    if operation is None or match is None:
        yield f"{exchange['method']} {exchange['path']}: no such operation"
        return
    for line in (
        *_path(operation, match),
        *_query(operation, exchange),
        *_body(operation, exchange),
        *_response(operation, exchange),
    ):
        yield f"{operation.name}: {line}"


@lru_cache(maxsize=1)
def _operations() -> list[Operation]:
    """All operations, those with the fewest placeholders first, as a literal part goes before a placeholder."""
    items = sorted(
        description()["paths"].items(),
        key=lambda item: (item[0].count("{"), -len(item[0])),
    )
    return [
        _operation(method, path, item)
        for path, item in items
        for method in _METHODS
        if method in item
    ]


def _operation(method: str, path: str, item: Node) -> Operation:
    described = item[method]
    parameters = [
        resolve(parameter)
        for parameter in (*item.get("parameters", ()), *described.get("parameters", ()))
    ]
    multi = {
        parameter["name"]
        for parameter in parameters
        if parameter.get("x-multi-segment")
    } | set(_MULTI_SEGMENT)
    parts = re.split(r"\{(\w+)\}", path)
    pattern = "".join(
        _part(text, bool(odd % 2), multi) for odd, text in enumerate(parts)
    )
    body = described.get("requestBody")
    return Operation(
        name=f"{method.upper()} {path}",
        method=method.upper(),
        pattern=re.compile(pattern),
        body=resolve(body) if body else None,
        responses=described["responses"],
        parameters={
            (parameter["in"], parameter["name"]): parameter for parameter in parameters
        },
    )


def _part(text: str, placeholder: bool, multi: set[str]) -> str:
    if not placeholder:
        return re.escape(text)
    return f"(?P<{text}>{'.+' if text in multi else '[^/]+'})"


def _find(method: str, path: str) -> tuple[Operation | None, re.Match[str] | None]:
    for operation in _operations():
        if operation.method == method and (match := operation.pattern.fullmatch(path)):
            return operation, match
    return None, None


def _path(operation: Operation, match: re.Match[str]) -> Iterator[str]:
    for name, text in match.groupdict().items():
        parameter = operation.parameters.get(("path", name))
        if parameter:
            yield from _text(f"path {name}", unquote(text), parameter["schema"])


def _query(operation: Operation, exchange: Exchange) -> Iterator[str]:
    for name, text in parse_qsl(exchange["query"], keep_blank_values=True):
        parameter = operation.parameters.get(("query", name))
        if parameter is None:
            yield f"unknown query parameter {name}"
        else:
            yield from _text(f"query {name}", text, parameter["schema"])


def _text(place: str, text: str, schema: Node) -> Iterator[str]:
    """The errors of a parameter, which travels as text and is described as a typed value."""
    for error in validator(resolve(schema)).iter_errors(
        _typed(text, resolve(schema).get("type"))
    ):
        yield f"{place}: {_short(error.message)}"


def _typed(text: str, kind: str | None) -> Any:
    if kind == "array":
        return [text]
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    try:
        return {"integer": int, "number": float}.get(kind or "", str)(text)
    except ValueError:
        return text


def _body(operation: Operation, exchange: Exchange) -> Iterator[str]:
    """Errors of the request body.

    One that GitHub refused is not held against the sender a second time.
    """
    content = (operation.body or {}).get("content", {}).get("application/json")
    if content is None:
        if exchange["req_body"]:
            yield "sends a body, none is described"
        return
    if exchange["status"] >= 400 or not (
        exchange["req_body"] or (operation.body or {}).get("required")
    ):
        return
    yield from _json_body(exchange["req_body"], content["schema"])


def _json_body(text: str, schema: Node) -> Iterator[str]:
    try:
        body = json.loads(text or "null")
    except ValueError:
        yield "the body is not JSON"
        return
    yield from _errors("body", schema, body)
    keys = _known_keys(schema)
    for key in sorted(set(body) - keys) if isinstance(body, dict) and keys else ():
        yield f"unknown body key {key}"


def _known_keys(schema: Node) -> set[str]:
    schema = resolve(schema)
    parts = [
        resolve(part)
        for choice in ("oneOf", "anyOf", "allOf")
        for part in schema.get(choice, ())
    ]
    return {key for part in (schema, *parts) for key in part.get("properties", ())}


def _response(operation: Operation, exchange: Exchange) -> Iterator[str]:
    if exchange.get("injected"):
        return
    described = operation.responses.get(str(exchange["status"]))
    if described is None:
        if exchange["status"] not in _ANYWHERE and exchange["status"] < 500:
            yield f"status {exchange['status']} is not described"
        return
    content = resolve(described).get("content", {}).get("application/json")
    if content is None and exchange["res_body"] and exchange["status"] < 300:
        yield f"status {exchange['status']} has a body, none is described"
    if content is not None and exchange["status"] < 300:
        yield from _errors(
            "response", content["schema"], json.loads(exchange["res_body"] or "null")
        )


def _errors(place: str, schema: Node, value: Any) -> Iterator[str]:
    for error in validator(schema).iter_errors(value):
        while error.context:
            error = max(
                error.context,
                key=lambda cause: (len(cause.absolute_path), cause.validator != "type"),
            )
        steps = (place, *error.absolute_path)
        if error.instance is not None or steps[-2:] != _NULL_IN_FACT:
            yield f"{'.'.join(map(str, steps))}: {_short(error.message)}"


def _short(message: str) -> str:
    """A message begins with the value, however long, and ends with what is wrong with it."""
    return message if len(message) <= 200 else f"{message[:100]} … {message[-100:]}"
