"""Builds without a usable artifact: what the compiler said, by what refused them, and what was not measured."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.core.delta import CellDelta
from bot.core.policy import RAN_OUT, is_local
from bot.core.snapshot import NOT_SHIPPED, Cell, Failure
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Limits,
    Listing,
    Phrase,
    Sentence,
    by,
    code,
    fair,
    listing,
    more_of,
    phrase,
    plain,
    section,
    strong,
)
from bot.show.escape import clean_block, clip
from bot.show.facts import Facts, cells_phrase, counted
from bot.show.filters import amount, plural

MOST_NAMES = 12  # The most builds that a line names
_LINE_CHARS, _LINES_WORTH_READING = 200, 400
_REASON_CHARS = 300
# Where a compiler ran is nobody's business, and says nothing to those who read
# elsewhere: the last part is enough.
_ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<>\\])(?:/[^\s/:\"'`<>()\[\],;=]+)+/(?=[^\s/])|(?<!\w)[A-Za-z]:\\(?:[^\s\\:\"']+\\)*"
)
_FIGURES = re.compile(r"\d+")
_SHARED_MEMORY = re.compile(
    r"uses \d+ bytes of shared memory; exceeded the limit of (\d+) bytes"
)
_STAGES = {
    "compile": "does not compile",
    "read": "artifact cannot be read",
    NOT_SHIPPED: "compiles, but gives no artifact for the target",
    "import": "cannot be imported",
    "option": "compiler does not know an option",
    "stack-limit": "over the stack limit",
    "timeout": "timed out",
    "target": "target does not work",
}


def trimmed(message: str, lines: int) -> tuple[str, int]:
    """The first lines of a message without absolute paths, and how many more there are."""
    worth = [
        line
        for line in clean_block(message[: _LINES_WORTH_READING * _LINE_CHARS]).split(
            "\n"
        )
        if line.strip()
    ]
    shown = [
        clip(_ABSOLUTE_PATH.sub("", line[: 5 * _LINE_CHARS]), _LINE_CHARS)
        for line in worth[:lines]
    ]
    return "\n".join(shown), len(worth) - len(shown)


def _refused(delta: CellDelta) -> Cell | None:
    return (
        delta.head
        if delta.head is not None and delta.head.failure is not None
        else delta.base
    )


def grouped(facts: Facts, state: str, lines: int = 3) -> list[list[CellDelta]]:
    """The cells of a state in groups, the largest first.

    Those of a group ended alike, with messages that begin with the same lines but for
    figures and the model's name. Builds of different memory limits are in different
    groups.
    """
    groups: dict[tuple[object, ...], list[CellDelta]] = {}
    for delta in facts.states[state]:
        cell, likeness = _refused(delta), tuple[object, ...]()
        if cell and (failure := cell.failure):
            text, _ = trimmed(failure.message.replace(delta.key.model, "*"), lines)
            limit = _shared_memory_limit(failure)
            likeness = (
                failure.stage,
                failure.signal,
                failure.exit_code,
                limit,
                _FIGURES.sub("#", text),
            )
        groups.setdefault(likeness, []).append(delta)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].key))


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
    figures = [
        failure.figure_bytes for failure in failures if failure.figure_bytes is not None
    ]
    if failure.stage == "stack-limit" and figures:
        return phrase(
            f"above the compiler's stack limit: a function needs {_range(figures)}"
        )
    limit = _shared_memory_limit(failure)
    if limit is not None and figures:
        needed = f"a function needs {_range(figures)}, the limit is {amount(limit)}"
        return phrase(f"above the device's workgroup memory: {needed}")
    how = f" (exit code {failure.exit_code})" if failure.exit_code else ""
    return phrase(_STAGES.get(failure.stage, "failed") + how)


def _range(figures: Sequence[int]) -> str:
    low, high = min(figures), max(figures)
    return amount(high) if low == high else f"{amount(low)} to {amount(high)}"


def _shared_memory_limit(failure: Failure) -> int | None:
    """Return the bytes of workgroup memory that a device has, where a function needed more.

    Else None.
    """
    match = _SHARED_MEMORY.search(failure.message)
    return int(match[1]) if match else None


def unmeasured(facts: Facts, limits: Limits) -> Listing[Phrase]:
    """Return the builds without a measurement, by reason; whole targets are named as such.

    A build that no compiler can measure is not among them: `code-size-bot targets`
    shows its reason.
    """
    missing = [delta for delta in facts.states["unmeasured"] if not delta.excused]
    groups = by(missing, lambda delta: delta.reason)
    ordered = sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    lines = []
    for reason, deltas in ordered[: limits.findings]:
        cells = cells_phrase(facts, [delta.key for delta in deltas], limits.names)
        lines.append(
            phrase(cells, f": {clip(reason or 'no reason given', _REASON_CHARS)}")
        )
    return listing(lines, len(groups), "reason")


def failed_builds(facts: Facts, state: str, limits: Limits) -> Fold:
    """The cells of a state by what the compiler says of them, of which there is one line where they are still broken.

    Models take turns.
    """
    groups, blocks = grouped(facts, state), list[Block]()
    shown = fair(groups, lambda group: group[0].key.model, limits.failures)
    for group in shown:
        cells, alike = (
            list(map(_refused, group)),
            (
                f", {plural(len(group), 'build')} with the same message"
                if len(group) > 1
                else ""
            ),
        )
        failure = cells[0].failure if cells[0] else None
        text, more = trimmed(failure.message, limits.lines) if failure else ("", 0)
        where = cells_phrase(
            facts, [delta.key for delta in group], min(limits.names, MOST_NAMES)
        )
        said = phrase(strong(plain(failure_words(*cells))), f"{alike}: ", where)
        if state == "newly-broken" or limits.every:
            rest = f"and {plural(more, 'more line')}, in report.json" if more else ""
            blocks += [
                Sentence(said),
                Code(text, language="text"),
                Sentence(rest, small=True),
            ]
        else:
            line = text.partition("\n")[0]
            blocks.append(
                Sentence(phrase(said, ": ", code(clip(line, 120))) if line else said)
            )
    more_groups = more_of(listing(shown, len(groups), "group of failures"))
    title = counted(facts.state_words[state].capitalize(), facts.count(state), facts)
    return section(title, *blocks, more_groups, name=state)
