"""Cells without a usable artifact: why, in words, with trimmed diagnostics; cells that fail alike are told once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.delta import CellDelta
from bot.core.policy import RAN_OUT, is_local
from bot.core.snapshot import Cell, CellKey
from bot.show.escape import clean_block, clip
from bot.show.facts import NAME_LIMIT, STACK_LIMIT_BYTES, Facts, cells_phrase, figure_bytes, is_over
from bot.show.filters import amount, plural
from bot.show.phrase import Phrase, code, phrase
from bot.show.selection import Limits, Listing, fair, fair_in_order, listing

_LINE_CHARS = 200
_NAMES = 12
_LINES_WORTH_READING = 400
# Where a compiler ran is nobody's business, and says nothing to those who read elsewhere: the last part is enough.
_ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<>\\])(?:/[^\s/:\"'`<>()\[\],;=]+)+/(?=[^\s/])|(?<!\w)[A-Za-z]:\\(?:[^\s\\:\"']+\\)*"
)
_FIGURES = re.compile(r"\d+")
Likeness = tuple[str, "str | None", "int | None", str]
"""Stage, signal, exit code and the first lines, without figures and the model's name."""

_STAGES = {
    "compile": "does not compile",
    "read": "artifact cannot be read",
    "import": "cannot be imported",
    "fetch": "model not fetched",
    "option": "compiler does not know an option",
    "stack-limit": "over the stack limit",
    "timeout": "timed out",
    "target": "target does not work",
}


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Cells that fail with the same words.

    Attributes:
        what: what happened, short: `does not compile (exit code 1)`.
        cells: which cells, in words.
        count: how many.
        diagnostics: the first lines of what the compiler said about the first cell; may be empty.
        more_lines: how many lines were left out.
    """

    what: Phrase
    cells: Phrase
    count: int
    diagnostics: str
    more_lines: int


def trimmed(message: str, lines: int) -> tuple[str, int]:
    """The first lines of a message without absolute paths, and how many more there are."""
    kept = [line for line in clean_block(message[: _LINES_WORTH_READING * _LINE_CHARS]).split("\n") if line.strip()]
    shown = [clip(_ABSOLUTE_PATH.sub("", line[: 5 * _LINE_CHARS]), _LINE_CHARS) for line in kept[:lines]]
    return "\n".join(shown), len(kept) - len(shown)


def grouped(facts: Facts, state: str, lines: int = 3) -> list[list[CellDelta]]:
    """The cells of a state in groups whose messages begin with the same lines, the largest group first."""
    groups: dict[Likeness, list[CellDelta]] = {}
    for delta in facts.states[state]:
        groups.setdefault(_likeness(delta, lines), []).append(delta)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].key))


def failures(facts: Facts, state: str, limits: Limits) -> Listing[FailureGroup]:
    """The same in words; models take turns."""
    ordered = grouped(facts, state)
    shown = fair(ordered, lambda group: group[0].key.model, limits.failures)
    return listing((_group(facts, group, limits) for group in shown), len(ordered), "group of failures")


def _failed(delta: CellDelta) -> Cell | None:
    return delta.head if delta.head is not None and delta.head.failure is not None else delta.base


def _likeness(delta: CellDelta, lines: int) -> Likeness:
    cell = _failed(delta)
    if cell is None or cell.failure is None:
        return "", None, None, ""
    failure = cell.failure
    text, _ = trimmed(failure.message.replace(delta.key.model, "*"), lines)
    return failure.stage, failure.signal, failure.exit_code, _FIGURES.sub("#", text)


def _group(facts: Facts, group: Sequence[CellDelta], limits: Limits) -> FailureGroup:
    cell = _failed(group[0])
    text, more = trimmed(cell.failure.message, limits.lines) if cell and cell.failure else ("", 0)
    cells = cells_phrase(facts, [delta.key for delta in group], min(limits.names, _NAMES))
    return FailureGroup(_what(group), cells, len(group), text, more)


def _what(group: Sequence[CellDelta]) -> Phrase:
    figures = [figure for delta in group if (figure := figure_bytes(delta.head)) is not None]
    if is_over(group[0].head) and figures:
        said = _range(figures)
        return phrase(f"over the compiler's stack limit: {said}, allowed are {amount(STACK_LIMIT_BYTES)}")
    return failure_words(*(_failed(delta) for delta in group))


def _range(figures: Sequence[int]) -> str:
    low, high = min(figures), max(figures)
    return amount(high) if low == high else f"{amount(low)} to {amount(high)}"


def failure_words(*cells: Cell | None) -> Phrase:
    """What happened to cells without an artifact, which failed alike: `does not compile (exit code 1)`."""
    failures = [cell.failure for cell in cells if cell and cell.failure]
    if not failures:
        return phrase("failed without a message")
    failure = failures[0]
    if RAN_OUT in failure.first_line and is_local(failure.message):
        return phrase("the compiler ran out of memory")
    if failure.signal:
        return phrase("compiler crashed (", code(clip(failure.signal, 32)), ")")
    figures = [one.figure_bytes for one in failures if one.figure_bytes is not None]
    if failure.stage == "stack-limit" and figures:
        return phrase(f"over the compiler's stack limit, a function needs {_range(figures)}")
    how = f" (exit code {failure.exit_code})" if failure.exit_code else ""
    return phrase(_STAGES.get(failure.stage, "failed") + how)


@dataclass(frozen=True, slots=True)
class OverRow:
    """A cell that the compiler's stack gate refuses, with what the compiler says that a function needs."""

    model: str
    target: str
    base: int | None
    head: int | None


def over_limit(facts: Facts, limits: Limits) -> Listing[OverRow]:
    """The cells that the gate refuses on both sides."""
    both = [d for d in facts.report.deltas if is_over(d.base) and is_over(d.head)]
    both.sort(key=lambda d: (-abs((figure_bytes(d.head) or 0) - (figure_bytes(d.base) or 0)), d.key))
    shown = fair_in_order(both, lambda delta: delta.key.model, limits.findings)
    rows = (
        OverRow(clip(d.key.model, NAME_LIMIT), facts.short[d.key.target], figure_bytes(d.base), figure_bytes(d.head))
        for d in shown
    )
    return listing(rows, len(both), "build")


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """Cells that were not measured for the same reason."""

    reason: str
    cells: Phrase
    count: int


def unmeasured(facts: Facts, limits: Limits) -> Listing[ReasonGroup]:
    """The cells without a measurement, by reason, those on purpose last; whole targets are named as such."""
    groups: dict[tuple[bool, str], list[CellKey]] = {}
    for delta in facts.states["unmeasured"]:
        groups.setdefault((delta.excused, delta.reason), []).append(delta.key)
    ordered = sorted(groups.items(), key=lambda entry: (entry[0][0], -len(entry[1]), entry[0]))
    made = [_reason_group(facts, reason, keys, limits) for (_, reason), keys in ordered[: limits.findings]]
    return listing(made, len(groups), "reason")


def _reason_group(facts: Facts, reason: str, keys: Sequence[CellKey], limits: Limits) -> ReasonGroup:
    targets = {key.target for key in keys}
    words = clip(reason or "no reason given", 300)
    if len(targets) == 1 and not targets & facts.measured_targets:
        said = phrase(code(clip(keys[0].target, NAME_LIMIT)), f" ({plural(len(keys), 'build')})")
    else:
        said = cells_phrase(facts, keys, limits.names)
    return ReasonGroup(words, said, len(keys))
