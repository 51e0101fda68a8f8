"""Draw deduplication before and after: how many regions of each build it folds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bot.core.deduplication import EXECUTABLES, REGIONS, Deduplication, deduplication_of
from bot.core.delta import CellDelta, value_of
from bot.core.metrics import code_words
from bot.core.record import Value, ends
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import (
    ABSENT,
    Block,
    Fold,
    Footnotes,
    List,
    Phrase,
    Rank,
    Row,
    Sentence,
    Table,
    by,
    fair_in_order,
    joined,
    listing,
    part,
    phrase,
    strong,
)
from bot.show.facts import Facts, cells_phrase
from bot.show.failures import trimmed
from bot.show.filters import UNKNOWN, amount, plural, shares
from bot.show.views import View

_MOST_NAMES = 3  # of models and targets in the line of a comment
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


@dataclass(frozen=True, slots=True)
class _Build:
    """One build on both sides."""

    delta: CellDelta
    base: Deduplication
    head: Deduplication

    @property
    def is_known(self) -> bool:
        """Return whether a side knows how many regions it folds."""
        return self.base.folded is not None or self.head.folded is not None

    @property
    def counts(self) -> tuple[int, int, int, int] | None:
        """Return regions and folded regions of base, then of head.

        Return None if one of them has no exact value.
        """
        base = _exact(self.base)
        head = _exact(self.head)
        if base is None or head is None:
            return None
        return (*base, *head)

    @property
    def is_changed(self) -> bool:
        """Return whether both sides are known and their numbers differ."""
        counts = self.counts
        return counts is not None and counts[:2] != counts[2:]


def _exact(side: Deduplication) -> tuple[int, int] | None:
    if isinstance(side.regions, int) and isinstance(side.folded, int):
        return side.regions, side.folded
    return None


def _builds(facts: Facts) -> list[_Build]:
    builds = [_build(delta) for delta in facts.report.deltas]
    return [build for build in builds if build.is_known]


def _build(delta: CellDelta) -> _Build:
    base_regions, head_regions = delta.metrics[REGIONS].sides
    base_executables, head_executables = delta.metrics[EXECUTABLES].sides
    varies = delta.unstable
    return _Build(
        delta,
        base=deduplication_of(
            delta.base, base_regions, base_executables, varies=varies
        ),
        head=deduplication_of(
            delta.head, head_regions, head_executables, varies=varies
        ),
    )


# The line of a comment.


def folded_line(facts: Facts, view: View) -> Sentence:
    """Return ``18 fewer regions are folded: 68 % → 61 % in `m` on every target``.

    The text is empty if nothing changed.
    """
    changed = [build for build in _builds(facts) if build.is_changed]
    directions = by(changed, _direction)
    parts = [
        _direction_words(facts, directions[sign], view)
        for sign in (-1, 1, 0)
        if sign in directions
    ]
    if not parts:
        return Sentence((), name="folded")
    text = phrase(strong("Deduplication:"), " ", joined(parts, "; "), ".")
    return Sentence(text, name="folded")


def _direction(build: _Build) -> int:
    """Return -1 if head folds fewer regions than base, 1 for more, 0 for as many."""
    _, before, _, after = build.counts or (0, 0, 0, 0)
    return (after > before) - (after < before)


def _direction_words(facts: Facts, builds: Sequence[_Build], view: View) -> Phrase:
    """Return the words about builds that all change in one direction.

    If a model has the same counts on several targets, they compile the same program. It
    counts once.
    """
    programs = {}
    for build in builds:
        if build.counts is not None:
            programs[build.delta.key.model, build.counts] = build.counts
    columns = zip(*programs.values(), strict=True)
    regions_before, before, regions_after, after = map(sum, columns)
    keys = [build.delta.key for build in builds]
    where = cells_phrase(facts, keys, min(view.names, _MOST_NAMES))
    moved = _moved_words(after - before, regions_before, regions_after)
    base, head = _share_texts(
        [_share(before, regions_before), _share(after, regions_after)]
    )
    return phrase(f"{moved}: {base} → {head} in ", where)


def _moved_words(change: int, regions_before: int, regions_after: int) -> str:
    if not change:
        return f"as many regions are folded, of {regions_before:,} → {regions_after:,}"
    direction = "fewer" if change < 0 else "more"
    noun = "regions are"
    if abs(change) == 1:
        noun = "region is"
    return f"{abs(change):,} {direction} {noun} folded"


# The table.


def deduplication_table(facts: Facts, view: View) -> Fold:
    """Return the fold with a row for each build: first those that changed."""
    builds = sorted(_builds(facts), key=_rank)

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


def _rank(build: _Build) -> tuple[int, CellKey]:
    """Return the sort key of a build: the largest change first, then by name.

    Swapped sides give the same order.
    """
    regions_before, before, regions_after, after = build.counts or (0, 0, 0, 0)
    return -abs(after - before) - abs(regions_after - regions_before), build.delta.key


def _row(facts: Facts, build: _Build, footnotes: Footnotes) -> Row:
    if facts.report.adoption:
        sides = [build.head]
    else:
        sides = [build.base, build.head]
    text_form = code_words("", facts.backends.get(build.delta.key.target, ""))
    code = _together(_near_code(side, footnotes) for side in sides)
    if text_form and code[-1] == "B":
        code = f"{code} of {text_form}"
    return (
        *facts.names(build.delta.key),
        _together(amount(side.regions, "count") for side in sides),
        _together(amount(side.executables, "count") for side in sides),
        _together(_folded_count(side, footnotes) for side in sides),
        _together(share_texts(sides)),
        _together(_near_count(side, footnotes) for side in sides),
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


def _near_count(side: Deduplication, footnotes: Footnotes) -> str:
    if side.near is None:
        return UNKNOWN + footnotes.mark(_note(side.near_reason))
    return amount(side.near.executables, "count")


def _near_code(side: Deduplication, footnotes: Footnotes) -> str:
    if side.near is None:
        return UNKNOWN
    return amount(side.near.code_bytes) + footnotes.mark(side.near.reason)


# Shares, of one build or of several sides of it.


def folded_shares(cells: Sequence[Cell]) -> list[str]:
    """Return the share of folded regions of each cell: `68 %`, `61..68 %`, `n/a`."""
    return share_texts([_deduplication(cell) for cell in cells])


def folded_words(cell: Cell) -> str:
    """Return `67 of 84 (80 %)`; `n/a` if it is not known."""
    side = _deduplication(cell)
    if side.folded is None:
        return UNKNOWN
    (text,) = share_texts([side])
    counts = f"{amount(side.folded, 'count')} of {amount(side.regions, 'count')}"
    if text == ABSENT:
        return counts
    return f"{counts} ({text})"


def _deduplication(cell: Cell) -> Deduplication:
    regions = value_of(cell, REGIONS)
    executables = value_of(cell, EXECUTABLES)
    return deduplication_of(cell, regions, executables, varies=bool(cell.others))


def share_texts(sides: Sequence[Deduplication]) -> list[str]:
    """Return the share of folded regions of each side.

    They have enough digits to differ if the shares differ.
    """
    return _share_texts([_share(side.folded, side.regions) for side in sides])


Share = tuple[Fraction, Fraction] | str  # its smallest and its largest value, or a word


def _share(folded: Value, regions: Value) -> Share:
    if folded is None or regions is None:
        return UNKNOWN
    fewest_regions, most_regions = ends(regions)
    if not fewest_regions:
        return ABSENT
    low, high = ends(folded)
    return Fraction(low, most_regions), min(Fraction(high, fewest_regions), Fraction(1))


def _share_texts(folded_parts: Sequence[Share]) -> list[str]:
    fractions = set[Fraction]()
    for share in folded_parts:
        if isinstance(share, tuple):
            fractions.update(share)
    ordered = sorted(fractions)
    texts = dict(zip(ordered, shares(*ordered), strict=True))
    return [_share_text(share, texts) for share in folded_parts]


def _share_text(share: Share, texts: dict[Fraction, str]) -> str:
    if not isinstance(share, tuple):
        return share
    low, high = share
    if low == high:
        return texts[low]
    return f"{texts[low].removesuffix(' %')}..{texts[high]}"
