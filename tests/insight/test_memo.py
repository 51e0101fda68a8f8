"""bot.insight.facts.memo: results by identity, never another object's."""

from __future__ import annotations

from bot.insight.facts.memo import KEPT, per_object


def test_one_result_for_one_object_and_another_for_an_equal_one() -> None:
    calls: list[list[int]] = []

    @per_object
    def total(values: list[int]) -> int:
        calls.append(values)
        return sum(values)

    one, equal = [1, 2], [1, 2]
    assert [total(one), total(one), total(equal)] == [3, 3, 3]
    assert len(calls) == 2


def test_an_object_that_is_gone_gives_its_place_to_no_other() -> None:
    @per_object
    def first(values: list[int]) -> int:
        return values[0]

    assert [first([number]) for number in range(5 * KEPT)] == list(range(5 * KEPT))


def test_only_the_last_results_are_kept() -> None:
    calls: list[int] = []

    @per_object
    def once(values: list[int]) -> None:
        calls.append(values[0])

    objects = [[number] for number in range(KEPT + 1)]
    for one in (*objects, objects[-1], objects[0]):
        once(one)
    assert calls == [*range(KEPT + 1), 0]
