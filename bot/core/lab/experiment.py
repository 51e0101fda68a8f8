"""An experiment as it is defined: one question, variants of flags, compiler or models, and what is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.core.constraint import Constraint
from bot.core.metrics import METRIC_BY_ID, Metric
from bot.core.values.planned import Target

FOLDED_AWAY = "folded_away"
"""A column that is no number of a cell: the share of the dispatch regions that no executable is left of."""

BEFORE_FUSION = Metric(
    "linalg_ops_before",
    "linalg operations before fusion",
    "count",
    "linalg operations after global optimization",
)
"""A number that no rule judges: the model has it, not what the compiler made of it."""
COLUMN_BY_ID = {**METRIC_BY_ID, BEFORE_FUSION.id: BEFORE_FUSION}


@dataclass(frozen=True, slots=True)
class Variant:
    """One side of an experiment.

    Attributes:
        flags: of its cells, behind all others.
        compiler: its SPEC; None for the experiment's own.
        files: row → the path of the model that stands there; empty where the models are the experiment's.
        shapes: what is said of the dynamic dimensions of its models; None where nothing is.
        folded: True where its executables are folded as `fold` does it.
        targets: glob of targets → flags of theirs; None for all targets, without flags of their own.
        at: where it stands on the experiment's axis; None without one.
    """

    name: str
    flags: tuple[str, ...] = ()
    compiler: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    shapes: Constraint | None = None
    folded: bool = False
    targets: Mapping[str, tuple[str, ...]] | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is asked.

    Attributes:
        columns: of COLUMN_BY_ID, or FOLDED_AWAY, in the order in which they are shown.
        variants: the first one that has an artifact on a target is what the others are compared with there.
        models, targets: globs of those of the configuration; empty: all.
        own_targets: in place of the configuration's; empty where these are meant.
        axis: what the variants' `at` counts; empty without.
    """

    name: str
    question: str
    columns: tuple[str, ...]
    variants: tuple[Variant, ...]
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    own_targets: tuple[Target, ...] = ()
    run: bool = False
    axis: str = ""
