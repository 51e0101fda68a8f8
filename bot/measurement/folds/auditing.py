"""From a request to its fold audit."""

from __future__ import annotations

from bot.core.folds.fold_options import FoldOptions
from bot.core.folds.fold_values import FoldAudit
from bot.inputs.config import Config
from bot.measurement.prepare import Request, Show
from bot.system.processes import Cancel


def audited(request: Request, config: Config, options: FoldOptions, show: Show, cancel: Cancel) -> FoldAudit:
    """Fold every cell that the request selects; `request.specs["head"]` names the compiler."""
    raise NotImplementedError
