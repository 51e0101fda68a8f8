"""What a fold audit is asked for beside models, targets and flags."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoldOptions:
    """How folds are judged.

    Attributes:
        max_slowdown: the price that is allowed (0.01 is 1 %); None where every fold with gain is kept.
        run: False where nothing is executed: outputs and price are then not known.
    """

    max_slowdown: float | None = None
    run: bool = True
