"""Prove which MLIR pass carries bytes.

Base's passes run up to a cut, head's from there on, and bytes are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.core.ladder import MLIR, PHASE_WORDS, Ladder, attribution
from bot.core.pass_cuts import cuts_of
from bot.core.pass_proof import PassCut, PassProof, carries, untried
from bot.core.proof import PARTLY, PROVED
from bot.core.snapshot import Failure
from bot.readers.printed_ir import Translation
from bot.study.cross_feed import CrossFeed, Feed, Piece
from bot.study.ladder import LadderSide
from bot.study.splicing import Splicer, printed_side, registered
from bot.system.files import temporary_directory

MOST_COMPILES = 48
"""Compiles of one experiment.

A cut takes two, and one pass among a hundred is found with seven or eight cuts.
"""
LEAST_COMPILES = 16
_PRINTING = 2  # compiles that print the passes
# compiles of the other order: at both ends of the range and of the pipeline
_RESERVED = 8
_NO_OPTIONS = (
    "{} prints its passes without their options, so its remaining passes cannot run"
    " (needs 3.12.0 or newer)"
)
_OTHER_ORDER = "with head's IR in base's passes, this range carries {:,} B of {:,} B"
_UNCONFIRMED = "the other order, head's IR in base's passes, could not be measured"
_ALL_MISSING = 1_000_000
_SEVERAL = "several passes carry the bytes"


def prove_pass(
    base: LadderSide,
    head: LadderSide,
    ladder: Ladder,
    most_compiles: int = MOST_COMPILES,
) -> PassProof:
    """Return the smallest range of passes that carries most of a ladder's MLIR part.

    If base can run the rest of its passes, too, the result is proved only if both
    orders agree.

    Args:
        most_compiles: the limit of compiles of this executable, at least
            LEAST_COMPILES.
    """
    moved_bytes = attribution(ladder)[MLIR]
    if moved_bytes is None:
        return untried(f"the bytes of {PHASE_WORDS[MLIR]} are not known")
    if not moved_bytes:
        return untried(f"{PHASE_WORDS[MLIR]} carries no bytes", moved_bytes)
    if most_compiles < LEAST_COMPILES:
        return untried("compile budget used up", moved_bytes)
    with (
        temporary_directory(
            "base-passes-", base.setup.session.scratch
        ) as base_directory,
        temporary_directory(
            "head-passes-", head.setup.session.scratch
        ) as head_directory,
    ):
        head_side = _splicer(head, head_directory)
        if isinstance(head_side, Failure):
            return untried(f"head: {head_side.first_line}", moved_bytes, compiles=1)
        if not head_side.translation.has_options:
            reason = _NO_OPTIONS.format(head.setup.toolchain.info.version)
            return untried(reason, moved_bytes, compiles=1)
        base_side = _splicer(base, base_directory)
        if isinstance(base_side, Failure):
            return untried(
                f"base: {base_side.first_line}", moved_bytes, compiles=_PRINTING
            )
        return _Experiment(base_side, head_side, ladder).proof(
            moved_bytes, most_compiles
        )


def _splicer(side: LadderSide, directory: Path) -> Splicer | Failure:
    """Return the splicer that runs a side's passes from a cut on."""
    translation = printed_side(side, directory)
    if isinstance(translation, Failure):
        return translation
    registered_passes = registered(side.setup)
    if isinstance(registered_passes, Failure):
        return registered_passes
    return Splicer(side, translation, registered_passes)


@dataclass(frozen=True, slots=True)
class Found:
    """The piece that carries most bytes."""

    piece: Piece
    is_smallest: bool  # False if the budget ended before it was divided further


@dataclass(frozen=True, slots=True)
class _Share:
    """The bytes that a range carries in one order."""

    restored_bytes: int
    moved_bytes: int

    @property
    def is_whole(self) -> bool:
        """Return whether it is the whole change, up to what a proof allows."""
        return bool(self.moved_bytes) and carries(self.restored_bytes, self.moved_bytes)

    @property
    def missing_permille(self) -> int:
        """Return by how much it is less, or more, than the whole, in permille."""
        if not self.moved_bytes:
            return _ALL_MISSING
        return (
            1000 * abs(self.moved_bytes - self.restored_bytes) // abs(self.moved_bytes)
        )


def _share(feed: CrossFeed, piece: Piece) -> _Share | None:
    restored_bytes = feed.carried(piece)
    moved_bytes = feed.carried(feed.whole)
    if restored_bytes is None or moved_bytes is None:
        return None
    return _Share(restored_bytes, moved_bytes)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A range that carries most in one order, with what it carries in both."""

    found: Found
    # base's IR in head's passes; None if it could not be measured
    forward: _Share | None
    # head's IR in base's passes; None if it could not be measured
    backward: _Share | None
    needs_backward: bool  # whether base can run the rest of its passes

    @property
    def missing_permille(self) -> int:
        """Return by how much its bytes differ from the whole, in permille.

        If there are two orders, the larger difference counts.
        """
        shares = [self.forward]
        if self.needs_backward:
            shares.append(self.backward)
        missing = []
        for share in shares:
            if share is None:
                missing.append(_ALL_MISSING)
            else:
                missing.append(share.missing_permille)
        return max(missing)

    @property
    def is_proved(self) -> bool:
        """Return whether it carries the whole change in each measured order."""
        return self.forward is not None and not self.why

    @property
    def why(self) -> str:
        """Return why it is not proved; empty if it is."""
        whys = []
        if self.forward is not None and not self.forward.is_whole:
            whys.append(_SEVERAL)
        if self.needs_backward and self.backward is None:
            whys.append(_UNCONFIRMED)
        if self.backward is not None and not self.backward.is_whole:
            sizes = (abs(self.backward.restored_bytes), abs(self.backward.moved_bytes))
            whys.append(_OTHER_ORDER.format(*sizes))
        return "; ".join(whys)


class _Experiment:
    """Both orders of one pair of sides.

    The search runs in one order, and the other one confirms its result. Swapped sides
    are searched in the same order, so that they never have another proved pass.
    """

    def __init__(self, base: Splicer, head: Splicer, ladder: Ladder) -> None:
        self._base, self._head = base, head
        self._cuts = cuts_of(_steps(base.translation), _steps(head.translation))
        self._forward = CrossFeed(
            first=base, second=head, cuts=self._cuts, climb=ladder.climb
        )
        self._backward: CrossFeed | None = None
        if base.translation.has_options:
            swapped = [cut.swapped for cut in self._cuts]
            self._backward = CrossFeed(
                first=head, second=base, cuts=swapped, climb=ladder.back
            )

    def proof(self, moved_bytes: int, most_compiles: int) -> PassProof:
        """Search the range in one order, and try the result in the other.

        If they disagree, search in the other order, too.
        """
        candidates = list[_Candidate]()
        for feed in self._orders():
            found_pass = largest_piece(
                feed, lambda: self._compiles < most_compiles - _RESERVED
            )
            if found_pass is not None:
                candidates.append(self._candidate(found_pass))
            if candidates and candidates[-1].is_proved:
                break
        if not candidates:
            return untried(
                f"no cut is usable: {self._reason()}", moved_bytes, self._compiles
            )
        best = min(candidates, key=lambda candidate: candidate.missing_permille)
        if best.forward is None:
            reason = f"base's IR does not compile in head's passes: {self._reason()}"
            return untried(reason, moved_bytes, self._compiles)
        piece = best.found.piece
        forward = best.forward
        backward = best.backward
        start = self._cuts[piece.start]
        end = self._cuts[piece.end]
        return PassProof(
            status=PROVED if best.is_proved else PARTLY,
            why=best.why,
            base_passes=_names(self._base.translation, start.base, end.base),
            head_passes=_names(self._head.translation, start.head, end.head),
            moved_bytes=moved_bytes,
            restored_bytes=forward.restored_bytes,
            reverse_moved_bytes=None if backward is None else -backward.moved_bytes,
            reverse_restored_bytes=(
                None if backward is None else -backward.restored_bytes
            ),
            cuts=tuple(self._measured_cuts()),
            range_start=piece.start,
            range_end=piece.end,
            is_smallest=best.found.is_smallest,
            compiles=self._compiles,
        )

    def _candidate(self, found_pass: Found) -> _Candidate:
        forward = _share(self._forward, found_pass.piece)
        if self._backward is None:
            return _Candidate(found_pass, forward, None, needs_backward=False)
        backward = _share(self._backward, found_pass.piece)
        return _Candidate(found_pass, forward, backward, needs_backward=True)

    def _orders(self) -> list[CrossFeed]:
        """Return the orders; first the one that starts from the older side's IR.

        Newer compilers read older IR.
        """
        if self._backward is None:
            return [self._forward]
        if _age(self._head.side) < _age(self._base.side):
            return [self._backward, self._forward]
        return [self._forward, self._backward]

    @property
    def _compiles(self) -> int:
        backward = self._backward.compiles if self._backward else 0
        return _PRINTING + self._forward.compiles + backward

    def _reason(self) -> str:
        reasons = list(self._forward.reasons)
        if self._backward:
            reasons += self._backward.reasons
        if reasons:
            return reasons[-1]
        return "both sides have one pass alone"

    def _measured_cuts(self) -> list[PassCut]:
        cuts = []
        for place, code_bytes in self._forward.measured.items():
            count = self._cuts[place].head
            if count:
                after = self._head.translation.passes[count - 1].name
            else:
                after = ""
            cuts.append(PassCut(place, code_bytes, after))
        return cuts


def _steps(translation: Translation) -> list[tuple[str, str]]:
    return [printed.step for printed in translation.passes]


def _names(translation: Translation, start: int, end: int) -> tuple[str, ...]:
    return tuple(printed.name for printed in translation.passes[start:end])


def _age(side: LadderSide) -> tuple[Sequence[int], Sequence[str], str]:
    """Return a key that orders two sides in the same way, whichever is base."""
    numbers = re.findall(r"\d+", side.setup.toolchain.info.version)
    version = list(map(int, numbers))
    return version, list(side.argv), side.row.code or ""


def largest_piece(feed: Feed, has_budget: Callable[[], bool]) -> Found | None:
    """Divide the largest piece again and again; None if no cut is usable."""
    moved_bytes = feed.carried(feed.whole)
    if not moved_bytes:
        return None
    pieces = [feed.whole]
    while True:
        # the first of equally large ones
        piece = max(
            sorted(pieces),
            key=lambda piece: _in_direction(feed.carried(piece), moved_bytes),
        )
        place = _dividing_place(feed, piece, has_budget)
        if place is None:
            is_smallest = has_budget() or piece.end - piece.start == 1
            if len(pieces) > 1:
                return Found(piece, is_smallest)
            return None
        pieces.remove(piece)
        pieces += [Piece(piece.start, place), Piece(place, piece.end)]


def _in_direction(part_bytes: int | None, moved_bytes: int) -> int:
    """Return how much of the change a part carries."""
    if part_bytes is None:
        return 0
    if moved_bytes > 0:
        return part_bytes
    return -part_bytes


def _dividing_place(
    feed: Feed, piece: Piece, has_budget: Callable[[], bool]
) -> int | None:
    """Return the usable cut nearest to the middle.

    Return None if there is none, or if the budget is used up.
    """
    middle_twice = piece.start + piece.end
    inner = range(piece.start + 1, piece.end)
    for place in sorted(
        inner, key=lambda place: (abs(2 * place - middle_twice), place)
    ):
        if not has_budget():
            return None
        if feed.bytes_at(place) is not None:
            return place
    return None
