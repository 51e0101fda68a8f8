"""Which flags a target has for one compiler, where the configuration gives it others in ranges of releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.core.rules.spec import release_in
from bot.core.values.planned import PlannedCell
from bot.core.values.snapshot import CompilerInfo


def for_release(compiler: CompilerInfo, cells: Sequence[PlannedCell]) -> tuple[PlannedCell, ...]:
    """The cells, their targets with the flags of this compiler's release; without ranges as they are."""
    if not any(cell.target.releases for cell in cells):
        return tuple(cells)
    try:  # what it leads to: `3.14.0` of `3.14.0rc20261101`, as a range from 3.14 on means those, too
        release = Version(release_in(compiler.spec) or compiler.version).base_version
    except InvalidVersion:  # a build may call itself anything
        release = ""
    result = []
    for cell in cells:
        ranges = cell.target.releases
        fitting = (flags for range_, flags in ranges if release and SpecifierSet(range_).contains(release))
        target = replace(cell.target, flags=next(fitting, cell.target.flags), releases=())
        result.append(replace(cell, target=target))
    return tuple(result)
