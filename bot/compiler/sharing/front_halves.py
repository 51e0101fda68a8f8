"""Which cells may share the front half of their compile, and what two front halves must agree in: pure decisions.

A front half may be shared where it does not depend on the target. That is never assumed: only options that are known
not to reach the front half through the target let a cell share at all, the front halves made for two devices must be
the same text, and `bot.compiler.sharing.proof` wants each target's resumed artifact to be the direct one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.compiler.sharing.places import without_places
from bot.compiler.tools.probe import with_device
from bot.core.values.planned import COMMON_FLAGS, PlannedCell

_TARGET_OPTIONS = frozenset(
    {
        "--iree-hal-target-backends",
        "--iree-llvmcpu-target-triple",
        "--iree-llvmcpu-target-cpu",
        "--iree-llvmcpu-target-cpu-features",
        "--iree-llvmcpu-target-abi",
        "--iree-llvmcpu-stack-allocation-limit",
        "--iree-cuda-target",
        "--iree-rocm-target",
        "--iree-hip-target",
        "--iree-vulkan-target",
        "--iree-metal-compile-to-metallib",
    }
)
"""Options that name a target: what they say reaches a module through its device, which is exchanged."""
_INDEPENDENT_FLAGS = frozenset(COMMON_FLAGS)
"""Flags that change the front half, if at all, alike for all targets: with each of them the full suite's cells were
compared with their direct compiles (docs/evidence.md). With any other flag a cell is compiled directly."""

_HOST_BACKENDS = frozenset({"llvm-cpu", "vmvx"})
# In units of what a target's half costs on llvm-cpu, per byte of the model; measured on the 13 models of the suite.
_FRONT_COST, _BACK_COST = 0.85, 1.0
FORERUNNERS = {"rocm": "cuda"}
"""Backend → a cheaper one with the same code generator (LLVMGPU): of five models that fail there, four fail on both."""
LARGEST_PROOF = 0.1
"""What all proof together may cost at most, as a share of the side's compiles."""


def _option(flag: str) -> str:
    return flag.partition("=")[0]


def may_share(cell: PlannedCell) -> bool:
    """True where all flags of the cell are known to leave the front half independent of the target."""
    return all(_option(flag) in _TARGET_OPTIONS or flag in _INDEPENDENT_FLAGS for flag in cell.argv)


def front_flags(cell: PlannedCell) -> tuple[str, ...]:
    """The cell's flags that do not name its target: cells that share have the same."""
    return tuple(flag for flag in cell.argv if _option(flag) not in _TARGET_OPTIONS)


@dataclass(frozen=True, slots=True)
class Group:
    """Cells of one model that can share a front half.

    Attributes:
        donor: the cell for whose target the front half is made.
        witness: the one for whose device it is made once more, to be compared; of another kind of backend if possible.
    """

    cells: tuple[PlannedCell, ...]
    donor: PlannedCell
    witness: PlannedCell

    @property
    def name(self) -> str:
        """The model's."""
        return self.donor.model.name

    def follows(self, cell: PlannedCell) -> bool:
        """True where a forerunner of the cell is in the group, so that the cell had better wait for it."""
        return FORERUNNERS.get(cell.target.backend) in {other.target.backend for other in self.cells}

    @property
    def cost(self) -> float:
        """Of both front halves and all back halves, in the unit of `PlannedCell.cost`."""
        return self.witness_cost * 2 + self.back_cost

    @property
    def witness_cost(self) -> float:
        """Of one front half."""
        return _FRONT_COST * self.donor.model.size_bytes

    @property
    def back_cost(self) -> float:
        """Of all back halves."""
        return _BACK_COST * sum(cell.cost for cell in self.cells)

    @property
    def direct_cost(self) -> float:
        """Of compiling all cells directly."""
        return self.witness_cost * len(self.cells) + self.back_cost


def groups_of(cells: Iterable[PlannedCell]) -> list[Group]:
    """The groups that save something, cheapest first; which two targets compare notes differs from model to model."""
    by_model: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        by_model.setdefault(cell.model.name, []).append(cell)
    pairs = {name: _pair(index, by_model[name]) for index, name in enumerate(sorted(by_model))}
    made = [Group(tuple(by_model[name]), *pair) for name, pair in pairs.items() if pair]
    return sorted(
        (group for group in made if group.cost < group.direct_cost), key=lambda group: (group.cost, group.name)
    )


def _pair(index: int, cells: Sequence[PlannedCell]) -> tuple[PlannedCell, PlannedCell] | None:
    """Donor and witness of the model with this number: over several models every target gets its turn."""
    ordered = sorted(cells, key=lambda cell: cell.key)
    hosts = [cell for cell in ordered if cell.target.backend in _HOST_BACKENDS]
    devices = [cell for cell in ordered if cell not in hosts]
    if hosts and devices:
        return hosts[index % len(hosts)], devices[index % len(devices)]
    donor = ordered[index % len(ordered)]
    others = [cell for cell in ordered if cell.target.backend != donor.target.backend]
    others = others or [cell for cell in ordered if cell is not donor]
    return (donor, others[index % len(others)]) if others else None


def is_worth_proving(groups: Sequence[Group], unproved: Iterable[str]) -> bool:
    """True where the proof stays within its share of what compiling costs, and less is compiled than without sharing.

    Args:
        unproved: names of the targets that the cheapest model has still to prove.
    """
    if len(groups) < 2:
        return False
    prover, targets = groups[0], frozenset(unproved)
    proved_twice = [cell for cell in prover.cells if cell.target.name in targets]
    extra = sum(_FRONT_COST * cell.model.size_bytes + _BACK_COST * cell.cost for cell in proved_twice)
    proof = extra + sum(group.witness_cost for group in groups)
    shared = sum(group.cost for group in groups) + extra
    return proof <= LARGEST_PROOF * shared and shared < sum(group.direct_cost for group in groups)


_RESOURCE = re.compile(r"\bdense_resource<(?:\"([^\"]*)\"|([^>\"]+))>")
_CARRIED = re.compile(r"^\s*(?:\"([^\"]*)\"|([\w.$-]+)): \"0x", re.MULTILINE)


def missing_resource(text: str) -> str | None:
    """A resource that the module names and does not carry, so that it cannot be read again; None: there is none."""
    named = {quoted or plain for quoted, plain in _RESOURCE.findall(text)}
    carried = {quoted or plain for quoted, plain in _CARRIED.findall(text.rpartition("\n{-#")[2])} if named else set()
    return min(named - carried, default=None)


def agree(text: str, witness: str) -> bool:
    """True where two front halves are the same program but for the device they name."""
    return without_places(with_device(text, "")) == without_places(with_device(witness, ""))
