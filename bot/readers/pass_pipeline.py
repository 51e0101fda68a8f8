"""Write a pass pipeline as text, as `iree-opt --pass-pipeline` takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

Nested = tuple[tuple[str, ...], str]
"""The operations around a pass, and the pass with its options.

Operations are listed from the outermost inwards, without the module.
"""


def module_pipeline(passes: Sequence[Nested], idle: Sequence[str] = ()) -> str:
    """Return a pipeline that runs these passes in their order.

    Args:
        idle: pipelines that stand behind them.
    """
    return f"builtin.module({','.join([*_texts(passes, 0), *idle])})"


def _texts(passes: Sequence[Nested], depth: int) -> Iterator[str]:
    """Yield the pipelines of neighbours on the same operation as one.

    This keeps the order.
    """
    for operation, neighbours in groupby(
        passes, lambda nested: nested[0][depth : depth + 1]
    ):
        inner = list(neighbours)
        if operation:
            yield f"{operation[0]}({','.join(_texts(inner, depth + 1))})"
        else:
            yield from (text for _, text in inner)
