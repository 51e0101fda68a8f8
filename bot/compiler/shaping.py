"""A model whose dynamic dimensions are constrained, as a model of its own.

`shape_worker` makes it, beside the bindings of the compiler that is to compile it; its answers are checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from bot.compiler.tools.bindings import Bindings
from bot.compiler.tools.toolchain import Toolchain
from bot.core.codec.json_text import decoded
from bot.core.constraint import Constraint
from bot.core.record import Count, Record
from bot.core.values.snapshot import Failure
from bot.errors import InputError
from bot.system.files import require_bounded
from bot.system.processes import Cancel

SHAPE_WORKER = Path(__file__).parents[1] / "readers" / "shape_worker" / "shape_worker.py"
"""Run as a script, under the compiler's own bindings; never imported here."""
STAGE = "import"
"""The stage of the failure of a model that cannot be constrained: it is refused before anything is compiled."""
_WHERE = "shaping"

Dimension = tuple[Count, Count]
"""An input of the model, and a dimension of it, both counted from 0."""


class _Constrained(Record, frozen=True):
    dimensions: tuple[Dimension, ...]
    refused: str | None


def shaping(toolchain: Toolchain, cancel: Cancel) -> Bindings:
    """What `constrained` asks; the caller closes it."""
    return Bindings(SHAPE_WORKER, toolchain.bindings, toolchain.no_bindings, cancel)


def constrained(
    bindings: Bindings,
    model: Path,
    constraint: Constraint,
    out: Path,
    dimensions: Sequence[Dimension] | None = None,
) -> tuple[Dimension, ...] | Failure:
    """Write the model with its dynamic dimensions constrained; which these are, or why it cannot be had.

    Args:
        model: a file of MLIR, before any phase of the compiler; of an ONNX model what its import gave.
        dimensions: those to constrain; None for all dynamic ones of all inputs.
    """
    fields = {"model": str(model), "out": str(out), "dimensions": dimensions}
    answer = bindings.ask("constrain", constraint=msgspec.to_builtins(constraint), **fields)
    if answer is None:
        return Failure(STAGE, f"cannot constrain its dimensions: {bindings.reason or 'there are no MLIR bindings'}")
    try:
        if error := decoded(answer, dict[str, object], _WHERE).get("error"):
            return Failure(STAGE, f"cannot constrain its dimensions: {error}"[:500])
        result = decoded(answer, _Constrained, _WHERE)
        if result.refused is None:
            require_bounded(out, "the constrained model")
    except InputError as error:
        return Failure(STAGE, f"cannot constrain its dimensions: {error.what}")
    return result.dimensions if result.refused is None else Failure(STAGE, f"not constrained: {result.refused}")
