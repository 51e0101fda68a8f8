"""Draw builds without a usable artifact: what the compiler said, and missing builds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.core.cell_story import SideResult
from bot.core.delta import CellDelta
from bot.core.snapshot import NOT_SHIPPED, Cell, Failure
from bot.core.this_machine import RAN_OUT, is_local
from bot.show.blocks import (
    Block,
    Code,
    Fold,
    Phrase,
    Rank,
    Sentence,
    by,
    code,
    fair,
    listing,
    more_of,
    part,
    phrase,
    plain,
    section,
    strong,
)
from bot.show.escape import clean_block, clip
from bot.show.facts import Facts, cells_phrase, counted
from bot.show.filters import amount, plural
from bot.show.views import View

MOST_NAMES = 12  # The most builds that a line names
MESSAGE_LINES = 12  # lines of a compiler's message that are shown with its build
_LINE_CHARS = 200
_LINES_WORTH_READING = 400
_REASON_CHARS = 300
# The folder where a compiler ran is private, and readers elsewhere have no use for it.
# The last part of the path is enough.
_ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<>\\])(?:/[^\s/:\"'`<>()\[\],;=]+)+/(?=[^\s/])"
    r"|(?<!\w)[A-Za-z]:\\(?:[^\s\\:\"']+\\)*"
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
    """Return the first lines of a message, and the number of the others.

    Absolute paths are cut to their last part.
    """
    text = clean_block(message[: _LINES_WORTH_READING * _LINE_CHARS])
    full_lines = [line for line in text.split("\n") if line.strip()]
    first_lines = []
    for line in full_lines[:lines]:
        without_folder = _ABSOLUTE_PATH.sub("", line[: 5 * _LINE_CHARS])
        first_lines.append(clip(without_folder, _LINE_CHARS))
    return "\n".join(first_lines), len(full_lines) - len(first_lines)


def _refused(delta: CellDelta) -> Cell | None:
    """Return head if it failed, else base."""
    if delta.head is not None and delta.head.failure is not None:
        return delta.head
    return delta.base


def grouped(facts: Facts, state: str, lines: int = 3) -> list[list[CellDelta]]:
    """Return the builds of a state in groups, the largest first.

    The builds of a group failed alike. Their messages begin with the same lines, except
    for figures and the model's name. Builds with different memory limits are in
    different groups.
    """
    groups: dict[tuple[object, ...], list[CellDelta]] = {}
    for delta in facts.states[state]:
        groups.setdefault(_likeness(delta, lines), []).append(delta)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].key))


def _likeness(delta: CellDelta, lines: int) -> tuple[object, ...]:
    """Return what builds that failed alike have in common; empty without a failure."""
    cell = _refused(delta)
    if not cell or not cell.failure:
        return ()
    failure = cell.failure
    text, _ = trimmed(failure.message.replace(delta.key.model, "*"), lines)
    return (
        failure.stage,
        failure.signal,
        failure.exit_code,
        _shared_memory_limit(failure),
        _FIGURES.sub("#", text),
    )


def failure_words(*cells: Cell | SideResult | None) -> Phrase:
    """Return the words about builds that failed alike, as `does not compile`."""
    failures = [cell.failure for cell in cells if cell and cell.failure]
    if not failures:
        return phrase("failed without a message")
    failure = failures[0]
    if RAN_OUT in failure.first_line and is_local(failure.message):
        return phrase("the compiler ran out of memory")
    if failure.signal:
        return phrase("compiler crashed (", code(clip(failure.signal, 32)), ")")
    figures = []
    for failure in failures:
        if failure.figure_bytes is not None:
            figures.append(failure.figure_bytes)
    if failure.stage == "stack-limit" and figures:
        return phrase(
            f"above the compiler's stack limit: a function needs {_range(figures)}"
        )
    limit = _shared_memory_limit(failure)
    if limit is not None and figures:
        needed = f"a function needs {_range(figures)}, the limit is {amount(limit)}"
        return phrase(f"above the device's workgroup memory: {needed}")
    if failure.exit_code:
        ending = f" (exit code {failure.exit_code})"
    else:
        ending = ""
    return phrase(_STAGES.get(failure.stage, "failed") + ending)


def _range(figures: Sequence[int]) -> str:
    low = min(figures)
    high = max(figures)
    if low == high:
        return amount(high)
    return f"{amount(low)} to {amount(high)}"


def _shared_memory_limit(failure: Failure) -> int | None:
    """Return the bytes of workgroup memory of a device whose limit a function exceeded.

    Return None for another failure.
    """
    match = _SHARED_MEMORY.search(failure.message)
    if match:
        return int(match[1])
    return None


def unmeasured(facts: Facts, names: int) -> list[Phrase]:
    """Return the builds without a measurement, by reason.

    Whole targets are named as such. A build that no compiler can measure is not among
    them: `code-size-bot targets` shows its reason. `names`: the most builds of a line.
    """
    missing = [delta for delta in facts.states["unmeasured"] if not delta.excused]
    groups = by(missing, lambda delta: delta.reason)
    lines = []
    for reason, deltas in sorted(
        groups.items(), key=lambda entry: (-len(entry[1]), entry[0])
    ):
        cells = cells_phrase(facts, [delta.key for delta in deltas], names)
        lines.append(
            phrase(cells, f": {clip(reason or 'no reason given', _REASON_CHARS)}")
        )
    return lines


def failed_builds(facts: Facts, state: str, view: View) -> Fold:
    """Return the builds of a state, grouped by the compiler's message.

    Builds that already failed on base get one line for each group. Models take turns.
    """
    groups = grouped(facts, state)
    has_message = state == "newly-broken" or view.is_page

    def group_blocks(count: int) -> Iterator[Block]:
        shown_groups = fair(groups, lambda group: group[0].key.model, count)
        for group in shown_groups:
            if has_message:
                yield from _message_blocks(facts, group, view)
            else:
                yield _first_line(facts, group, view)
        yield more_of(listing(shown_groups, len(groups), "group of failures"))

    title = counted(facts.state_words[state].capitalize(), facts.count(state), facts)
    return section(title, part(group_blocks, view.failures, Rank.MESSAGE), name=state)


def _message_blocks(
    facts: Facts, group: Sequence[CellDelta], view: View
) -> Iterator[Block]:
    """Yield the words about a group's failures, and the first lines of the message."""
    text, hidden_lines = _message(group, view)
    ending = ""
    if hidden_lines:
        ending = f"and {plural(hidden_lines, 'more line')}, in report.json"
    yield Sentence(_what_happened(facts, group, view))
    yield Code(text, language="text")
    yield Sentence(ending, small=True)


def _first_line(facts: Facts, group: Sequence[CellDelta], view: View) -> Sentence:
    """Return the words about the failures of a group, with the message's first line."""
    happened = _what_happened(facts, group, view)
    line = _message(group, view)[0].partition("\n")[0]
    if not line:
        return Sentence(happened)
    return Sentence(phrase(happened, ": ", code(clip(line, 120))))


def _message(group: Sequence[CellDelta], view: View) -> tuple[str, int]:
    """Return the first lines of the first build's message, and how many follow."""
    cell = _refused(group[0])
    if not cell or not cell.failure:
        return "", 0
    return trimmed(cell.failure.message, view.lines)


def _what_happened(facts: Facts, group: Sequence[CellDelta], view: View) -> Phrase:
    """Return the failure of a group, how many builds it has, and their names."""
    failure = strong(plain(failure_words(*map(_refused, group))))
    count = ""
    if len(group) > 1:
        count = f", {plural(len(group), 'build')} with the same message"
    names = min(view.names, MOST_NAMES)
    where = cells_phrase(facts, [delta.key for delta in group], names)
    return phrase(failure, f"{count}: ", where)
