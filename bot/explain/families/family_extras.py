"""Executables that have one operation more than another.

The sum of the hashes of an executable's operations without one of them is looked up among the sums of all others, so
that no pairs are compared; what is found that way is then checked edge by edge.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bot.explain.families.family_graph import Edge, children, edges, is_named, is_scalar, spoken
from bot.explain.families.family_groups import FamilyDraft, Member
from bot.explain.families.family_views import line
from bot.explain.texts import Operation

_MASK = (1 << 64) - 1
_CANDIDATES = 4
_ATTEMPTS = 32
"""Checks per executable: each costs as much as it has edges."""
_PLUMBING = (".load", ".empty", "linalg.generic", "func.func", "linalg.fill", "tie_shape", ".ordinal")


@dataclass(frozen=True, slots=True)
class _Counted:
    """One executable's operations as hashes: operation index → hash of it and of what is inside; the sum of all."""

    member: Member
    units: dict[int, int]
    total: int


class _Hashes:
    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        """The same for the same text, whatever the process."""
        digest = self._known.get(text)
        if digest is None:
            digest = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
            self._known[text] = digest
        return digest

    def count(self, member: Member) -> _Counted:
        units: dict[int, int] = {}
        for at, operation in enumerate(member.text.operations):
            if is_scalar(operation) or is_named(operation):
                units[at] = self.of(operation.template.text)
        total = sum(units.values()) & _MASK
        top = [at for at, one in enumerate(member.text.operations) if one.parent == 0 and one.block_arguments]
        whole = {at: units.get(at, 0) + sum(units.get(inner, 0) for inner in children(member.text, at)) for at in top}
        return _Counted(member, {**units, **{at: total & _MASK for at, total in whole.items() if total}}, total)


class _Edges:
    def __init__(self) -> None:
        self._known: dict[int, list[tuple[Edge, int, int]]] = {}

    def of(self, member: Member) -> list[tuple[Edge, int, int]]:
        """With the indices of the operations at both ends."""
        if member.at not in self._known:
            self._known[member.at] = list(edges(member.text))
        return self._known[member.at]

    def explains(self, larger: Member, at: int, smaller: Member) -> bool:
        """Whether `larger` without the operation at `at`, its users fed by one of its operands, is `smaller`."""
        unit = {at, *children(larger.text, at)}
        mine, theirs = self.of(larger), Counter(edge for edge, _, _ in self.of(smaller))
        rest = Counter(edge for edge, origin, user in mine if origin not in unit and user not in unit)
        fed = {edge[0] for edge, _, user in mine if user == at}
        left = [edge for edge, origin, user in mine if origin == at and user not in unit]
        bridged = (rest + Counter((source, *edge[1:]) for edge in left) for source in fed)
        return any(not theirs - whole and _is_plumbing(whole - theirs) for whole in bridged)


def _is_plumbing(lost: Counter[Edge]) -> bool:
    return all(edge[1].split("[")[0].endswith(_PLUMBING) for edge in lost)


def _pairs(counted: Sequence[_Counted]) -> Iterator[tuple[Member, Member, Operation]]:
    """Smaller executable, larger one, the operation that the larger one has more."""
    sums: defaultdict[int, list[Member]] = defaultdict(list)
    for one in counted:
        sums[one.total].append(one.member)
    known = _Edges()
    for one in counted:
        possible = (
            (at, smaller)
            for at, unit in one.units.items()
            for smaller in sums.get((one.total - unit) & _MASK, ())[:_CANDIDATES]
        )
        for at, smaller in islice(possible, _ATTEMPTS):
            if smaller is not one.member and known.explains(one.member, at, smaller):
                yield smaller, one.member, one.member.text.operations[at]


def extra_operations(members: Sequence[Member]) -> list[FamilyDraft]:
    """Families of one executable and all those that have one operation more."""
    hashes = _Hashes()
    larger: defaultdict[Member, dict[Member, str]] = defaultdict(dict)
    for smaller, one, operation in _pairs([hashes.count(member) for member in members]):
        said = line(f"@{one.name} has one more", [spoken(one.text, operation)]).replace("more: ", "more ", 1)
        larger[smaller].setdefault(one, said)
    families: list[FamilyDraft] = []
    taken: set[Member] = set()
    for smaller, others in sorted(larger.items(), key=lambda item: (-len(item[1]), item[0].at)):
        free = {one: said for one, said in others.items() if one not in taken}
        if smaller not in taken and free:
            taken |= {smaller, *free}
            families.append(FamilyDraft(sorted([smaller, *free], key=lambda one: one.at), list(free.values())))
    return families
