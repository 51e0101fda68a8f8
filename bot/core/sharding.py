"""Divide a plan's cells among runners, so that all end at about the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from bot.core.json_text import decoded
from bot.core.planned import PlannedCell
from bot.core.record import Count, Record
from bot.core.snapshot import NOT_SHIPPED, Cell, CellKey, Snapshot
from bot.core.spec import MOVING
from bot.errors import InputError, UsageError

# cell → what it cost to compile the last time, in ms of CPU time
Costs = Mapping[CellKey, int]


def known_costs(cells: Iterable[Cell]) -> dict[CellKey, int]:
    """Return the last known cost of each cell of a snapshot, in ms of CPU time."""
    costs = {}
    for cell in cells:
        cost = cell.value("compile_cpu_ms")
        if cost is not None:
            costs[cell.key] = cost
    return costs


def expected(cells: Sequence[PlannedCell], last_costs: Costs) -> dict[CellKey, float]:
    """Return the expected cost of every cell.

    The cost of a cell that was never measured follows from its size, on the scale of
    the others.
    """
    measured = [cell for cell in cells if cell.key in last_costs]
    guessed = sum(cell.cost for cell in measured)
    scale = 1.0
    if guessed:
        scale = sum(last_costs[cell.key] for cell in measured) / guessed
    costs = dict[CellKey, float]()
    for cell in cells:
        costs[cell.key] = float(last_costs.get(cell.key, cell.cost * scale))
    return costs


def deal(
    cells: Sequence[PlannedCell], count: int, last_costs: Costs | None = None
) -> tuple[tuple[PlannedCell, ...], ...]:
    """Return the cells of each of `count` shards.

    Whole models are dealt out, heaviest first, each to the lightest shard: a model is
    read and imported once. Only a model that alone is more than a shard's fair part is
    dealt out cell by cell.
    """
    costs = expected(cells, last_costs or {})
    fair = sum(costs.values()) / count
    models: dict[str, list[CellKey]] = {}
    for cell in cells:
        models.setdefault(cell.model.name, []).append(cell.key)

    def cost_of(keys: Sequence[CellKey]) -> float:
        return sum(costs[key] for key in keys)

    hands: list[list[CellKey]] = []
    for keys in models.values():
        if cost_of(keys) > fair:
            hands += [[key] for key in keys]
        else:
            hands.append(keys)
    loads = [0.0] * count
    shards: list[set[CellKey]] = [set() for _ in range(count)]
    for hand in sorted(hands, key=lambda keys: (-cost_of(keys), keys[0])):
        lightest = loads.index(min(loads))
        loads[lightest] += cost_of(hand)
        shards[lightest].update(hand)
    result = []
    for keys_of_shard in shards:
        result.append(tuple([cell for cell in cells if cell.key in keys_of_shard]))
    return tuple(result)


def shard(
    cells: Sequence[PlannedCell], index: int, count: int
) -> tuple[PlannedCell, ...]:
    """Return the cells that shard `index` (from 1) of `count` measures, by size."""
    if not 1 <= index <= count:
        raise UsageError(
            f"shard {index} of {count} does not exist",
            where="--shard",
            hint="use I/N with 1 <= I <= N",
        )
    return deal(cells, count)[index - 1]


_Moving = Annotated[str, msgspec.Meta(pattern=rf"\A({'|'.join(MOVING)})\Z")]
_Release = Annotated[str, msgspec.Meta(pattern=r"\A[0-9][0-9A-Za-z!.+]{0,60}\Z")]


class Part(Record, frozen=True, omit_defaults=True):
    """One runner's part of a plan."""

    # `I/N`
    shard: Annotated[str, msgspec.Meta(pattern=r"\A[1-9]\d{0,5}/[1-9]\d{0,5}\Z")]
    cells: Count
    # model → targets: each runner measures these, whatever costs it knows
    assigned: dict[str, list[str]]
    # `latest` or `nightly` → the release that it was for who planned, and is for all
    # runners
    releases: dict[_Moving, _Release] | None = None


class Matrix(Record, frozen=True):
    """GitHub's `strategy.matrix`."""

    include: list[Part]


def matrix(
    cells: Sequence[PlannedCell],
    count: int,
    last_costs: Costs | None = None,
    releases: Mapping[str, str] | None = None,
) -> Matrix:
    """Return the shards as GitHub's `strategy.matrix`."""
    parts = []
    for index, part in enumerate(deal(cells, count, last_costs), 1):
        names: dict[str, list[str]] = {}
        for cell in part:
            names.setdefault(cell.model.name, []).append(cell.target.name)
        if part:
            parts.append(
                Part(
                    shard=f"{index}/{count}",
                    cells=len(part),
                    assigned=names,
                    releases=dict(releases) if releases else None,
                )
            )
    return Matrix(parts)


def agreed(plan: str, where: str = "the plan") -> Mapping[str, str]:
    """Return the releases that `latest` and `nightly` are for all runners of a plan.

    It is empty if the plan names none.
    """
    releases = dict[str, str]()
    for part in _parts(plan, where):
        releases.update(part.releases or {})
    return releases


def _parts(plan: str, where: str) -> list[Part]:
    return decoded(
        plan,
        kind=Matrix,
        where=where,
        hint="give the output of `plan --shards N`",
        noun="plan",
    ).include


def dealt(
    cells: Sequence[PlannedCell], plan: str, where: str
) -> dict[str, tuple[PlannedCell, ...]]:
    """Return shard (`I/N`) → its part of the cells, in what `matrix` printed.

    Raises InputError for a plan of other cells: some would be measured by nobody.
    """
    planned = {cell.key: cell for cell in cells}
    parts = {row.shard: _keys_of(row) for row in _parts(plan, where)}
    named = set[CellKey]().union(*parts.values())
    if unmatched := named ^ planned.keys():
        message = (
            f"has {len(named)} builds, but {len(cells)} are planned here: {min(unmatched)}"
            " is not in both"
        )
        raise InputError(
            message,
            where=where,
            hint="plan and measure the same commit, with the same selectors",
        )
    by_runner = dict[str, tuple[PlannedCell, ...]]()
    for name, part in parts.items():
        by_runner[name] = tuple([planned[key] for key in sorted(part)])
    return by_runner


def _keys_of(part: Part) -> list[CellKey]:
    """Return the cells that a part assigns to its runner."""
    keys = list[CellKey]()
    for model, targets in part.assigned.items():
        keys += [CellKey(model, target) for target in targets]
    return keys


def assigned(
    cells: Sequence[PlannedCell], plan: str, index: int, count: int, where: str
) -> tuple[PlannedCell, ...]:
    """Return the part of shard `index` of `count` in the output of `matrix`.

    Raises InputError if the plan has another count of shards.
    """
    parts = dealt(cells, plan, where)
    counts = {int(name.partition("/")[2]) for name in parts}
    if counts != {count}:
        message = (
            f"has {', '.join(map(str, sorted(counts))) or 'no'} shards, and"
            f" {index}/{count} is not among them"
        )
        raise InputError(
            message, where=where, hint="measure the shards that the plan names"
        )
    return parts.get(f"{index}/{count}", ())


_HINT = "merge the shards of one run"


def merge_snapshots(parts: Sequence[tuple[str, Snapshot]]) -> Snapshot:
    """Return the snapshot of all parts' cells.

    Each part comes with the name to call it by in errors. Parts of one run have the
    same compiler, source and flags; anything else is refused, as are a model or target
    that two parts know differently, and a cell that two parts measured.
    """
    _require_one_run(parts)
    first = _first_part(parts)[1]
    cells: dict[CellKey, Cell] = {}
    for name, part in parts:
        for cell in part.cells:
            if cell.key in cells:
                raise InputError(
                    f"measured {cell.key} again",
                    where=name,
                    hint="merge every shard once",
                )
            cells[cell.key] = cell
    notes = set[str]()
    for _, part in parts:
        notes.update(part.notes)
    return replace(
        first,
        cells=tuple(cells[key] for key in sorted(cells)),
        targets=_united("targets", parts),
        models=_united("models", parts),
        notes=tuple(sorted(notes)),
    )


def _first_part(parts: Sequence[tuple[str, Snapshot]]) -> tuple[str, Snapshot]:
    """Return the first part that has cells, else the first of all."""
    for name, part in parts:
        if part.cells:
            return name, part
    return parts[0]


def _require_one_run(parts: Sequence[tuple[str, Snapshot]]) -> None:
    """Raise InputError for parts of different compilers, sources or flags.

    A shard without cells does not know the flags.
    """
    first_name, first = _first_part(parts)
    for name, part in parts:
        for field in ("compiler", "source", "flags"):
            if field == "flags" and not part.cells:
                continue
            if getattr(part, field) != getattr(first, field):
                raise InputError(
                    f"has a different {field} than {first_name}", where=name, hint=_HINT
                )


def _united(
    field: Literal["models", "targets"], parts: Sequence[tuple[str, Snapshot]]
) -> dict[str, str]:
    united: dict[str, str] = {}
    for name, part in parts:
        for key, value in getattr(part, field).items():
            if united.setdefault(key, value) != value:
                message = (
                    f"has a different {key!r} among its {field} than the parts before"
                )
                raise InputError(message, where=name, hint=_HINT)
    return united


def nothing_in_common(base: Snapshot, head: Snapshot) -> str:
    """Return the advice for snapshots of different suites.

    It is empty if both sides have a cell in common.
    """
    base_keys = base.by_key.keys()
    head_keys = head.by_key.keys()
    if not base_keys or not head_keys or base_keys & head_keys:
        return ""
    return (
        f"measure both sides with the same suite: base has {min(base_keys)} and others, head"
        f" {min(head_keys)} and others"
    )


def unmeasured_models(base: Snapshot, head: Snapshot) -> tuple[str, ...]:
    """Return one line for every model that has no measured build on either side.

    Most likely such a model does not parse.
    """
    cells = (*base.cells, *head.cells)
    measured = {cell.key.model for cell in cells if cell.measured}
    failed: dict[str, list[Cell]] = {}
    for cell in cells:
        if (
            cell.key.model not in measured
            and cell.failure
            and cell.status != "unsupported"
        ):
            failed.setdefault(cell.key.model, []).append(cell)
    return tuple([_on_no_target(model, failed[model]) for model in sorted(failed)])


def _on_no_target(model: str, cells: Sequence[Cell]) -> str:
    """Return the line of a model that fails everywhere.

    Where its cells differ, it names the target that it quotes.
    """
    verb = "is measured"
    lines = []
    for cell in cells:
        if cell.failure:
            lines.append(cell.failure.message.partition("\n")[0])
        if not cell.failure or cell.failure.stage not in (NOT_SHIPPED, "read"):
            verb = "compiles"
    if len(set(lines)) > 1:
        where = f"; on {cells[0].key.target}"
    else:
        where = ""
    return f"{model} {verb} on no target{where}: {lines[0]}"
