"""Run times of failing builds in words, and what stands in their place on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bot.core.backends import AMD, NVIDIA
from bot.core.cell_story import CellStory
from bot.core.delta import CellDelta
from bot.core.metrics import METRIC_BY_ID
from bot.core.occupancy import device_of, occupancy
from bot.core.run_times import BuildRun, RunTimes, TimeRatio
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import (
    ABSENT,
    NOTE_LIMIT,
    Block,
    Row,
    Sentence,
    Span,
    by,
    listed,
    phrase,
)
from bot.show.escape import clean
from bot.show.facts import Facts, cells_phrase
from bot.show.failures import MOST_NAMES
from bot.show.filters import UNKNOWN, plural, sides
from bot.show.views import View

_REGISTERS = {AMD: "vgprs_max", NVIDIA: "registers_max"}
_SPILLS = {AMD: ("vgpr_spills", "sgpr_spills"), NVIDIA: ("spill_bytes",)}
_SMALL = 0.1
_MACHINE_CHARS = 120
_NONE = phrase(ABSENT)


class RunRows(NamedTuple):
    """Rows for the table of failing builds."""

    by_build: Mapping[CellKey, tuple[Row, ...]]
    summary: Row = ()  # one row for all of them; empty if nothing was run


NO_ROWS = RunRows({})


def ratio_words(time: TimeRatio) -> str:
    """Return `0.97 [0.95, 0.99]`: head / base, and the interval of 95 %."""
    ends = f"[{_number(time.low)}, {_number(time.high)}]"
    return f"{_number(time.ratio)} {ends}"


def tendency(time: TimeRatio) -> str:
    """Return the meaning of the interval: `slower`, `faster` or `no clear change`."""
    if time.low > 1:
        return "slower"
    if time.high < 1:
        return "faster"
    return "no clear change"


def _number(ratio: float) -> str:
    if ratio >= _SMALL:
        return f"{ratio:.2f}"
    return f"{ratio:.2g}"


def outputs_words(build: BuildRun) -> str:
    """Return whether the outputs agree, and on what inputs, or why it is not known."""
    note = clean(build.equal_note, NOTE_LIMIT)
    if build.equal is None:
        return f"outputs not compared: {note}"
    if build.equal:
        words = "outputs equal"
    else:
        words = "outputs differ"
    if note:
        return f"{words}: {note}"
    return words


def run_sentence(build: BuildRun) -> str:
    """Return all facts of one build: run time, what it means, and its outputs."""
    if build.time is None:
        words = f"run time {UNKNOWN}: {clean(build.time_note, NOTE_LIMIT)}"
        if build.equal is None and build.equal_note == build.time_note:
            return words
        return f"{words}; {outputs_words(build)}"
    time = build.time
    pairs = f"{time.pairs:,} pairs of runs"
    words = f"run time {ratio_words(time)}, head / base: {tendency(time)} ({pairs})"
    return f"{words}; {outputs_words(build)}"


def run_rows(facts: Facts) -> RunRows:
    """Return a row for each build that ran, or whose GPU registers changed."""
    runs = facts.report.run_times
    if runs is None:
        return NO_ROWS
    rows = dict[CellKey, tuple[Row, ...]]()
    for key, build in runs.by_build.items():
        delta = facts.deltas.get(key)
        if delta is None:
            continue
        if build.time is not None or build.equal is False:
            rows[key] = (_run_row(facts, key, build),)
        elif static := static_words(facts.backends.get(key.target, ""), delta):
            rows[key] = (_static_row(facts, key, static),)
    return RunRows(rows, _summary(runs))


def _run_row(facts: Facts, key: CellKey, build: BuildRun) -> Row:
    words = phrase(Span(UNKNOWN))
    if build.time is not None:
        ratio = Span(ratio_words(build.time), "number")
        words = phrase(ratio, f" {tendency(build.time)}")
    if build.equal is False:
        words = phrase(words, ", ", Span("outputs differ", "fail"))
    return phrase(facts.named(key), ": run time"), words, _NONE, _NONE


def _static_row(facts: Facts, key: CellKey, words: str) -> Row:
    return phrase(facts.named(key), ": registers"), phrase(words), _NONE, _NONE


def _summary(runs: RunTimes) -> Row:
    """Return one row for all builds that were run."""
    ratios = []
    differing = 0
    for build in runs.builds:
        differing += build.equal is False
        if build.time is not None:
            ratios.append(build.time.ratio)
    if not ratios and not differing:
        return ()
    words = phrase(Span(UNKNOWN))
    if ratios:
        lowest = _number(min(ratios))
        highest = _number(max(ratios))
        if lowest == highest:
            text = lowest
        else:
            text = f"{lowest} to {highest}"
        words = phrase(Span(text, "number"))
    if differing:
        text = f"outputs differ in {plural(differing, 'build')}"
        words = phrase(words, ", ", Span(text, "fail"))
    return phrase(f"run time of {plural(len(ratios), 'build')}"), words, _NONE, _NONE


def run_notes(facts: Facts, view: View) -> Iterator[Block]:
    """Yield the notes below the rows of runs.

    They have the meaning of the rows, the outputs that differ or were not compared, and
    the builds without a run time.
    """
    runs = facts.report.run_times
    if runs is None:
        return
    if any(build.time for build in runs.builds):
        where = clean(runs.machine, _MACHINE_CHARS)
        meaning = "Run time: CPU time of head / base, with its 95 % interval"
        if where:
            words = f"{meaning}, on {where}."
        else:
            words = f"{meaning}."
        yield Sentence(phrase(words), small=True, name="run-time")
    notes = list[tuple[str, CellKey]]()
    for key, build in runs.by_build.items():
        delta = facts.deltas.get(key)
        if delta is None or delta.state == "newly-broken":
            continue
        if build.time is None:
            reason = clean(build.time_note, NOTE_LIMIT)
            notes.append((f"Run time {UNKNOWN}: {reason}", key))
        is_told = build.time is None and build.equal_note == build.time_note
        if build.equal is not True and not is_told:
            words = outputs_words(build)
            notes.append((f"{words[0].upper()}{words[1:]}", key))
    groups = by(notes, lambda note: note[0])
    shown = listed(groups.items(), "note").first(view.alarms)
    for words, pairs in shown.items:
        keys = [key for _, key in pairs]
        names = cells_phrase(facts, keys, min(MOST_NAMES, view.names))
        yield Sentence(phrase(names, f": {words}."), small=True, name="run-note")
    if shown.more:
        more = f"{plural(shown.more, 'more reason')} in report.json."
        yield Sentence(phrase(more), small=True, name="run-note")


def static_words(backend: str, delta: CellDelta) -> str:
    """Return registers, spills and occupancy of a GPU build.

    It is empty if none of them changed.
    """
    registers = _REGISTERS.get(backend)
    if registers is None or delta.base is None or delta.head is None:
        return ""
    parts = list[str]()
    for id_ in (registers, *_SPILLS[backend]):
        value = delta.metrics.get(id_)
        if value is None or None in value.sides:
            continue
        if value.sides[0] != value.sides[1]:
            metric = METRIC_BY_ID[id_]
            parts.append(f"{metric.label} {sides(*value.sides, metric.unit)}")
    base = _occupancy_words(backend, delta.base, registers)
    head = _occupancy_words(backend, delta.head, registers)
    if base and head and base != head:
        parts.append(f"occupancy by registers: {base} → {head}")
    return ", ".join(parts)


def _occupancy_words(backend: str, cell: Cell, registers: str) -> str:
    """Return `7 of 8 waves of a SIMD unit`; empty if the registers do not decide it."""
    count = cell.value(registers)
    if count is None or cell.others:
        return ""
    found = occupancy(device_of(backend, cell.command), count)
    if found is None:
        return ""
    return f"{found.groups} of {found.most} {found.noun}"


def run_paragraph(story: CellStory) -> str:
    """Return a sentence of a build that was to be run; empty of any other."""
    if story.run is None:
        return ""
    return run_sentence(story.run)
