"""Choose the flags of a target for one compiler.

A configuration may give a target other flags in ranges of releases.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.core.planned import PlannedCell
from bot.core.snapshot import CompilerInfo
from bot.core.spec import release_in


def for_release(
    compiler: CompilerInfo, cells: Sequence[PlannedCell]
) -> tuple[PlannedCell, ...]:
    """Return the cells with the flags of this compiler's release.

    Without ranges the targets stay as they are.
    """
    if not any(cell.target.releases for cell in cells):
        return tuple(cells)
    # what it leads to: `3.14.0` of `3.14.0rc20261101`, as a range from 3.14 on means
    # those, too
    try:
        release = Version(release_in(compiler.spec) or compiler.version).base_version
    except InvalidVersion:  # a build may call itself anything
        release = ""
    result = []
    for cell in cells:
        flags = cell.target.flags
        for range_, flags_of_range in cell.target.releases:
            if release and SpecifierSet(range_).contains(release):
                flags = flags_of_range
                break
        target = replace(cell.target, flags=flags, releases=())
        result.append(replace(cell, target=target))
    return tuple(result)
