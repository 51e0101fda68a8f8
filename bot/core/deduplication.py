"""Compare the dispatch regions before deduplication with the executables after it."""

from __future__ import annotations

from bot.core.program import Family
from bot.core.record import Small, Value, difference, ends
from bot.core.snapshot import Cell

REGIONS = "dispatch_regions"
EXECUTABLES = "executables"
_FAMILIES = "families"
MORE_EXECUTABLES = "the program has more executables than dispatch regions"
VARIES = "the build is non-deterministic"
NO_CODE = "the code size of a member is unknown"


class Deduplication(Small, frozen=True):
    """The effect of deduplication on one build of one side."""

    regions: Value
    executables: Value
    reason: str = ""  # why `folded` is None

    @property
    def folded(self) -> Value:
        """Return how many regions deduplication folded; None comes with a reason."""
        if self.reason:
            return None
        return difference(self.executables, self.regions)


class NearDuplicates(Small, frozen=True):
    """The upper bound of what merging near-duplicate executables could save."""

    # members of all families, without one of each family; None if the families are not
    # known
    executables: int | None
    # code of all members but the largest of each family: an upper bound; None if it
    # is not known
    code_bytes: int | None
    reason: str = ""  # why a value is None


def deduplication_of(
    cell: Cell | None, regions: Value, executables: Value
) -> Deduplication:
    """Return the effect of deduplication on a build.

    Args:
        cell: the build on one side; None if the side does not have it.
        regions: its dispatch regions, as they are shown.
        executables: its executables, as they are shown.
    """
    if cell is None or not cell.measured:
        return Deduplication(regions=None, executables=None, reason=_unmeasured(cell))
    reason = ""
    for metric, value in ((REGIONS, regions), (EXECUTABLES, executables)):
        if value is None and not reason:
            reason = cell.reasons.get(metric, "not in the snapshot")
    if regions is not None and executables is not None:
        fewest_executables, most_executables = ends(executables)
        fewest_regions, most_regions = ends(regions)
        if fewest_executables > most_regions:
            reason = MORE_EXECUTABLES
        elif most_executables > fewest_regions:
            reason = VARIES
    return Deduplication(regions=regions, executables=executables, reason=reason)


def near_duplicates_of(cell: Cell | None, *, varies: bool) -> NearDuplicates:
    """Return the near-duplicates of a build.

    Args:
        cell: the build on one side; None if the side does not have it.
        varies: whether the build is non-deterministic: one compile's code is not that
            of all.
    """
    if cell is None or not cell.measured:
        return NearDuplicates(None, None, _unmeasured(cell))
    unknown = _families_unknown(cell)
    if unknown:
        return NearDuplicates(None, None, unknown)
    if not cell.families:
        return NearDuplicates(0, 0)
    members = sum(len(family.members) - 1 for family in cell.families)
    if varies or cell.others:
        return NearDuplicates(members, None, VARIES)
    sizes = code_sizes(cell)
    bounds = [_bound_bytes(family, sizes) for family in cell.families]
    sizes_known = [size for size in bounds if size is not None]
    if len(sizes_known) != len(bounds):
        return NearDuplicates(members, None, NO_CODE)
    return NearDuplicates(members, sum(sizes_known))


def _unmeasured(cell: Cell | None) -> str:
    if cell is None:
        return "not measured on this side"
    return cell.reason or f"the build is {cell.status}"


def _families_unknown(cell: Cell) -> str:
    """Return why the families of a measured build are not known; empty if they are."""
    if reason := cell.reasons.get(_FAMILIES, ""):
        return reason
    if cell.program or cell.families:
        return ""
    return "the program's IR could not be read"


def code_sizes(cell: Cell) -> dict[str, int | None]:
    """Return executable → code bytes of its entry points; None if one is not known."""
    sizes: dict[str, int | None] = {}
    for dispatch in cell.dispatches:
        before = sizes.get(dispatch.executable, 0)
        if before is None or dispatch.code_bytes is None:
            sizes[dispatch.executable] = None
        else:
            sizes[dispatch.executable] = before + dispatch.code_bytes
    return sizes


def _bound_bytes(family: Family, sizes: dict[str, int | None]) -> int | None:
    """Return the code of all members except the largest; None if one is not known."""
    members = [sizes.get(name) for name in family.members]
    sizes_known = [size for size in members if size is not None]
    if len(sizes_known) != len(members):
        return None
    return sum(sizes_known) - max(sizes_known)
