"""Show slow growth: a row for each measure, and a column for each older baseline."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.history_totals import TRACKED
from bot.core.metrics import METRIC_BY_ID
from bot.core.slow_growth import WINDOW_DAYS, Growth
from bot.show.blocks import (
    Block,
    Footnotes,
    List,
    Phrase,
    Row,
    Sentence,
    Table,
    listed,
    phrase,
    section,
)
from bot.show.escape import clean, clip
from bot.show.filters import UNKNOWN, change, plural

_TITLES = {
    "release": "since the last release",
    "acceptance": "since the last acceptance",
    "window": f"over {WINDOW_DAYS} days",
}
_UNITS = {"bytes": ", bytes", "count": ""}
_SHOWN_DIGITS = 10
_WORDS = 200
_ABOUT = (
    "Growth below the thresholds adds up over many pushes. Each column compares the"
    " newest baseline with an older one. It counts the builds with one value in both."
)


def growth_section(growths: Sequence[Growth]) -> Block:
    """Return the section; empty without any."""
    notes = Footnotes(len(growths) * 2)
    headers = ["measure"]
    for growth in growths:
        headers.append(f"{_TITLES[growth.since]}{notes.mark(_about(growth))}")
    rows = [_row(metric, growths) for metric in TRACKED if _is_known(metric, growths)]
    if growths and not rows:
        rows = [("all measures", *(UNKNOWN for _ in growths))]
    footnotes = List(notes.listed(), small=True)
    about = Sentence(_ABOUT if growths else "", small=True)
    return section(
        "Slow growth",
        Table(tuple(headers), listed(rows, "measure")),
        footnotes,
        about,
        name="growth",
    )


def _is_known(metric: str, growths: Sequence[Growth]) -> bool:
    builds = 0
    for growth in growths:
        if metric in growth.metrics:
            builds += growth.metrics[metric].builds
    return bool(builds)


def _row(metric: str, growths: Sequence[Growth]) -> Row:
    quantity = METRIC_BY_ID[metric]
    over = "all together"
    if quantity.over == "largest":
        over = "the largest"
    return (
        f"{quantity.label}{_UNITS[quantity.unit]}, {over}",
        *(_value(metric, growth) for growth in growths),
    )


def _value(metric: str, growth: Growth) -> Phrase:
    grown = growth.metrics.get(metric)
    if grown is None or grown.base is None:
        return phrase(UNKNOWN)
    return phrase(change(grown.base, grown.head, "count"))


def _about(growth: Growth) -> str:
    """Return the older baseline and how many builds count, or why it is not known."""
    if growth.base is None:
        return f"{_TITLES[growth.since]}: {UNKNOWN}, because {growth.reason}"
    subject = clip(clean(growth.what), _WORDS)
    builds = max((grown.builds for grown in growth.metrics.values()), default=0)
    return (
        f"{_TITLES[growth.since]}: baseline of {growth.base[:_SHOWN_DIGITS]} ({subject}),"
        f" {plural(builds, 'build')}"
    )
