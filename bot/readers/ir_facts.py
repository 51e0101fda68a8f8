"""The IR worker's answers as values, checked as what they are: output of a process that ran foreign code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from bot.core.codec.json_text import decoded
from bot.core.record import Count, Name, Record
from bot.core.values.program import BOUND_PARTS, HASHED_PHASES
from bot.core.values.reading import ProgramFacts
from bot.errors import InputError, MalformedBinary
from bot.readers.ir_worker.ir_kinds import KINDS
from bot.readers.ir_worker.ir_locations import COMPONENT_CHARACTERS

_WHERE = "program IR"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_Answer = TypeVar("_Answer", bound=Record)


class _Allocas(Record, frozen=True):
    functions: dict[Name, Count | None]


class _Strategies(Record, frozen=True):
    functions: dict[Name, Name]


def program_facts(answer: str) -> ProgramFacts:
    """The answer to the request `program`, as JSON text.

    Raises MalformedBinary with the worker's own error, or with what is wrong in its answer.
    """
    facts = read_answer(answer, ProgramFacts)
    _check_entry_points(facts)
    if not facts.phases.keys() <= set(HASHED_PHASES):
        raise MalformedBinary(f"not digests of phases: {sorted(facts.phases)!r:.40}", where=_WHERE)
    _require_digests(facts.phases.values(), "a phase")
    if facts.initializer_sites > facts.dispatch_sites:
        raise MalformedBinary("more launches in initializers than there are", where=_WHERE)
    _require_lines(site.entry_point for site in facts.sites)
    _require_lines((site.component for site in facts.sites if site.component is not None), COMPONENT_CHARACTERS)
    _require_lines(filter(None, facts.places), COMPONENT_CHARACTERS)
    for argument in facts.arguments:
        _require_lines([argument.entry_point, argument.type])
        if list(argument.values) != sorted({value for value in argument.values if value >= 0}):
            raise MalformedBinary(f"values do not ascend from 0 on: {argument.values!r:.40}", where=_WHERE)
        if len(argument.values) > argument.distinct:
            raise MalformedBinary(f"{len(argument.values)} values of {argument.distinct}", where=_WHERE)
        if (argument.divisor is None) != bool(argument.unknown_sites):
            raise MalformedBinary("a divisor is known exactly where all values are", where=_WHERE)
    if len({source.executable for source in facts.sources}) != len(facts.sources):
        raise MalformedBinary("the source of an executable is listed twice", where=_WHERE)
    return facts


def alloca_bytes(answer: str) -> dict[str, int]:
    """The answer to the request `allocas`: function → bytes; empty where no function allocates.

    Raises MalformedBinary, also where a function's allocations have no constant size.
    """
    sizes = read_answer(answer, _Allocas).functions
    if unknown := sorted(name for name, size in sizes.items() if size is None):
        raise MalformedBinary(f"the stack allocations of {unknown[0]} have no constant size", where=_WHERE)
    return {name: size for name, size in sizes.items() if size is not None}


def strategies(answer: str) -> dict[str, str]:
    """The answer to the request `strategies`: function → its configuration, one line; raises MalformedBinary."""
    functions = read_answer(answer, _Strategies).functions
    _require_lines(functions.values())
    return functions


def read_answer(answer: str, kind: type[_Answer]) -> _Answer:
    """An answer says why it is none, or has all fields of its kind."""
    try:
        fields = decoded(answer, dict[str, msgspec.Raw], _WHERE)
        if "error" in fields:
            raise MalformedBinary(decoded(bytes(fields["error"]), str, _WHERE)[:500], where=_WHERE)
        if missing := set(kind.__struct_fields__) - fields.keys():
            raise MalformedBinary(f"the answer has no {min(missing)}", where=_WHERE)
        return decoded(answer, kind, _WHERE)
    except InputError as error:
        raise MalformedBinary(error.what, where=error.where) from None


def _check_entry_points(facts: ProgramFacts) -> None:
    for entry in facts.entry_points:
        if entry.kind not in KINDS:
            raise MalformedBinary(f"entry point of unknown kind {entry.kind!r:.40}", where=_WHERE)
        _require_digests([entry.bound, *entry.bound_parts], "an entry point")
        if len(entry.bound_parts) != len(BOUND_PARTS):
            raise MalformedBinary("an entry point has no parts of what is bound", where=_WHERE)
    names = [(entry.executable, entry.entry_point) for entry in facts.entry_points]
    if len(set(names)) != len(names):
        raise MalformedBinary("an entry point is listed twice", where=_WHERE)
    if len({executable for executable, _ in names}) > facts.executables:
        raise MalformedBinary(f"entry points of more than {facts.executables} executables", where=_WHERE)


def _require_digests(texts: Iterable[str], what: str) -> None:
    for text in texts:
        if not _DIGEST.fullmatch(text):
            raise MalformedBinary(f"{what} has no digest: {text!r:.40}", where=_WHERE)


def _require_lines(texts: Iterable[str], characters: int | None = None) -> None:
    """Raise MalformedBinary where one is empty, too long or more than one line of printable text."""
    for text in texts:
        if not text or not text.isprintable() or (characters and len(text) > characters):
            raise MalformedBinary(f"not a line of text: {text!r:.40}", where=_WHERE)
