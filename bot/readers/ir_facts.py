"""The IR worker's answers as values, checked as what they are: output of a process that ran foreign code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from bot.core.codec.checked import is_count
from bot.core.codec.counts import counts_text
from bot.core.values.program import BOUND_PARTS, HASHED_PHASES, Argument, Site
from bot.core.values.reading import ExecutableFacts, ProgramFacts, SourceText
from bot.errors import MalformedBinary
from bot.readers.ir_worker.ir_kinds import KINDS
from bot.readers.ir_worker.ir_locations import COMPONENT_CHARACTERS

_WHERE = "program IR"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_OPERATION = re.compile(r"[A-Za-z_][\w$.-]{0,79}", re.ASCII)
_MOST_OPERATIONS = 200
"""Real functions have some forty kinds."""
_Row = TypeVar("_Row")


def program_facts(answer: object) -> ProgramFacts:
    """The answer to the request `program` (a parsed JSON value).

    Raises:
        MalformedBinary: with the worker's own error, or with what is wrong in its answer.
    """
    fields = _answer(answer)
    facts = ProgramFacts(
        dispatch_regions=_count(fields, "dispatch_regions"),
        linalg_ops=_count(fields, "linalg_ops"),
        executables=_count(fields, "executables"),
        entry_points=_rows(fields, "entry_points", _entry_point),
        linalg_ops_before=_count_or_none(fields, "linalg_ops_before"),
        phases=_phases(fields.get("phases")),
        sources=_rows(fields, "sources", _source),
        sites=_rows(fields, "sites", _site),
        arguments=_rows(fields, "arguments", _argument),
    )
    _check_names(facts)
    return facts


def alloca_bytes(answer: object) -> dict[str, int]:
    """The answer to the request `allocas`: function → bytes; empty where no function allocates.

    Raises:
        MalformedBinary: as above, and where a function's allocations have no constant size.
    """
    functions = _answer(answer).get("functions")
    if not isinstance(functions, dict):
        raise MalformedBinary("no functions", where=_WHERE)
    unknown = sorted(str(name) for name, size in functions.items() if size is None)
    if unknown:
        raise MalformedBinary(f"the stack allocations of {unknown[0]} have no constant size", where=_WHERE)
    return {_text(functions_name): _count(functions, functions_name) for functions_name in functions}


def strategies(answer: object) -> dict[str, str]:
    """The answer to the request `strategies`: function → the configuration chosen for it, one line.

    Raises:
        MalformedBinary: with the worker's own error, or with what is wrong in its answer.
    """
    functions = _answer(answer).get("functions")
    if not isinstance(functions, dict):
        raise MalformedBinary("no functions", where=_WHERE)
    return {_text(name): _line(text) for name, text in functions.items()}


def operations(answer: object) -> dict[str, str]:
    """The answer to the request `operations`: function → its operations, as `bot.core.codec.counts` writes them.

    A function whose operations are not known is left out.

    Raises:
        MalformedBinary: with the worker's own error, or with what is wrong in its answer.
    """
    functions = _answer(answer).get("functions")
    if not isinstance(functions, dict):
        raise MalformedBinary("no functions", where=_WHERE)
    return {_text(name): _counts(counts) for name, counts in functions.items() if counts is not None}


def _counts(counts: object) -> str:
    if not isinstance(counts, dict) or len(counts) > _MOST_OPERATIONS:
        raise MalformedBinary("no counts of operations, or of too many", where=_WHERE)
    for name in counts:
        if not _OPERATION.fullmatch(name):
            raise MalformedBinary(f"no name of an operation: {name!r:.40}", where=_WHERE)
    return counts_text({name: _count(counts, name) for name in counts})


def _answer(answer: object) -> dict[str, object]:
    if not isinstance(answer, dict):
        raise MalformedBinary("the answer is no object", where=_WHERE)
    if "error" in answer:
        raise MalformedBinary(f"{answer['error']!s:.500}", where=_WHERE)
    return answer


def _rows(fields: dict[str, object], key: str, read: Callable[[dict[str, object]], _Row]) -> tuple[_Row, ...]:
    rows = fields.get(key)
    if not isinstance(rows, list):
        raise MalformedBinary(f"no list of {key}", where=_WHERE)
    for row in rows:
        if not isinstance(row, dict):
            raise MalformedBinary(f"one of {key} is no object: {row!r:.40}", where=_WHERE)
    return tuple(read(row) for row in rows)


def _phases(phases: object) -> dict[str, str]:
    if not isinstance(phases, dict) or not set(phases) <= set(HASHED_PHASES):
        raise MalformedBinary(f"no digests of phases: {phases!r:.40}", where=_WHERE)
    return {phase: _hex(digest, f"the phase {phase}") for phase, digest in phases.items()}


def _hex(digest: object, what: str) -> str:
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise MalformedBinary(f"{what} has no digest: {digest!r:.40}", where=_WHERE)
    return digest


def _source(row: dict[str, object]) -> SourceText:
    return SourceText(_text(row.get("executable")), generic=_string(row, "generic"), shown=_string(row, "shown"))


def _site(row: dict[str, object]) -> Site:
    component, initializer = row.get("component"), row.get("initializer")
    if not isinstance(initializer, bool):
        raise MalformedBinary(f"initializer is no truth value: {initializer!r:.40}", where=_WHERE)
    named = None if component is None else _line(component, COMPONENT_CHARACTERS)
    return Site(_text(row.get("entry_point")), component=named, initializer=initializer)


def _argument(row: dict[str, object]) -> Argument:
    argument = Argument(
        entry_point=_text(row.get("entry_point")),
        index=_count(row, "index"),
        type=_line(row.get("type")),
        values=_values(row.get("values")),
        distinct=_count(row, "distinct"),
        divisor=_count_or_none(row, "divisor"),
        unknown_sites=_count(row, "unknown_sites"),
    )
    if len(argument.values) > argument.distinct:
        raise MalformedBinary(f"{len(argument.values)} values of {argument.distinct}", where=_WHERE)
    if (argument.divisor is None) != bool(argument.unknown_sites):
        raise MalformedBinary("a divisor is known exactly where all values are", where=_WHERE)
    return argument


def _values(values: object) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(map(is_count, values)):
        raise MalformedBinary(f"no values: {values!r:.40}", where=_WHERE)
    if values != sorted(set(values)):
        raise MalformedBinary(f"values do not ascend: {values!r:.40}", where=_WHERE)
    return tuple(values)


def _entry_point(row: dict[str, object]) -> ExecutableFacts:
    kind, memory_bound = row.get("kind"), row.get("memory_bound")
    if kind not in KINDS or not isinstance(memory_bound, bool):
        raise MalformedBinary(f"entry point of unknown kind {kind!r:.40}", where=_WHERE)
    return ExecutableFacts(
        executable=_text(row.get("executable")),
        entry_point=_text(row.get("entry_point")),
        kind=_text(kind),
        memory_bound=memory_bound,
        sites=_count(row, "sites"),
        bound=_hex(row.get("bound"), "an entry point"),
        bound_parts=_bound_parts(row.get("bound_parts")),
    )


def _bound_parts(digests: object) -> tuple[str, ...]:
    if not isinstance(digests, list) or len(digests) != len(BOUND_PARTS):
        raise MalformedBinary(f"an entry point has no parts of what is bound: {digests!r:.40}", where=_WHERE)
    return tuple(_hex(each, "a part of what is bound") for each in digests)


def _check_names(facts: ProgramFacts) -> None:
    names = [(entry.executable, entry.entry_point) for entry in facts.entry_points]
    if len(set(names)) != len(names):
        raise MalformedBinary("an entry point is listed twice", where=_WHERE)
    if len({executable for executable, _ in names}) > facts.executables:
        raise MalformedBinary(f"entry points of more than {facts.executables} executables", where=_WHERE)
    if len({source.executable for source in facts.sources}) != len(facts.sources):
        raise MalformedBinary("the source of an executable is listed twice", where=_WHERE)


def _count(fields: dict[str, object], key: str) -> int:
    value = fields.get(key)
    if not is_count(value):
        raise MalformedBinary(f"{key!s:.80} is no count: {value!r:.40}", where=_WHERE)
    return value


def _count_or_none(fields: dict[str, object], key: str) -> int | None:
    return None if key in fields and fields[key] is None else _count(fields, key)


def _string(fields: dict[str, object], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise MalformedBinary(f"{key} is no text: {value!r:.40}", where=_WHERE)
    return value


def _line(value: object, characters: int | None = None) -> str:
    """One line of text, without control characters."""
    text = _text(value)
    if not text.isprintable() or (characters and len(text) > characters):
        raise MalformedBinary(f"no line of text: {text!r:.40}", where=_WHERE)
    return text


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise MalformedBinary(f"no name: {value!r:.40}", where=_WHERE)
    return value
