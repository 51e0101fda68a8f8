"""What is said of the dynamic dimensions of a model's inputs: nothing, one size, a range, or multiples within one."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bot.core.record import Record

Size = Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]
"""Of a dimension; what `torch.export` and the shapes of every backend take."""
Smallest = Annotated[Size, msgspec.Meta(description="The smallest size.", examples=[16])]
Largest = Annotated[Size, msgspec.Meta(description="The largest size.", examples=[512])]


class Dynamic(Record, frozen=True, tag_field="kind", tag="dynamic"):
    """The model as it is."""


class Static(Record, frozen=True, tag_field="kind", tag="static"):
    """One size, which becomes part of the program."""

    size: Annotated[Size, msgspec.Meta(description="The one size.", examples=[128])]


class Range(Record, frozen=True, tag_field="kind", tag="range"):
    """Sizes from `min` to `max`, both included."""

    min: Smallest
    max: Largest

    def __post_init__(self) -> None:
        """Raise ValueError where there is no such size."""
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")


class Divisible(Record, frozen=True, tag_field="kind", tag="divisible"):
    """Multiples of `by` from `min` to `max`, which are such themselves."""

    by: Annotated[Size, msgspec.Meta(description="What sizes are multiples of.", examples=[16])]
    min: Smallest
    max: Largest

    def __post_init__(self) -> None:
        """Raise ValueError where one of them is none."""
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        for name, value in (("min", self.min), ("max", self.max)):
            if value % self.by:
                raise ValueError(f"{name} {value} is no multiple of {self.by}")


Constraint = Dynamic | Static | Range | Divisible
"""As JSON an object with its `kind`: `{"kind": "range", "min": 16, "max": 512}`."""
