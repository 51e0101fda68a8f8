"""Show a history: totals, steps with their root causes, and each build's changes.

`write_history` writes the answer as JSON, as Markdown and as a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bot.core.history import History, history_lines
from bot.show.blocks import (
    Block,
    List,
    Picture,
    Rank,
    Sentence,
    bounded,
    listed,
    part,
    section,
)
from bot.show.history_charts import chart_data, charted_models
from bot.show.history_facts import HistoryFacts
from bot.show.history_models import model_sections
from bot.show.history_sentences import coverage_sentence, headline_sentence, note_lines
from bot.show.history_tables import build_blocks, step_table, total_tables
from bot.show.renderers import data_element, write_answer
from bot.show.slow_growth import growth_section
from bot.show.views import Room

# Half of what GitHub takes as the summary of one step, in UTF-8
HISTORY_LIMIT_BYTES = 512 * 1024


def write_history(history: History, templates: Path | None, out: Path) -> list[Path]:
    """Write `history.json`, `history.md` and `history.html`; return their paths.

    The Markdown has at most `HISTORY_LIMIT_BYTES` in UTF-8.
    `templates`: the user's templates, searched before the default ones.
    """
    return write_answer(
        "history",
        json=history_lines(history),
        blocks=partial(history_blocks, history),
        limit_bytes=HISTORY_LIMIT_BYTES,
        templates_dir=templates,
        out=out,
        styles=("history/history.css",),
        scripts=("history/history.js",),
    )


def history_blocks(history: History, room: Room) -> tuple[Block, ...]:
    """Return the whole answer.

    Builds are rows of a table. A page has a fold for each build, and charts of all.
    """
    facts = HistoryFacts(history)
    names = facts.names
    if len(names) <= room.columns:
        columns = names
    else:
        columns = (names[0], *names[len(names) - room.columns + 1 :])
    charted: Mapping[str, Sequence[dict[str, Any]]] = {}
    if room.place == "page":
        charted = charted_models(facts)
    charts: tuple[tuple[str, str], ...] = ()
    if charted:
        chart_json = data_element("page:history", chart_data(facts, charted))
        charts = (("page:history", chart_json),)
    builds: tuple[Block, ...]
    if room.place == "page":
        builds = tuple(model_sections(facts, charted))
    else:
        builds = (
            part(
                partial(build_blocks, facts, columns, room.lines), room.rows, Rank.ROW
            ),
        )
    return (
        Sentence(headline_sentence(facts)),
        Sentence(coverage_sentence(facts, columns), small=room.place == "page"),
        section(
            "What to know",
            bounded(List(listed(note_lines(history), "note")), Rank.LINE),
            name="notes",
            address="page:notes",
        ),
        Picture(charts, name="charts"),
        section(
            "Totals",
            *total_tables(facts, columns),
            name="totals",
            address="page:totals",
        ),
        growth_section(history.growths),
        section(
            "Steps and their root causes",
            part(partial(step_table, facts, room), room.rows // 4, Rank.ANSWER),
            name="steps",
            address="page:steps",
        ),
        *builds,
    )
