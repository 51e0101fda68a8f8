"""The verdict on two artifacts' outputs: equal, not equal or not known, with one line that says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bot.measurement.running.arrays import Draw, Output

_ALLOWED = {"f64": 1e-4, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2}
"""The largest difference that another order of the same operations may make, as a part of the largest magnitude of an
output. An `f64` may have been computed in `f32`. Elements that are not here have to be the same to the bit."""


NOTHING = "nothing to compare"
"""What the note begins with where outputs are equal, and would be so whatever was computed."""


class Equality(NamedTuple):
    """What `FoldCell` has in its fields of these names."""

    equal: bool | None
    equal_note: str


def judged(outputs: Sequence[Output], elements: Sequence[str], inputs: str, calls: int = 1) -> Equality:
    """The verdict.

    Args:
        elements: of the outputs, in order (`f32`).
        inputs: what they were computed from, as in `on 3 random inputs`.
        calls: how many calls gave them; each as many.
    """
    for number, (output, element) in enumerate(zip(outputs, elements, strict=True)):
        for draw in output.draws:
            if why := _unequal(draw, element):
                call, of_call = divmod(number, len(outputs) // calls)
                name = f"output {of_call} of the second call" if call else f"output {of_call}"
                return Equality(False, f"{name} {why}, {inputs}")
    mute = [_mute(output) for output in outputs]
    if all(mute):
        said = mute[0] if mute else "the program has no output"
        return Equality(None, f"{NOTHING}: {said}, {inputs}")
    untold = sum(map(bool, mute))
    beside = f"; {untold} of {len(mute)} outputs proved nothing: {next(filter(None, mute))}" if untold else ""
    runs = list(zip(*(output.draws for output in outputs), strict=True))
    barren = sum(not any(draw.finite for draw in run) for run in runs)
    beside += f"; {barren} of {len(runs)} inputs proved nothing: no value is finite" if barren else ""
    return Equality(True, f"{_agreement(outputs, elements)} {inputs}{beside}")


def _mute(output: Output) -> str:
    if not any(draw.finite for draw in output.draws):
        return "no value is finite" if any(draw.values for draw in output.draws) else "there are no values"
    if output.constant:
        return "all values are one constant"
    return "it is the same whatever the input" if output.still else ""


def _unequal(draw: Draw, element: str) -> str:
    if draw.before_bytes != draw.after_bytes:
        return f"has {draw.after_bytes:,} bytes instead of {draw.before_bytes:,}"
    allowed = _ALLOWED.get(element)
    if not draw.different or (allowed is not None and draw.relative is not None and draw.relative <= allowed):
        return ""
    differs = f"differs in {draw.different:,} of {draw.values:,} values"
    if allowed is None:
        return differs
    if draw.relative is None:
        return f"{differs}, and not by a finite part of its largest magnitude"
    return f"{differs}, by up to {draw.relative:.2g} of its largest magnitude where {allowed:g} is allowed"


def _agreement(outputs: Sequence[Output], elements: Sequence[str]) -> str:
    differing = [
        (draw.relative or 0.0, _ALLOWED.get(element, 0.0))
        for output, element in zip(outputs, elements, strict=True)
        for draw in output.draws
        if draw.different
    ]
    if not differing:
        return "bit-equal"
    most, allowed = max(differing)
    return f"largest difference {most:.2g} of the largest magnitude where {allowed:g} is allowed,"
