"""Show an experiment of the lab: its answers, and the tables of its variants.

`write_lab` writes the answer as JSON, as Markdown and as a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bot.core.growth import growths
from bot.core.lab import Lab, lab_lines
from bot.core.lab_sums import sums
from bot.show.blocks import (
    Block,
    Fold,
    List,
    Rank,
    Sentence,
    bounded,
    listed,
    listing,
    part,
    phrase,
    section,
    several,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.growth import growth_answers, growth_tables
from bot.show.lab_answers import answers
from bot.show.lab_remarks import remarks
from bot.show.lab_stack import beyond_stack
from bot.show.lab_tables import tables
from bot.show.lab_unmeasured import unmeasured
from bot.show.lab_variants import measured_with, variant_words
from bot.show.lab_words import TEXT_CHARS
from bot.show.renderers import write_answer
from bot.show.times import time_tables
from bot.show.views import Room

# A quarter of what GitHub takes as the summary of one step, in UTF-8
LAB_LIMIT_BYTES = 256 * 1024


def write_lab(lab: Lab, templates: Path | None, out: Path) -> list[Path]:
    """Write `lab.json`, `lab.md` and `lab.html`, and return their paths.

    The Markdown has at most `LAB_LIMIT_BYTES` in UTF-8.

    `templates`: the user's templates, searched before the default ones.
    """
    return write_answer(
        "lab",
        json=lab_lines(lab),
        blocks=partial(lab_blocks, lab),
        limit_bytes=LAB_LIMIT_BYTES,
        templates_dir=templates,
        out=out,
    )


def lab_blocks(lab: Lab, room: Room) -> tuple[Block, ...]:
    """Return the whole answer.

    A terminal, whose last lines are seen first, has the sentences below the tables.
    """
    lab_sums = sums(lab)
    leading, models = tables(lab, lab_sums)
    grown = growths(lab.study, lab.experiment.columns)
    targets = [*growth_answers(grown), *answers(lab, lab_sums)]
    stack = [*beyond_stack(lab, lab_sums, room.names)]

    def result(count: int) -> Iterator[Block]:
        lines = (*targets[:count], *stack)
        yield List(listing(lines, len(targets) + len(stack), "answer"))

    answered = section("Result", part(result, room.lines, Rank.ANSWER), name="answers")
    measured = section(
        "",
        several(growth_tables(grown), Rank.LINE, "build", room.names),
        several(leading, Rank.LINE, "table"),
        name="tables",
    )
    profiles = part(partial(time_tables, lab), room.names, Rank.ROW)
    times = section("", profiles, name="times")
    variants = listed(
        [variant_words(lab, variant) for variant in lab.study.variants], "variant"
    )
    question = clip(clean(lab.experiment.question), TEXT_CHARS)
    missing = List(listed(unmeasured(lab, room.names), "reason"))
    remark_list = List(listed(remarks(lab), "remark"), small=True)
    leads = (answered, measured, times)
    if room.place == "terminal":
        leads = (measured, times, answered)
    return (
        Sentence(phrase(strong(f"Lab: {clean(lab.experiment.name)}"), f". {question}")),
        *leads,
        section(
            "Not measured",
            bounded(missing, Rank.MESSAGE, room.lines),
            name="not-measured",
        ),
        section(
            "What to know", bounded(remark_list, Rank.LINE, room.lines), name="remarks"
        ),
        Fold(
            "Every model",
            tuple(bounded(table, Rank.ROW, room.rows) for table in models),
            name="models",
        ),
        Fold(
            "Variants, and how to reproduce",
            (bounded(List(variants), Rank.ROW), Sentence(measured_with(lab))),
            name="variants",
        ),
    )
