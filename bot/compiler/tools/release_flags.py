"""Which flags a target has for one compiler, where the configuration gives it others in ranges of releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.core.rules.spec import release_in
from bot.core.values.planned import PlannedCell, Target
from bot.core.values.snapshot import CompilerInfo


def for_release(compiler: CompilerInfo, cells: Sequence[PlannedCell]) -> tuple[PlannedCell, ...]:
    """The cells, their targets with the flags of this compiler's release; without ranges as they are."""
    if not any(cell.target.releases for cell in cells):
        return tuple(cells)
    release = _release(compiler)
    return tuple(replace(cell, target=_of_release(cell.target, release)) for cell in cells)


def _release(compiler: CompilerInfo) -> str | None:
    """What it leads to: `3.14.0` of `3.14.0rc20261101`, as a range from 3.14 on means those, too."""
    try:
        return Version(release_in(compiler.spec) or compiler.version).base_version
    except InvalidVersion:  # a build may call itself anything
        return None


def _of_release(target: Target, release: str | None) -> Target:
    found = (flags for range_, flags in target.releases if release and SpecifierSet(range_).contains(release))
    return replace(target, flags=next(found, target.flags), releases=())
