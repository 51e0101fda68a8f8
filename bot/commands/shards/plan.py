"""`plan`: the matrix of several runners."""

from __future__ import annotations

from pathlib import Path

from bot.config.configuration import load_config
from bot.core.rules.sharding import Matrix, known_costs, matrix
from bot.measurement.prepare import Request, load_snapshot, planned, repository_at
from bot.system.processes import Cancel


def plan_shards(request: Request, shards: int, costs: Path | None, cancel: Cancel) -> Matrix:
    """The matrix of `shards` runners, dealt out by the costs of an earlier snapshot where there is one."""
    cells = planned(request, load_config(request.config), repository_at(request.config, cancel)).cells
    return matrix(cells, shards, known_costs(load_snapshot(costs).cells) if costs else None)
