"""Say in a line of a comment how many more or fewer regions deduplication folds."""

from __future__ import annotations

from collections.abc import Sequence

from bot.show.blocks import Phrase, Sentence, by, joined, phrase, strong
from bot.show.deduplicated_builds import DeduplicatedBuild, deduplicated_builds
from bot.show.facts import Facts, cells_phrase
from bot.show.folded_shares import share_of, texts_of_shares
from bot.show.views import View

_MOST_NAMES = 3  # of models and targets in the line of a comment


def folded_line(facts: Facts, view: View) -> Sentence:
    """Return ``18 fewer regions are folded: 68 % → 61 % in `m` on every target``.

    The text is empty if nothing changed.
    """
    changed = [build for build in deduplicated_builds(facts) if build.is_changed]
    directions = by(changed, _direction)
    parts = []
    for sign in (-1, 1, 0):
        if sign in directions:
            parts.append(_direction_words(facts, directions[sign], view))
    if not parts:
        return Sentence((), name="folded")
    text = phrase(strong("Deduplication:"), " ", joined(parts, "; "), ".")
    return Sentence(text, name="folded")


def _direction(build: DeduplicatedBuild) -> int:
    """Return -1 if head folds fewer regions than base, 1 for more, 0 for as many."""
    _, before, _, after = build.counts or (0, 0, 0, 0)
    return (after > before) - (after < before)


def _direction_words(
    facts: Facts, builds: Sequence[DeduplicatedBuild], view: View
) -> Phrase:
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
    base, head = texts_of_shares(
        [share_of(before, regions_before), share_of(after, regions_after)]
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
