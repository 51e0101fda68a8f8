from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bot.compiler.compiling import Compiled
from bot.compiler.proof import Action, Proof
from bot.core.plan import Model, PlannedCell, Target
from bot.core.snapshot import Failure

REFUSED = Failure("compile", "no", 1)


def compiled(artifact: bytes = b"same") -> Compiled:
    return Compiled(artifact, (), None, None, None, None, 1, 1)


def cells(count: int) -> list[PlannedCell]:
    return [PlannedCell(Model(f"m{i}", "", "", "", 1), Target("vmvx", "vmvx")) for i in range(count)]


def done(actions: list[Action]) -> list[tuple[str, str]]:
    return [(action.do, action.cell.model.name) for action in actions]


def test_what_is_resumed_is_held_back_until_the_sample_agrees() -> None:
    one, two, three = cells(3)
    proof = Proof([one, two, three])
    assert done(proof.start()) == [("sample", "m0")]
    assert proof.resumed(two, compiled()) == []
    assert proof.sampled(one, compiled()) == []
    assert proof.proved is None and proof.sample is one
    assert done(proof.resumed(one, compiled())) == [("finish_with", "m0"), ("finish_with", "m1")]
    assert proof.proved is True and proof.sample is None
    assert done(proof.resumed(three, compiled())) == [("finish_with", "m2")]


def test_the_order_in_which_the_two_ways_end_does_not_matter() -> None:
    (one,) = cells(1)
    proof = Proof([one])
    proof.start()
    assert proof.resumed(one, compiled()) == []
    assert done(proof.sampled(one, compiled())) == [("finish_with", "m0")]


def test_a_difference_is_asked_about_once_more_before_sharing_is_blamed() -> None:
    one, two, three = cells(3)
    proof = Proof([one, two, three])
    proof.start()
    proof.resumed(two, compiled())
    proof.sampled(one, compiled(b"direct"))
    assert done(proof.resumed(one, compiled(b"resumed"))) == [("again", "m0")]
    finish, direct = proof.repeated(one, compiled(b"direct"))
    assert done([finish, direct]) == [("finish_with", "m0"), ("direct", "m1")]
    assert finish.result == compiled(b"direct")
    assert proof.proved is False
    assert proof.notes == ["front ends were not shared: resumed and direct artifacts of m0 on vmvx differ"]
    assert done(proof.resumed(three, compiled())) == [("direct", "m2")]


def test_a_compiler_that_does_not_repeat_itself_proves_nothing_and_the_next_cell_is_tried() -> None:
    one, two = cells(2)
    proof = Proof([one, two])
    proof.start()
    proof.sampled(one, compiled(b"first"))
    proof.resumed(one, compiled(b"resumed"))
    assert done(proof.repeated(one, compiled(b"another one"))) == [("finish_with", "m0"), ("sample", "m1")]
    assert proof.notes == ["not deterministic: the same command for m0 on vmvx gave 5 and 11 bytes"]
    assert proof.proved is None


def test_a_sample_that_fails_or_cannot_be_resumed_gives_way_to_the_next() -> None:
    one, two, three, four = cells(4)
    proof = Proof([one, two, three, four])
    proof.start()
    assert done(proof.sampled(one, REFUSED)) == [("finish_with", "m0"), ("sample", "m1")]
    assert proof.resumed(one, compiled()) == []
    assert done(proof.skip()) == [("sample", "m2")]
    assert done(proof.resumed(two, None)) == [("direct", "m1")]
    assert proof.resumed(three, None) == []
    assert done(proof.sampled(three, compiled())) == [("finish_with", "m2"), ("sample", "m3")]


def test_failures_wait_for_the_cheapest_of_them_to_fail_alike_both_ways() -> None:
    one, two, three, four = cells(4)
    proof = Proof([one])
    assert done(proof.failed(three, REFUSED)) == [("doubt", "m2")]
    assert proof.failed(two, REFUSED) == []
    assert proof.doubted() is two
    assert done(proof.compared(two, REFUSED)) == [("finish_with", "m1"), ("finish_with", "m2")]
    assert done(proof.failed(four, REFUSED)) == [("finish_with", "m3")]


def test_failures_that_say_something_else_both_ways_are_not_believed() -> None:
    one, two, three, four = cells(4)
    proof = Proof([one])
    proof.failed(two, REFUSED)
    proof.failed(three, REFUSED)
    assert done(proof.compared(two, compiled())) == [("finish_with", "m1"), ("direct", "m2")]
    assert done(proof.failed(four, REFUSED)) == [("direct", "m3")]


def test_where_nothing_can_be_proved_nothing_resumed_is_believed() -> None:
    one, two = cells(2)
    proof = Proof([one])
    proof.start()
    assert proof.resumed(two, compiled()) == []
    assert done(proof.sampled(one, REFUSED)) == [("finish_with", "m0"), ("direct", "m1")]
    assert proof.proved is False and proof.notes == []
    empty = Proof([])
    assert empty.start() == [] and empty.proved is False


@given(st.integers(1, 5), st.randoms(use_true_random=False), st.data())
def test_whatever_happens_in_whatever_order_every_cell_is_finished_once(
    count: int, chance: random.Random, data: st.DataObject
) -> None:
    todo = cells(count)
    proof = Proof(todo)
    finished: Counter[str] = Counter()
    resumes = {cell.model.name: data.draw(st.sampled_from([None, b"refused", b"same", b"other"])) for cell in todo}
    directs = {cell.model.name: data.draw(st.sampled_from([None, b"same", b"other", b"random"])) for cell in todo}

    def direct(cell: PlannedCell) -> Compiled | Failure:
        made = directs[cell.model.name]
        if made is None:
            return REFUSED
        return compiled(chance.randbytes(4) if made == b"random" else made)

    def do(action: Action) -> list[Action]:
        if action.do == "resume":
            made = resumes[action.cell.model.name]
            if made == b"refused":
                return proof.failed(action.cell, REFUSED)
            return proof.resumed(action.cell, None if made is None else compiled(made))
        if action.do == "doubt":
            cell = proof.doubted()
            return proof.compared(cell, direct(cell))
        if action.do in ("finish_with", "direct"):
            finished[action.cell.model.name] += 1
            return []
        if action.do == "sample" and chance.random() < 0.2:
            return proof.skip()
        return {"sample": proof.sampled, "again": proof.repeated}[action.do](action.cell, direct(action.cell))

    queue = [*proof.start(), *(Action("resume", cell) for cell in todo)]
    while queue:
        queue += do(queue.pop(chance.randrange(len(queue))))
    assert finished == Counter(cell.model.name for cell in todo)
    assert proof.proved is not None
