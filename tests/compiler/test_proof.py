"""bot.compiler.sharing.proof: what is believed of a shared front half, in whatever order the compiles end."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from fake_compiler import EIGHT
from hypothesis import given
from hypothesis import strategies as st

from bot.compiler.compiling import Compiled
from bot.compiler.sharing.front_halves import Group, groups_of
from bot.compiler.sharing.proof import Action, Proof
from bot.core.values.planned import Model, PlannedCell, plan
from bot.core.values.snapshot import CellKey, Failure

REFUSED = Failure("compile", "no", 1)
TARGETS = tuple(target.name for target in EIGHT)


def compiled(artifact: bytes = b"same") -> Compiled:
    return Compiled(artifact, (), None, None, None, None, 1, 1)


def groups(count: int) -> list[Group]:
    """Models a, b, c… on eight targets, `a` the cheapest."""
    models = [Model("abcdef"[i], "", "", f"{i:064x}", 100 + i) for i in range(count)]
    return groups_of(plan(models, EIGHT))


def done(actions: list[Action]) -> Counter[str]:
    return Counter(f"{action.do} {action.cell.model.name}" if action.cell else action.do for action in actions)


def cell_of(group: Group, target: str) -> PlannedCell:
    return next(cell for cell in group.cells if cell.target.name == target)


def test_every_target_is_proved_on_the_cheapest_model_before_any_other_resumes() -> None:
    cheap, other = groups(2)
    kept: list[str] = []
    proof = Proof([cheap, other], (), kept.append)
    assert done(proof.start()) == {"sample a": 8}
    assert proof.paired(other, None) == [], "no target is proved"
    checks = proof.paired(cheap, None)
    assert done(checks) == {"check a": 8}
    for target in TARGETS:
        cell = cell_of(cheap, target)
        assert done(proof.sampled(cell, compiled())) == {"finish a": 1}
        [resume] = proof.checked(cell, compiled())
        assert (resume.do, resume.cell) == ("resume", cell_of(other, target))
        [finish] = proof.resumed(cell_of(other, target), other, compiled())
        assert (finish.do, finish.donor) == ("finish", other.donor.target.name)
    assert sorted(kept) == sorted(TARGETS) and not proof.notes


def test_what_an_earlier_run_proved_is_not_proved_again() -> None:
    cheap, other = groups(2)
    proof = Proof([cheap, other], TARGETS)
    assert proof.start() == []
    assert done(proof.paired(cheap, None)) == {"resume a": 8}


def test_front_halves_that_are_not_the_same_program_end_sharing_for_all_models() -> None:
    cheap, other = groups(2)
    proof = Proof([cheap, other], TARGETS)
    resumed = [action.cell for action in proof.paired(cheap, None)]
    finished, running = resumed[:3], resumed[3:]
    for cell in finished:
        assert cell and done(proof.resumed(cell, cheap, compiled())) == {"finish a": 1}
    actions = proof.disagreed(other)
    assert done(actions) == {"drop": 1, "direct b": 8, "direct a": 3}, "what was finished is replaced"
    assert "the front halves of b for " in proof.wrong and proof.notes == [
        f"front halves were not shared: {proof.wrong}"
    ]
    for cell in running:
        assert cell and done(proof.resumed(cell, cheap, compiled())) == {"direct a": 1}


def test_a_model_without_a_front_half_is_compiled_directly_and_another_one_proves() -> None:
    cheap, other = groups(2)
    proof = Proof([cheap, other], ())
    proof.start()
    assert done(proof.paired(cheap, "a: names a resource")) == {"sample b": 8}
    assert proof.notes == ["a: names a resource"] and not proof.wrong
    assert done(proof.paired(other, None)) == {"check b": 8}


def test_a_difference_is_settled_by_a_second_direct_compile() -> None:
    cheap, other = groups(2)
    proof = Proof([cheap, other], ())
    proof.start(), proof.paired(cheap, None), proof.paired(other, None)
    cell = cheap.cells[0]
    proof.sampled(cell, compiled(b"direct"))
    assert done(proof.checked(cell, compiled(b"resumed"))) == {"again a": 1}
    assert done(proof.repeated(cell, compiled(b"direct"))) == {"drop": 1, "direct b": 8}
    assert proof.wrong == f"resumed and direct artifacts of {cell.key} differ"


@pytest.mark.parametrize(("again", "shares"), [(b"resumed", True), (b"a third", False), (None, False)])
def test_a_compiler_that_does_not_repeat_itself_is_no_proof_against_sharing(again: bytes | None, shares: bool) -> None:
    cheap, other = groups(2)
    proof = Proof([cheap, other], ())
    proof.start(), proof.paired(cheap, None), proof.paired(other, None)
    cell = cheap.cells[0]
    proof.checked(cell, compiled(b"resumed"))
    assert done(proof.sampled(cell, compiled(b"direct"))) == {"finish a": 1, "again a": 1}
    found = proof.repeated(cell, REFUSED if again is None else compiled(again))
    assert done(found) == {"resume b" if shares else "direct b": 1}
    assert not proof.wrong and proof.notes[0].startswith(f"not deterministic: the same command for {cell.key} gave 6")


def test_a_model_that_does_not_compile_on_a_target_leaves_its_proof_to_the_next() -> None:
    cheap, second, third = groups(3)
    proof = Proof([cheap, second, third], ())
    proof.start(), proof.paired(cheap, None), proof.paired(second, None), proof.paired(third, None)
    cell = cell_of(cheap, "rocm")
    assert done(proof.sampled(cell, REFUSED)) == {"finish a": 1, "sample b": 1, "check b": 1}
    assert proof.checked(cell, REFUSED) == [], "of the model that proves nothing"
    after = cell_of(second, "rocm")
    proof.checked(after, compiled())
    assert done(proof.sampled(after, compiled())) == {"finish b": 1, "resume c": 1}


def test_a_target_that_only_fails_resumed_does_not_share() -> None:
    cheap, other = groups(2)
    proof = Proof([cheap, other], ())
    proof.start(), proof.paired(cheap, None), proof.paired(other, None)
    cell = cheap.cells[0]
    assert proof.checked(cell, REFUSED) == []
    assert done(proof.sampled(cell, compiled())) == {"finish a": 1, "direct b": 1}


def test_no_failure_is_believed_of_a_resumed_compile() -> None:
    cheap, other = groups(2)
    proof = Proof([cheap, other], TARGETS)
    cells = [action.cell for action in proof.paired(cheap, None) if action.cell]
    proof.resumed(cells[1], cheap, compiled())
    assert done(proof.resumed(cells[0], cheap, REFUSED)) == {"instead a": 1}
    assert done(proof.instead(cells[0], cheap, REFUSED)) == {"finish a": 1}, "the same both ways"
    assert done(proof.instead(cells[2], cheap, compiled())) == {"finish a": 1, "direct a": 1}, "the model is not shared"
    assert done(proof.resumed(cells[3], cheap, compiled())) == {"direct a": 1}
    assert proof.notes == [f"the front half of a was not shared: resumed, {cells[2].key} fails"]


def test_a_failure_is_a_hint_for_the_same_model_on_what_has_the_same_code_generator_alone() -> None:
    cheap, other = groups(2)
    proof = Proof([cheap, other], TARGETS)
    proof.paired(cheap, None), proof.paired(other, None)
    assert not any(map(proof.likely_fails, cheap.cells))
    proof.resumed(cell_of(cheap, "cuda"), cheap, REFUSED)
    assert [cell.target.name for cell in cheap.cells if proof.likely_fails(cell)] == ["rocm"]
    assert not any(map(proof.likely_fails, other.cells))
    rocm = cell_of(cheap, "rocm")
    assert done(proof.resumed(rocm, cheap, None)) == {"direct a": 1}, "not tried"
    assert done(proof.resumed(rocm, cheap, compiled())) == {"finish a": 1}, "was resumed before the hint came"


names = st.sets(st.sampled_from("abcd"))
few_targets = st.sets(st.sampled_from(TARGETS), max_size=2)


@dataclass(frozen=True)
class World:
    """A compiler with its faults, and a proof under it; which result comes next is a matter of chance.

    Attributes:
        lying, absent: models whose front halves differ, or cannot be had.
        noisy, failing: targets whose direct compile gives another artifact each time, or none.
        odd: targets whose resumed compile fails.
        last: cell → the target whose front half it was finished from; None for a direct compile.
    """

    chance: random.Random
    proof: Proof
    lying: set[str]
    absent: set[str]
    noisy: set[str]
    failing: set[str]
    odd: set[str]
    last: dict[CellKey, str | None] = field(default_factory=dict, init=False)

    def direct(self, cell: PlannedCell) -> Compiled | Failure:
        if cell.target.name in self.failing:
            return REFUSED
        return compiled(self.chance.randbytes(2) if cell.target.name in self.noisy else b"same")

    def resumed(self, cell: PlannedCell) -> Compiled | Failure | None:
        return self.chance.choice([None, REFUSED]) if cell.target.name in self.odd else compiled(b"same")

    def pair(self, group: Group) -> list[Action]:
        if group.name in self.absent:
            return self.proof.paired(group, self.chance.choice(["", "why"]))
        return self.proof.disagreed(group) if group.name in self.lying else self.proof.paired(group, None)

    def do(self, action: Action) -> list[Action]:
        cell, group = action.cell, action.group
        if action.do == "drop" or cell is None:
            return []
        if action.do == "direct":
            self.last[cell.key] = None
            return []
        if action.do in ("sample", "again"):
            return {"sample": self.proof.sampled, "again": self.proof.repeated}[action.do](cell, self.direct(cell))
        if action.do == "check":
            return self.proof.checked(cell, self.resumed(cell))
        assert group is not None
        if action.do == "instead":
            return self.proof.instead(cell, group, self.direct(cell))
        return self.proof.resumed(cell, group, self.resumed(cell))

    def run(self, made: list[Group]) -> None:
        """Everything to its end, in any order."""
        queue: list[Action | Group] = [*self.proof.start(), *made]
        while queue:
            item = queue.pop(self.chance.randrange(len(queue)))
            for action in self.pair(item) if isinstance(item, Group) else self.do(item):
                if action.do == "finish" and action.cell:
                    self.last[action.cell.key] = action.donor  # at once, as everything that takes no time
                else:
                    queue.append(action)


@given(
    st.integers(2, 4),
    st.sets(st.sampled_from(TARGETS)),
    st.randoms(use_true_random=False),
    st.fixed_dictionaries(
        {"lying": names, "absent": names, "noisy": few_targets, "failing": few_targets, "odd": few_targets}
    ),
)
def test_whatever_happens_in_whatever_order_every_cell_ends_and_none_with_a_result_that_is_not_its_own(
    count: int, proved: set[str], chance: random.Random, faults: dict[str, set[str]]
) -> None:
    """Lies of front halves, failures and noise: every cell ends, a shared one only where that was proved."""
    made = groups(count)
    world = World(chance, Proof(made, proved), **faults)
    world.run(made)
    assert world.last.keys() == {cell.key for group in made for cell in group.cells}
    shared = {key for key, donor in world.last.items() if donor is not None}
    believed = {group.name for group in made} & world.lying - world.absent
    assert not (believed and shared)
    assert not {key for key in shared if key.target in world.odd or key.model in world.absent}
