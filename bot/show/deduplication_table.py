"""Draw deduplication before and after: how many regions of each build it folds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bot.core.deduplication import Deduplication, NearDuplicates, near_duplicates_of
from bot.core.metrics import code_words
from bot.core.snapshot import CellKey
from bot.show.blocks import (
    Block,
    Fold,
    Footnotes,
    List,
    Rank,
    Row,
    Sentence,
    Table,
    fair_in_order,
    listing,
    part,
)
from bot.show.deduplicated_builds import DeduplicatedBuild, deduplicated_builds
from bot.show.facts import Facts
from bot.show.failures import trimmed
from bot.show.filters import UNKNOWN, amount, plural
from bot.show.folded_shares import share_texts
from bot.show.views import View

_HEADERS = (
    "model",
    "target",
    "dispatch regions",
    "executables",
    "regions folded",
    "share folded",
    "near-duplicates",
    "their code, at most",
)
_ABOUT = (
    "Fusion forms the dispatch regions. Deduplication folds equal regions into one"
    " executable. Near-duplicates are the executables that merging each family into one"
    " could remove. Their code is an upper bound of the saving: it is the code of all"
    " members but the largest."
)


def deduplication_table(facts: Facts, view: View) -> Fold:
    """Return the fold with a row for each build: first those that changed."""
    builds = sorted(deduplicated_builds(facts), key=_rank)

    def table(count: int) -> Iterator[Block]:
        footnotes = Footnotes(view.failures)
        shown_builds = fair_in_order(builds, lambda build: build.delta.key.model, count)
        rows = [_row(facts, build, footnotes) for build in shown_builds]
        yield Sentence(_ABOUT, small=True)
        yield Table(
            _HEADERS,
            listing(rows, len(builds), "build"),
            numbers_from=2,
            small=True,
            wanted=(5, 3, 2, 4, 6, 7),
            css="deduplication",
        )
        yield List(footnotes.listed(), small=True)

    title = f"Deduplication: {plural(len(builds), 'build')}"
    blocks = (part(table, view.changed, Rank.ROW),)
    return Fold(title, blocks if builds else (), name="deduplication")


def _rank(build: DeduplicatedBuild) -> tuple[int, CellKey]:
    """Return the sort key of a build: the largest change first, then by name.

    Swapped sides give the same order.
    """
    regions_before, before, regions_after, after = build.counts or (0, 0, 0, 0)
    return -abs(after - before) - abs(regions_after - regions_before), build.delta.key


def _row(facts: Facts, build: DeduplicatedBuild, footnotes: Footnotes) -> Row:
    delta = build.delta
    if facts.report.adoption:
        sides = [build.head]
        cells = [delta.head]
    else:
        sides = [build.base, build.head]
        cells = [delta.base, delta.head]
    near = [near_duplicates_of(cell, varies=delta.unstable) for cell in cells]
    text_form = code_words("", facts.backends.get(delta.key.target, ""))
    code = _together(_near_code(side, footnotes) for side in near)
    if text_form and code[-1] == "B":
        code = f"{code} of {text_form}"
    return (
        *facts.names(delta.key),
        _together(amount(side.regions, "count") for side in sides),
        _together(amount(side.executables, "count") for side in sides),
        _together(_folded_count(side, footnotes) for side in sides),
        _together(share_texts(sides)),
        _together(_near_count(side, footnotes) for side in near),
        code,
    )


def _note(reason: str) -> str:
    """Return the first line of a reason, without the folder where the compiler ran."""
    return trimmed(reason, 1)[0]


def _together(texts: Iterable[str]) -> str:
    """Return base and head, or one text if they are equal."""
    return " → ".join(dict.fromkeys(texts))


def _folded_count(side: Deduplication, footnotes: Footnotes) -> str:
    return amount(side.folded, "count") + footnotes.mark(_note(side.reason))


def _near_count(near: NearDuplicates, footnotes: Footnotes) -> str:
    if near.executables is None:
        return UNKNOWN + footnotes.mark(_note(near.reason))
    return amount(near.executables, "count")


def _near_code(near: NearDuplicates, footnotes: Footnotes) -> str:
    if near.executables is None:
        return UNKNOWN  # the count of executables has the note
    return amount(near.code_bytes) + footnotes.mark(near.reason)
