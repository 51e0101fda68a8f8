"""Say in sentences what a history covers, and how the code grew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.history import History
from bot.show.blocks import Phrase, phrase, strong
from bot.show.escape import clean, clip
from bot.show.filters import change, plural
from bot.show.history_facts import HistoryFacts
from bot.show.history_words import ARTIFACT, shown_name

_NOTE = 400


def headline_sentence(facts: HistoryFacts) -> Phrase:
    """Return `Code size from 3.8.0 to 3.13.0: artifacts +12,345 B (+3.1 %)`."""
    first, *later = facts.shown or ("no release",)
    if later:
        ends = phrase(
            "from ", strong(shown_name(first)), " to ", strong(shown_name(later[-1]))
        )
    else:
        ends = phrase("of ", strong(shown_name(first)))
    sizes = [total.metrics[ARTIFACT] for total in facts.totals.get(None, ())]
    if len(sizes) < 2 or sizes[0] is None or sizes[-1] is None:
        return phrase("Code size ", ends)
    grown = f": artifacts {change(sizes[0], sizes[-1])} over {counted_builds(facts, ARTIFACT)}"
    return phrase("Code size ", ends, grown)


def counted_builds(facts: HistoryFacts, metric: str, target: str | None = None) -> str:
    """Return how many builds a total is over: `15 of 33 builds`."""
    totals = facts.totals.get(target, ())
    count = 0
    if totals:
        count = totals[0].cells.get(metric, 0)
    row_count = sum(target in (None, key.target) for key in facts.rows)
    return f"{count:,} of {plural(row_count, 'build')}"


def coverage_sentence(facts: HistoryFacts, columns: Sequence[str]) -> Phrase:
    """Return how many builds, models and releases the history covers."""
    models = plural(len(facts.models), "model")
    targets = plural(len(facts.targets), "target")
    measured = 0
    for row in facts.rows.values():
        measured += sum(cell.measured for cell in row)
    gaps = len(facts.rows) * len(facts.names) - measured
    points = plural(measured, "point")
    if gaps:
        points = f"{points}, and {plural(gaps, 'gap')} with reasons"
    releases = plural(len(facts.names), "release")
    left_out = len(facts.names) - len(columns)
    sentences = [
        (
            f"{plural(len(facts.rows), 'build')} of {models} on {targets} in"
            f" {releases}: {points}."
        ),
        (
            "Totals count only builds with exactly one value in every measured release."
            " So a gap never looks like a change."
        ),
    ]
    if left_out:
        sentences.append(
            f"No column here for {plural(left_out, 'release')} between the first and"
            " the last ones."
        )
    return phrase(" ".join(sentences))


def note_lines(history: History) -> Iterator[Phrase]:
    """Yield a line for each release that is a gap, and for each note of a release."""
    for release in history.study.variants:
        name = phrase(strong(shown_name(release.name)), ": ")
        if release.reason:
            yield phrase(
                name, "could not be measured: ", clip(clean(release.reason), _NOTE)
            )
        if release.snapshot:
            for note in release.snapshot.notes:
                yield phrase(name, clip(clean(note), _NOTE))
