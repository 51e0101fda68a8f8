"""Choose the changed dispatches that get a ladder, within a budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_field

from bot.core.explanation import DispatchDelta, Explanation, RootCause, moved_bytes
from bot.core.planned import SIDES
from bot.core.snapshot import CellKey
from bot.core.work import COMPILES_OF_LADDER, WorkLeft, ladder_work
from bot.explain.clusters import changed_knobs
from bot.explain.sameness import configured_differently
from bot.study.changed_dispatches import Moved
from bot.study.proving import LEAST_COMPILES, MOST_COMPILES

# so many of the largest dispatches are measured in both orders, if the work allows it
BOTH_ORDERS = 10
# A root cause with this share of the total change gets an example with a ladder first
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Wanted:
    """One ladder that is asked for."""

    key: CellKey
    delta: DispatchDelta
    both_orders: bool
    # whether head is also compiled with base's configuration, value by value
    with_proof: bool
    # why there can be one order alone; empty if there can be both
    one_order_why: str = ""

    @property
    def place(self) -> tuple[CellKey, str]:
        """Return the build and the dispatch's name on head."""
        return self.key, self.delta.name


def no_ladder(delta: DispatchDelta, sides_here: Collection[str]) -> str:
    """Return why a dispatch can have no ladder; empty if it can.

    Args:
        sides_here: the sides whose compilers are here.
    """
    if delta.base is None or delta.head is None:
        return "one side alone has it"
    if delta.base.code is None or delta.head.code is None:
        return "the digest of its code is not known"
    missing = [side for side in SIDES if side not in sides_here]
    if missing:
        return f"the compiler of {' and '.join(missing)} is not here"
    return ""


def worth_laddering(
    explanations: Mapping[CellKey, Explanation],
    costs: LadderCosts,
    roots: Sequence[RootCause] = (),
    failing: Collection[CellKey] = (),
) -> list[Moved]:
    """Return the pairs with other code in the order in which they are measured.

    One example of each root cause in a failing build comes first. Then come one example
    of each other root cause, and all others. The first two groups have only root causes
    with at least 1 % of the total change. In each group, ladders with more bytes for
    their work come first. An example counts with the bytes of its whole root cause.

    Args:
        failing: the builds that fail the check.
    """
    of_roots = {}
    urgent = set[tuple[CellKey, str]]()
    for root in roots:
        place = root.example.key, root.example.dispatch
        if (root.share or 0) >= _LEAST_SHARE:
            of_roots[place] = root.total.absolute_bytes
            if not set(root.cells).isdisjoint(failing):
                urgent.add(place)
    moved = []
    for key, explanation in explanations.items():
        for delta in explanation.dispatches:
            if moved_bytes(delta) and not no_ladder(delta, SIDES):
                moved.append((key, delta))

    def rank(pair: Moved) -> tuple[bool, bool, int, CellKey, str]:
        key, delta = pair
        place = key, delta.name
        explained_bytes = of_roots.get(place, abs(moved_bytes(delta) or 0))
        return (
            place not in urgent,
            place not in of_roots,
            -explained_bytes * 1000 // costs.ladder(pair),
            key,
            delta.name,
        )

    return sorted(moved, key=rank)


def within_work(
    moved: Sequence[Moved], costs: LadderCosts, work: int | None
) -> list[Wanted]:
    """Return the ladders that the work covers, in their order.

    A ladder that does not fit is skipped. A dispatch whose configuration differs also
    gets the proof of it, if the work covers that. The rest of the work is spent on the
    other order of the largest ladders. Work counts whether or not a ladder is known
    already, so that the same snapshots always get the same ladders.
    """
    budget = WorkLeft(work)
    chosen = list[Wanted]()
    for pair in moved:
        key, delta = pair
        if not budget.take(costs.ladder(pair)):
            continue
        with_proof = configured_differently(delta) and budget.take(costs.proof(pair))
        chosen.append(Wanted(key, delta, both_orders=False, with_proof=with_proof))
    largest = sorted(chosen, key=lambda ladder: -abs(moved_bytes(ladder.delta) or 0))
    twice = {
        ladder.place
        for ladder in largest[:BOTH_ORDERS]
        if budget.take(costs.other_order((ladder.key, ladder.delta)))
    }
    return [
        replace_field(ladder, both_orders=ladder.place in twice) for ladder in chosen
    ]


class LadderCosts:
    """The work of ladders and proofs; `backends`: target → its backend."""

    def __init__(self, backends: Mapping[str, str]) -> None:
        self._backends = backends

    def ladder(self, moved: Moved, *, both_orders: bool = False) -> int:
        """Return the work of the ladder of one dispatch."""
        key, delta = moved
        if delta.base is None or delta.head is None:
            return 0
        backend = self._backends.get(key.target, "")
        return ladder_work(delta.base, delta.head, backend, both_orders=both_orders)

    def other_order(self, moved: Moved) -> int:
        """Return the additional work of the second order."""
        return self.ladder(moved, both_orders=True) - self.ladder(moved)

    def proof(self, moved: Moved) -> int:
        """Return the most work that a proof of the configuration may take."""
        knobs = changed_knobs(moved[1]) or ()
        compiles = min(MOST_COMPILES, LEAST_COMPILES + len(knobs))
        return self.ladder(moved) * compiles // COMPILES_OF_LADDER
