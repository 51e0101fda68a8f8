"""How a dispatch is configured: each operation counts, and lines of older snapshots compare as well."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bot.explain.differences import strategy_diff, strategy_note
from bot.explain.knobs import ON_OTHER_OPERATIONS, turned
from bot.explain.strategies import (
    configured_parts,
    same_configuration,
    without_operations,
)

PIPELINE = "DoubleTilingExpert {enable_loop_peeling}"
INNER = "vector_common_parallel = [8, 0], vector_inner_parallel = [0, 8]"
REDUCTION = "vector_common_parallel = [8, 0], vector_reduction = [0, 8]"
BOTH = f"{INNER}, vector_reduction = [0, 8]"


def line(
    *configurations: str, pipeline: str = PIPELINE, operation: str = "linalg.generic"
) -> str:
    return " | ".join(
        [
            pipeline,
            *(f"{operation}: {configuration}" for configuration in configurations),
        ]
    )


def older(strategy: str) -> str:
    """The line as releases of this program wrote it that kept equal configurations once."""
    pipeline, *parts = [
        re.sub(r"^[a-z]+\.[a-z]+: ", "", part) for part in strategy.split(" | ")
    ]
    return " | ".join([pipeline, *dict.fromkeys(parts)])


def test_the_same_values_in_another_order_are_shown_on_both_sides() -> None:
    base = "P | linalg.fill: tile = [1, 2, 3] | linalg.generic: tile = [4, 5, 6]"
    head = "P | linalg.fill: tile = [4, 5, 6] | linalg.generic: tile = [1, 2, 3]"
    words = turned(base, head)
    assert not any(" 0 configurations" in change for change in words.values()), words


def test_a_value_more_on_one_of_equal_configurations_is_that_value_alone() -> None:
    """A layer norm, 3.10.0 → 3.11.0: two equal configurations became unequal, and three knobs seemed to be added."""
    base = line(INNER, REDUCTION, REDUCTION, INNER)
    head = line(BOTH, REDUCTION, REDUCTION, INNER)
    assert turned(base, head) == {"vector_reduction": "[0, 8] in 1 configuration more"}
    assert turned(head, base) == {"vector_reduction": "[0, 8] in 1 configuration fewer"}
    assert (
        strategy_note(base, head)
        == "DoubleTilingExpert … vector_reduction [0, 8] in 1 configuration more"
    )
    changed = [text for text in strategy_diff(base, head)[2:] if text[0] in "+-"]
    assert changed == [
        "-vector_reduction = [0, 8]; [0, 8]",
        "+vector_reduction = [0, 8]; [0, 8]; [0, 8]",
    ]


def test_values_that_are_on_other_operations_are_no_secret() -> None:
    base = line("tile = [4], vector = [8]", "vector = [1]")
    head = line("vector = [8]", "tile = [4], vector = [1]")
    assert turned(base, head) == turned(head, base) == {"tile": ON_OTHER_OPERATIONS}
    assert (
        strategy_note(base, head)
        == "DoubleTilingExpert … tile with the same values on other operations"
    )


def test_one_of_two_values_changed_into_the_other() -> None:
    base = line("v = [1]", "v = [1]", "v = [8]")
    head = line("v = [1]", "v = [8]", "v = [8]")
    assert turned(base, head) == {"v": "1 → 8"}
    assert turned(
        line("v = [1, 1]", "v = [8]"), line("v = [8]", "v = [1, 1]", "v = [8]")
    ) == {"v": "[8] in 1 configuration more"}


def test_the_words_name_each_value_once() -> None:
    base = line("v = [1, 8]", "v = [1, 8, 0]", "v = [1, 8]")
    head = line("v = [4, 1, 8]", "v = [4, 1, 8, 0]", "v = [4, 1, 8]")
    assert turned(base, head) == {"v": "[1, 8]; [1, 8, 0] → [4, 1, 8]; [4, 1, 8, 0]"}


def test_a_list_that_was_empty() -> None:
    assert turned(line("v = []"), line("v = [8]")) == {"v": "[] → [8]"}


def test_another_name_of_an_operation_is_no_other_choice() -> None:
    base = line("tile = [4]", operation="linalg.copy")
    head = line("tile = [4]")
    assert same_configuration(base, head) and turned(base, head) == {}
    assert not same_configuration(base, line("tile = [8]"))
    assert not same_configuration(line("tile = [4]"), line("tile = [4]", "tile = [4]"))


def test_parts_are_found_outside_of_texts_alone() -> None:
    strategy = (
        f'{PIPELINE} | mine.op: s = "a | b: c" | mine.op: t = 1 || Other | mine.op:'
        " t = 1"
    )
    assert configured_parts(strategy) == (
        PIPELINE,
        'mine.op: s = "a | b: c"',
        "mine.op: t = 1",
        "Other",
        "mine.op: t = 1",
    )
    assert not same_configuration(strategy, strategy.replace("b: c", "d: c"))


CONFIGURATIONS = some.lists(
    some.sampled_from([INNER, REDUCTION, BOTH, "{thread = [4]}", "v = []", "v = [8]"])
)


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_an_older_line_is_compared_as_both_were_written(
    base: list[str], head: list[str]
) -> None:
    base_line = line(*base)
    head_line = line(*head)
    assert same_configuration(base_line, older(base_line)) and same_configuration(
        older(base_line), base_line
    )
    is_same = older(base_line) == older(head_line)
    assert same_configuration(older(base_line), older(head_line)) is is_same
    assert (
        turned(older(base_line), head_line).keys()
        == turned(older(base_line), older(head_line)).keys()
    )
    if bool(base) == bool(head):  # a pipeline alone is written alike by all
        assert same_configuration(older(base_line), head_line) is is_same
    assert same_configuration(base_line, head_line) is (base == head)
    if not same_configuration(base_line, head_line):
        assert turned(base_line, head_line)
        assert (
            turned(base_line, head_line).keys() == turned(head_line, base_line).keys()
        )


@pytest.mark.parametrize("strategy", ["", "None", " | ", "a: b | ", "| x.y: "])
def test_any_line_is_read(strategy: str) -> None:
    assert same_configuration(strategy, strategy)
    assert (
        without_operations(strategy, strategy)[0]
        == without_operations(strategy, strategy)[1]
    )
