"""The IR worker's answers as values, checked as what they are: output of a process that ran foreign code."""

from __future__ import annotations

from bot.core.reading import ExecutableFacts, ProgramFacts
from bot.errors import MalformedBinary
from bot.measure.ir_kinds import KINDS

_WHERE = "program IR"


def program_facts(answer: object) -> ProgramFacts:
    """The answer to the request `program` (a parsed JSON value).

    Raises:
        MalformedBinary: with the worker's own error, or with what is wrong in its answer.
    """
    fields = _answer(answer)
    rows = fields.get("entry_points")
    if not isinstance(rows, list):
        raise MalformedBinary("no list of entry points", where=_WHERE)
    facts = ProgramFacts(
        dispatch_regions=_count(fields, "dispatch_regions"),
        linalg_ops=_count(fields, "linalg_ops"),
        executables=_count(fields, "executables"),
        entry_points=tuple(_entry_point(row) for row in rows),
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


def _answer(answer: object) -> dict[str, object]:
    if not isinstance(answer, dict):
        raise MalformedBinary("the answer is no object", where=_WHERE)
    if "error" in answer:
        raise MalformedBinary(f"{answer['error']!s:.500}", where=_WHERE)
    return answer


def _entry_point(row: object) -> ExecutableFacts:
    if not isinstance(row, dict):
        raise MalformedBinary("an entry point is no object", where=_WHERE)
    kind, memory_bound = row.get("kind"), row.get("memory_bound")
    if kind not in KINDS or not isinstance(memory_bound, bool):
        raise MalformedBinary(f"entry point of unknown kind {kind!r:.40}", where=_WHERE)
    return ExecutableFacts(
        executable=_text(row.get("executable")),
        entry_point=_text(row.get("entry_point")),
        kind=_text(kind),
        memory_bound=memory_bound,
        sites=_count(row, "sites"),
    )


def _check_names(facts: ProgramFacts) -> None:
    names = [(entry.executable, entry.entry_point) for entry in facts.entry_points]
    if len(set(names)) != len(names):
        raise MalformedBinary("an entry point is listed twice", where=_WHERE)
    if len({executable for executable, _ in names}) > facts.executables:
        raise MalformedBinary(f"entry points of more than {facts.executables} executables", where=_WHERE)


def _count(fields: dict[str, object], key: str) -> int:
    value = fields.get(key)
    if type(value) is not int or value < 0:
        raise MalformedBinary(f"{key!s:.80} is no count: {value!r:.40}", where=_WHERE)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise MalformedBinary(f"no name: {value!r:.40}", where=_WHERE)
    return value
