"""The weekly summary as blocks, and its three files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bot.core.drift import Drift, Weekly, weekly_lines
from bot.show.blocks import (
    Block,
    List,
    Phrase,
    Row,
    Sentence,
    Table,
    code,
    joined,
    listed,
    phrase,
    section,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import UNKNOWN, change, plural, sides, signed
from bot.show.renderers import markdown, write_answer
from bot.show.root_causes import cause_title
from bot.show.slow_growth import growth_section
from bot.show.views import Room

# Half of what GitHub takes as the summary of one step, in UTF-8
WEEKLY_LIMIT_BYTES = 512 * 1024
_SHOWN_DIGITS = 10
_NOTE = 400


def write_weekly(weekly: Weekly, templates: Path | None, out: Path) -> list[Path]:
    """Write `weekly.json`, `weekly.md` and `weekly.html`."""
    blocks = partial(weekly_blocks, weekly)
    return write_answer(
        "weekly",
        json=weekly_lines(weekly),
        blocks=blocks,
        limit_bytes=WEEKLY_LIMIT_BYTES,
        templates_dir=templates,
        out=out,
    )


def weekly_markdown(weekly: Weekly, templates: Path | None) -> str:
    """Return the summary for the run's page."""
    return markdown(
        "weekly",
        blocks=partial(weekly_blocks, weekly),
        limit_bytes=WEEKLY_LIMIT_BYTES,
        templates_dir=templates,
    )


def weekly_blocks(weekly: Weekly, _room: Room) -> tuple[Block, ...]:
    """Return the largest drifts, and each measure since older baselines."""
    ends = phrase(
        code(weekly.base[:_SHOWN_DIGITS]), " to ", code(weekly.head[:_SHOWN_DIGITS])
    )
    counted = (
        f"{plural(weekly.grown, 'build')} of {weekly.compared:,} grew over"
        f" {plural(weekly.days, 'day')}"
    )
    notes = [phrase(clip(clean(note), _NOTE)) for note in weekly.notes]
    headers = ("build", "code size", "last 7 days", "mainly because", "largest steps")
    rows = [_row(drift) for drift in weekly.drifts]
    table = Table(
        headers, listed(rows, "build"), numbers_from=1, unnumbered=(3, 4), sentences=3
    )
    nothing = "No build grew."
    if rows:
        nothing = ""
    return (
        Sentence(phrase("Slow growth: ", strong(counted))),
        Sentence(phrase("Baselines of ", ends, ".")),
        List(listed(notes, "note"), small=True),
        section("Largest drifts", table, Sentence(nothing), name="drifts"),
        growth_section(weekly.growths),
    )


def _row(drift: Drift) -> Row:
    model = code(clip(drift.key.model, NAME_LIMIT))
    target = code(clip(drift.key.target, NAME_LIMIT))
    size = f"{sides(drift.base, drift.head)}, {change(drift.base, drift.head)}"
    steps = []
    for step in drift.steps:
        commit = code(step.commit[:_SHOWN_DIGITS])
        steps.append(phrase(commit, f" {signed(step.change_bytes)}"))
    return (
        phrase(model, " on ", target),
        size,
        signed(drift.week),
        _why(drift),
        joined(steps, ", ") or UNKNOWN,
    )


def _why(drift: Drift) -> Phrase:
    if not drift.what:
        return phrase(f"{UNKNOWN}: no cause was found")
    return cause_title(drift.what, drift.cause)
