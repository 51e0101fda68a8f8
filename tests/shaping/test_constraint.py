"""bot.core.study: what can be said of a dimension, and one clear line for what cannot."""

from __future__ import annotations

import pytest

from bot.core.json_text import canonical, converted, decoded
from bot.core.record import Record
from bot.core.study import Constraint, Divisible, Dynamic, Range, Static, misfit
from bot.errors import InputError


class Experiment(Record, frozen=True):
    """What has a constraint."""

    constraint: Constraint


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ({"kind": "dynamic"}, Dynamic()),
        ({"kind": "static", "size": 128}, Static(128)),
        ({"kind": "range", "min": 16, "max": 512}, Range(16, 512)),
        ({"kind": "range", "min": 7, "max": 7}, Range(7, 7)),
        ({"kind": "divisible", "by": 16, "min": 16, "max": 512}, Divisible(16, 16, 512)),
    ],
)
def test_each_kind_is_read_and_written(plain: dict[str, object], value: Constraint) -> None:
    assert converted({"constraint": plain}, Experiment, "experiment").constraint == value
    assert decoded(canonical(value), dict[str, object], "experiment") == plain


@pytest.mark.parametrize(
    ("plain", "what"),
    [
        ({"kind": "odd"}, "odd"),
        ({"size": 128}, "kind"),
        ({"kind": "static"}, "size"),
        ({"kind": "static", "size": 0}, ">= 1"),
        ({"kind": "static", "size": 1 << 31}, "<= 2147483647"),
        ({"kind": "static", "size": 128, "max": 512}, "max"),
        ({"kind": "divisible", "by": 0, "min": 16, "max": 512}, ">= 1"),
    ],
)
def test_what_cannot_be_said_is_one_line(plain: dict[str, object], what: str) -> None:
    with pytest.raises(InputError) as refused:
        converted({"constraint": plain}, Experiment, "experiment")
    assert what in str(refused.value) and "\n" not in str(refused.value)


def test_sizes_that_no_model_can_have() -> None:
    assert misfit(Range(512, 16)) == "min 512 is above max 16"
    assert misfit(Divisible(16, 32, 16)) == "min 32 is above max 16"
    assert misfit(Divisible(16, 8, 512)) == "min 8 is no multiple of 16"
    assert misfit(Divisible(16, 16, 500)) == "max 500 is no multiple of 16"
    assert {misfit(one) for one in (Dynamic(), Static(3), Range(7, 7), Divisible(16, 16, 512))} == {""}
