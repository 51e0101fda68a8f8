"""Keep results for the objects that they were computed from.

Cells of one model share their program, so results from the program are the same on all
targets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Result = TypeVar("_Result")
# Results; cells come model by model, so that older ones are not asked for again
KEPT = 64


def per_object(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Keep the last results by the identity of the arguments.

    To compare programs takes longer than to read them. Callers must not change what
    they get, nor the arguments afterwards.
    """
    results: dict[tuple[int, ...], tuple[tuple[Any, ...], _Result]] = {}

    def remembered(*args: Any) -> _Result:
        key = tuple(map(id, args))
        if key not in results:
            if len(results) >= KEPT:
                del results[next(iter(results))]
            # with its arguments: as long as they live, nothing else has their ids
            results[key] = (
                args,
                function(*args),
            )
        return results[key][1]

    return remembered
