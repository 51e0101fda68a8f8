"""Show the three measures of a comparison, by target.

They are code size, executables, and stack or registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.delta import CellDelta, MetricDelta
from bot.core.record import Value, certain, difference, ends, total
from bot.show.blocks import (
    ABSENT,
    BREAK,
    SUM_CSS,
    Marked,
    Phrase,
    Row,
    Span,
    Stacked,
    Table,
    by,
    joined,
    listed,
    name_cell,
    phrase,
    sides_phrase,
    strong,
)
from bot.show.facts import MARKS, STACK_LIMIT_BYTES, Facts, is_over, mark_of
from bot.show.filters import amount, percent, plural, relative, sides
from bot.show.totals import Total, sum_of, target_deltas

TOLERANCE = 0.001
"""A target has no row if its code size changed by less, and nothing else changed."""
TOLERANCE_WORDS = percent(TOLERANCE).removeprefix("+")
_SPILLS = ("vgpr_spills", "sgpr_spills", "spill_bytes")
_REGISTERS = ("registers_max", "vgprs_max", "agprs_max", "sgprs_max")
_MOST = 3  # registers or spills that one target shows
_STACK = "stack_max_bytes"
_ALLOCATIONS = "stack_alloca_bytes"
_STACKS = (
    (Stacked(0), Stacked(1, ": ")),
    (Stacked(2), Stacked(3, phrase(BREAK), "executables ")),
)


@dataclass(frozen=True, slots=True)
class LargestChange:
    """The build in which a metric of a target changed most."""

    delta: CellDelta
    metric: MetricDelta


@dataclass(frozen=True, slots=True)
class TargetMeasures:
    """The three measures of one target, or of all of them."""

    name: str  # the short name of the target; empty for all targets
    size: Total
    # base and head, over the builds that have both; None if none has
    executables: tuple[Value, Value] | None
    memory: tuple[LargestChange, ...] = ()

    @property
    def is_within_tolerance(self) -> bool:
        """Return whether nothing changed except code size, within the tolerance."""
        size = self.size
        if self.memory or size.states_changed or self.executables_changed:
            return False
        if not size.moves:
            return True
        if (
            not isinstance(size.base, int)
            or not isinstance(size.head, int)
            or not size.base
        ):
            return False
        return abs(size.head - size.base) / size.base < TOLERANCE

    @property
    def executables_changed(self) -> bool:
        """Return whether the number of executables differs between base and head."""
        return (
            self.executables is not None and self.executables[0] != self.executables[1]
        )


def measures_table(facts: Facts) -> tuple[Table, Phrase]:
    """Return the table of the targets that changed, and a line about the others."""
    changed = []
    quiet = []
    for target, deltas in target_deltas(facts).items():
        measures = _measures(facts, target, deltas)
        if measures.is_within_tolerance:
            quiet.append(measures)
        else:
            changed.append(measures)
    if not any(measures.size.cells for measures in (*changed, *quiet)):
        changed = []
    rows = [_row(facts, measures) for measures in changed]
    has_sum = len(changed) > 1
    if has_sum:
        rows.append(_sum_row(facts))
    is_partial = False
    for measures in changed:
        is_partial |= 0 < measures.size.cells < measures.size.planned
    headers = [
        "target (builds compared)" if is_partial else "target",
        "code size",
        "largest change of stack or registers",
        "executables",
    ]
    text = _quiet_words(quiet, is_alone=not changed)
    if changed and not any(measures.executables_changed for measures in changed):
        headers.pop()
        rows = [row[:-1] for row in rows]
        text = joined(filter(None, (_same_executables(facts), text)), " ")
    drawn_rows: list[Row | Marked] = [*rows]
    if has_sum:
        drawn_rows[-1] = Marked(rows[-1], css=SUM_CSS)
    table = Table(
        tuple(headers),
        listed(drawn_rows, "target"),
        numbers_from=len(headers),
        css="measures",
        stacks=_STACKS,
    )
    return table, text


def _every_delta(facts: Facts) -> list[CellDelta]:
    """Return the builds of all measured targets."""
    all_deltas = []
    for deltas in target_deltas(facts).values():
        all_deltas += deltas
    return all_deltas


def _same_executables(facts: Facts) -> Phrase:
    """Return how many executables there are, for a change on no target."""
    deltas = _every_delta(facts)
    counts = _executables(deltas)
    if counts:
        return phrase(
            f"Executables: {sides(*counts, 'count')} in all, no change on any target."
        )
    return ()


def _quiet_words(quiet: Sequence[TargetMeasures], *, is_alone: bool) -> Phrase:
    """Return the words about the targets without a row; empty if there are none."""
    if not quiet:
        return ()
    noun = "other target"
    if is_alone:
        noun = "target"
    moved = sum(measures.size.moves for measures in quiet)
    still = len(quiet) - moved
    text = f"code size changed by less than {TOLERANCE_WORDS}, nothing else"
    if not moved:
        return phrase(f"{plural(still, noun)}: no change.")
    if not still:
        return phrase(f"{plural(moved, noun)}: {text}.")
    return phrase(f"{plural(still, noun)}: no change; {moved:,} more: {text}.")


def _measures(facts: Facts, target: str, deltas: Sequence[CellDelta]) -> TargetMeasures:
    return TargetMeasures(
        name=facts.short[target],
        size=sum_of(facts.short[target], deltas),
        executables=_executables(deltas),
        memory=tuple(_memory(deltas)),
    )


def _executables(deltas: Sequence[CellDelta]) -> tuple[Value, Value] | None:
    """Return the executables of base and head, summed over builds that have both."""
    sizes = []
    for delta in deltas:
        metric = delta.metrics.get("executables")
        if metric is None:
            continue
        base, head = metric.sides
        if base is not None and head is not None:
            sizes.append((base, head))
    if not sizes:
        return None
    return total(base for base, _ in sizes), total(head for _, head in sizes)


def _memory(deltas: Sequence[CellDelta]) -> list[LargestChange]:
    """Return the largest changes of memory.

    These are the changes of spills and registers, if there are any. Else they are those
    of the stack frame and the stack allocations.
    """
    for names in (_SPILLS, _REGISTERS):
        moved = []
        for name in names:
            moved += _largest_changes(deltas, name)
        if moved:
            return moved[:_MOST]
    frames = _largest_changes(deltas, _STACK)
    allocations = _largest_changes(deltas, _ALLOCATIONS) or _over_the_gate(deltas)
    return [*frames, *allocations]


def _largest_changes(deltas: Sequence[CellDelta], name: str) -> list[LargestChange]:
    """Return the build in which a metric grew most.

    The build in which it shrank most is added if the shrinkage is even larger.
    """
    changes = []
    for delta in deltas:
        metric = delta.metrics.get(name)
        if metric is not None and metric.change:
            changes.append(LargestChange(delta, metric))
    if not changes:
        return []
    most_grown = max(changes, key=_growth)
    most_shrunk = min(changes, key=_growth)
    if _growth(most_grown) <= 0:
        return [most_shrunk]
    if -_growth(most_shrunk) > _growth(most_grown):
        return [most_grown, most_shrunk]
    return [most_grown]


def _growth(change: LargestChange) -> int:
    return change.metric.change or 0


def _over_the_gate(deltas: Sequence[CellDelta]) -> list[LargestChange]:
    """Return the newly refused build with the most stack allocations.

    The compiler's limit on stack allocations refuses it.
    """
    refused = []
    for delta in deltas:
        metric = delta.metrics.get(_ALLOCATIONS)
        is_new = is_over(delta.head) and not is_over(delta.base)
        if is_new and metric is not None and metric.head is not None:
            refused.append(LargestChange(delta, metric))
    refused.sort(key=lambda change: -(change.metric.head or 0))
    return refused[:1]


def _row(facts: Facts, measures: TargetMeasures) -> Row:
    size = measures.size
    name = name_cell(measures.name)
    if 0 < size.cells < size.planned:
        name = phrase(name, f" ({size.cells:,} of {size.planned:,})")
    memory = _memory_words(facts, measures.memory)
    return (
        name,
        _size_words(size),
        memory or phrase("no change"),
        _executables_words(measures.executables),
    )


def _sum_row(facts: Facts) -> Row:
    """Return the row of all targets: a largest stack frame has no sum."""
    deltas = _every_delta(facts)
    size = sum_of("", deltas)
    executables = _executables_words(_executables(deltas))
    return phrase(strong("all")), _size_words(size), phrase(ABSENT), executables


def _size_words(size: Total) -> Phrase:
    """Return ``50,438 → 83,990 B (+66.5 %)``, and how many builds newly fail."""
    lost = ""
    if size.broken:
        lost = f"{size.broken:,} newly failing"
    if not size.cells:
        return phrase(lost or "n/a")
    moved = certain(difference(size.base, size.head)) or 0
    grown: Phrase = ()
    if size.base != size.head:
        text = f"({relative(size.base, size.head)})"
        grown = phrase(" ", Span(text, "up") if moved > 0 else Span(text, "down"))
    return phrase(
        sides_phrase(sides(size.base, size.head)), grown, f", {lost}" if lost else ""
    )


def _executables_words(counts: tuple[Value, Value] | None) -> Phrase:
    if counts is None:
        return phrase("n/a")
    return sides_phrase(sides(*counts, "count"))


def _memory_words(facts: Facts, changes: Sequence[LargestChange]) -> Phrase:
    """Return the changes of memory, those of one build together.

    An example is ``frame 376 → 1,176 B, allocations 64 → 128 B in `bert` ``.
    """
    builds = by(changes, lambda change: change.delta.key)
    parts = []
    for key, of_build in builds.items():
        values = joined(
            (_change_words(facts, change) for change in of_build), phrase(",", BREAK)
        )
        parts.append(phrase(values, " in ", facts.names(key)[0]))
    return joined(parts, phrase(";", BREAK))


def _change_words(facts: Facts, change: LargestChange) -> Phrase:
    """Return `frame 376 → 1,176 B`, with the mark of a finding about this number."""
    metric = change.metric
    findings = facts.findings.get(change.delta.key, ())
    marks = []
    for finding in findings:
        if finding.metric == metric.id and not finding.known:
            marks.append(mark_of(finding))
    label = {_STACK: "frame", _ALLOCATIONS: "allocations"}.get(
        metric.id, metric.quantity.label
    )
    values = sides_phrase(sides(*metric.sides, metric.quantity.unit))
    text = phrase(f"{label} ", values)
    if marks:
        text = phrase(f"{MARKS[marks[0]]} ", text)
    head = metric.sides[1]
    if (
        metric.id == _ALLOCATIONS
        and head is not None
        and ends(head)[1] > STACK_LIMIT_BYTES
    ):
        text = phrase(text, f" (the compiler allows {amount(STACK_LIMIT_BYTES)})")
    return text
