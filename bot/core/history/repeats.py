"""What was asked for twice: one point where both are the same, both where the compiler does not repeat itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bot.core.history.gaps import is_outcome
from bot.core.rules.spec import release_in
from bot.core.values.planned import LIFTED_LIMIT_FLAG
from bot.core.values.snapshot import Cell, CellKey, Snapshot

_COMMAND = re.compile(r"\biree-compile (.*?) -o ", re.DOTALL)
_NAMED = 3
SHORT = 10
"""Digits of a commit that names a point."""


@dataclass(frozen=True, slots=True)
class Found:
    """One release as it was asked for, and what came of it.

    Attributes:
        spec: as it was asked for, without directories.
        snapshot: None where there is none, with the reason in `reason`.
        repeats: other SPECs that gave the same.
    """

    name: str
    spec: str
    snapshot: Snapshot | None = None
    reason: str = ""
    repeats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def of_commit(sha: str, snapshot: Snapshot) -> Found:
    """A stored baseline: its name is the commit, and its SPEC the release that measured it."""
    compiler = snapshot.compiler
    return Found(sha[:SHORT], release_in(compiler.spec) or compiler.spec or compiler.version, snapshot)


def once(found: Iterable[Found]) -> tuple[Found, ...]:
    """Each compiler once: what a later one repeats of an earlier one is put to it.

    Where both asked the same compiler for the same cells and got other artifacts, both stay, and say so.
    """
    releases: list[Found] = []
    for one in found:
        at = next((at for at, other in enumerate(releases) if _is_repeat(other, one)), None)
        if at is None:
            releases.append(one)
        elif differing := _differing(releases[at], one):
            more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
            what = ", ".join(map(str, differing[:_NAMED])) + more
            note = f"the same compiler as {releases[at].name} gave something else for {what}: it does not repeat itself"
            releases.append(replace(one, notes=(*one.notes, note)))
        else:
            releases[at] = _joined(releases[at], one)
    return named_apart(releases)


def named_apart(found: Sequence[Found]) -> tuple[Found, ...]:
    """All with names of their own: `3.13.0` and `3.13.0 (2)`."""
    taken: set[str] = set()
    named = []
    for one in found:
        number, name = 1, one.name
        while name in taken:
            number += 1
            name = f"{one.name} ({number})"
        taken.add(name)
        named.append(replace(one, name=name))
    return tuple(named)


def _is_repeat(first: Found, second: Found) -> bool:
    """True for the same compiler, where nothing says that the two were asked for something else."""
    left, right = first.snapshot, second.snapshot
    if left is None or right is None:
        return left is right and first.spec == second.spec
    if not left.compiler.digest or left.compiler.digest != right.compiler.digest:
        return False
    models = left.models.keys() & right.models.keys()
    if any(left.models[name] != right.models[name] for name in models):
        return False
    return all(_options(one) == _options(other) for one, other in _pairs(left, right))


def _pairs(left: Snapshot, right: Snapshot) -> Iterable[tuple[Cell, Cell]]:
    cells = {cell.key: cell for cell in right.cells}
    return ((cell, cells[cell.key]) for cell in left.cells if cell.key in cells)


def _options(cell: Cell) -> str:
    """The options of its command, without what lifts the stack gate."""
    words = _COMMAND.search(cell.command)
    return words[1].replace(f" {LIFTED_LIMIT_FLAG}", "") if words else ""


def _differing(first: Found, second: Found) -> list[CellKey]:
    if first.snapshot is None or second.snapshot is None:
        return []
    pairs = _pairs(first.snapshot, second.snapshot)
    return [one.key for one, other in pairs if is_outcome(one) and is_outcome(other) and _result(one) != _result(other)]


def _result(cell: Cell) -> tuple[str, str | None]:
    return cell.status, cell.artifact_digest


def _joined(first: Found, second: Found) -> Found:
    """The cells of both; of two the first, unless only the second says something of the compiler."""
    repeats = (*first.repeats, second.spec, *second.repeats)
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    left, right = first.snapshot, second.snapshot
    if left is None or right is None:
        return replace(first, repeats=repeats, notes=notes)
    cells = {cell.key: cell for cell in right.cells}
    cells |= {cell.key: cell for cell in left.cells if cell.key not in cells or is_outcome(cell)}
    united = replace(
        left,
        cells=tuple(cells[key] for key in sorted(cells)),
        models={**right.models, **left.models},
        targets={**right.targets, **left.targets},
        only={**right.only, **left.only},
    )
    return replace(first, snapshot=united, repeats=repeats, notes=notes)
