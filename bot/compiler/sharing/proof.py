"""Proves that the cells of one flag set may share front halves, before any shared artifact is used.

* Two front halves of each model, made for two devices, must be the same program. Where they are not, the front half
  depends on the target, and nothing of this flag set is shared any more.
* Each target must be proved on the cheapest model that compiles on it: its artifact resumed from a front half that was
  made for another device must be that of its direct compile. A difference is settled by a second direct compile: where
  that repeats the first, sharing is wrong, and nothing of this flag set is shared any more.
* A failure is never believed of a resumed compile: the cell is compiled directly. Where that succeeds, the model's
  other cells are, too. It is a hint, though: a cell that likely fails as well is compiled directly at once.

What was finished by sharing and is not believed any more is finished once more, directly. Pure bookkeeping: what to do
next is returned, and done by `bot.compiler.side`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from bot.compiler.compiling import Compiled
from bot.compiler.sharing.front_halves import FORERUNNERS, Group
from bot.core.values.planned import PlannedCell
from bot.core.values.snapshot import CellKey, Failure

Result = Compiled | Failure


@dataclass(frozen=True, slots=True)
class Action:
    """What to do next.

    Attributes:
        do: `finish` a cell with `result`; compile it `direct`; as a `sample` (directly, for the proof) or that `again`;
            `check` it (resumed, for the proof) or `resume` it; compile it directly `instead` of resumed; `drop` what
            was kept of this flag set.
        group: whose front half a check or a resumed compile needs.
        donor: of a finished cell: the target whose front half it was resumed from; None for a direct compile.
    """

    do: str
    cell: PlannedCell | None = None
    group: Group | None = None
    result: Result | None = None
    donor: str | None = None


class Proof:
    """The cells of one flag set, from what is planned to what is finished; may be called from any thread.

    Args:
        groups: cheapest first.
        proved: targets proved by an earlier run of this compiler with these flags.
        remember: is called with the name of each target that is proved here.

    Attributes:
        wrong: why nothing is shared any more; empty where sharing holds.
        notes: what a reader of the snapshot should know.
    """

    def __init__(
        self, groups: Sequence[Group], proved: Collection[str], remember: Callable[[str], None] = lambda _: None
    ) -> None:
        self._lock = threading.RLock()
        self._groups, self._remember = tuple(groups), remember
        self._proved = set(proved)
        self._refused: set[str] = set()
        self._agreed: dict[str, Group] = {}
        self._apart: set[str] = set()
        self._failed: set[tuple[str, str]] = set()
        self._todo = {cell.key: (cell, group) for group in groups for cell in group.cells}
        self._shared: dict[CellKey, tuple[PlannedCell, Group]] = {}
        self._provers: dict[str, list[Group]] = {}
        self._direct: dict[CellKey, Compiled] = {}
        self._resumed: dict[CellKey, Compiled | None] = {}
        self.wrong = ""
        self.notes: list[str] = []

    def start(self) -> list[Action]:
        """The first samples: every target that is not proved, on the cheapest model that has it."""
        targets = sorted({cell.target.name for group in self._groups for cell in group.cells} - self._proved)
        with self._lock:
            self._provers = {
                target: [group for group in self._groups if _cell_of(group, target) is not None] for target in targets
            }
            return [action for target in targets for action in self._sample(target)]

    def paired(self, group: Group, apart: str | None) -> list[Action]:
        """A model's two front halves are there.

        Args:
            apart: None where they agree; why this model is not shared otherwise, empty where there is nothing to say.
        """
        with self._lock:
            if apart is None:
                self._agreed[group.name] = group
                provers = [target for target, groups in self._provers.items() if groups and groups[0] is group]
                return [*(one for target in provers for one in self._check(target)), *self._release()]
            if apart:
                self.notes.append(apart)
            return self._separate(group)

    def disagreed(self, group: Group) -> list[Action]:
        """A model's two front halves are not the same program."""
        pair = f"{group.donor.target.name} and {group.witness.target.name}"
        return self._off(f"the front halves of {group.name} for {pair} are not the same program")

    def sampled(self, cell: PlannedCell, direct: Result) -> list[Action]:
        """The direct compile of a sample is done: it is the cell's result in any case."""
        target = cell.target.name
        with self._lock:
            finish = Action("finish", cell, result=direct)
            if isinstance(direct, Failure):
                return [finish, *self._next_sample(target, cell)]
            self._direct[cell.key] = direct
            return [finish, *self._judge(cell)]

    def checked(self, cell: PlannedCell, resumed: Result | None) -> list[Action]:
        """The resumed compile of a sample is done; None where its device is not known."""
        with self._lock:
            self._resumed[cell.key] = resumed if isinstance(resumed, Compiled) else None
            return self._judge(cell)

    def repeated(self, cell: PlannedCell, again: Result) -> list[Action]:
        """A sample differed from its resumed compile, and was compiled directly once more."""
        with self._lock:
            direct, resumed = self._direct[cell.key], self._resumed[cell.key]
            if isinstance(again, Compiled) and again.artifact == direct.artifact:
                return self._off(f"resumed and direct artifacts of {cell.key} differ")
            size = f"{len(again.artifact)} bytes" if isinstance(again, Compiled) else "none"
            self.notes.append(
                f"not deterministic: the same command for {cell.key} gave {len(direct.artifact)} bytes, and then {size}"
            )
            if isinstance(again, Compiled) and resumed and again.artifact == resumed.artifact:
                return self._accept(cell.target.name)
            return self._refuse(cell.target.name)

    def resumed(self, cell: PlannedCell, group: Group, resumed: Result | None) -> list[Action]:
        """A cell's resumed compile is done; None where its device is not known."""
        with self._lock:
            if not self._shares(cell, group) or (resumed is None and self.likely_fails(cell)):
                return [Action("direct", cell)]
            if not isinstance(resumed, Compiled):
                self._failed.add((cell.model.name, cell.target.backend))
                return [Action("instead", cell, group)]
            self._shared[cell.key] = (cell, group)
            return [Action("finish", cell, result=resumed, donor=group.donor.target.name)]

    def likely_fails(self, cell: PlannedCell) -> bool:
        """True where the model failed on what says so beforehand: to resume this cell would most likely be in vain."""
        return (cell.model.name, FORERUNNERS.get(cell.target.backend, "")) in self._failed

    def instead(self, cell: PlannedCell, group: Group, direct: Result) -> list[Action]:
        """A cell whose resumed compile failed was compiled directly."""
        with self._lock:
            finish = Action("finish", cell, result=direct)
            if isinstance(direct, Failure):
                return [finish]
            self.notes.append(f"the front half of {group.name} was not shared: resumed, {cell.key} fails")
            return [finish, *self._separate(group)]

    def _shares(self, cell: PlannedCell, group: Group) -> bool:
        return not self.wrong and group.name in self._agreed and cell.target.name in self._proved

    def _sample(self, target: str) -> list[Action]:
        """The next model that can prove a target; where there is none, the target does not share."""
        while self._provers[target]:
            group = self._provers[target][0]
            cell = _cell_of(group, target)
            if cell is not None and cell.key in self._todo and group.name not in self._apart:
                del self._todo[cell.key]
                return [Action("sample", cell), *self._check(target)]
            self._provers[target] = self._provers[target][1:]
        return self._refuse(target)

    def _next_sample(self, target: str, failed: PlannedCell) -> list[Action]:
        """Another model has to prove the target, unless one has been asked for that already."""
        groups = self._provers[target]
        if not groups or groups[0].name != failed.model.name:
            return []
        self._provers[target] = groups[1:]
        return self._sample(target)

    def _check(self, target: str) -> list[Action]:
        group = self._provers[target][0]
        cell = _cell_of(group, target)
        if cell is None or group.name not in self._agreed or self.wrong or target in self._proved:
            return []
        return [Action("check", cell, group)]

    def _judge(self, cell: PlannedCell) -> list[Action]:
        """What the two compiles of a sample say of its target, once both are there."""
        if self.wrong or cell.key not in self._direct or cell.key not in self._resumed:
            return []
        resumed = self._resumed[cell.key]
        if resumed is None:
            return self._refuse(cell.target.name)
        if self._direct[cell.key].artifact != resumed.artifact:
            return [Action("again", cell)]
        return self._accept(cell.target.name)

    def _accept(self, target: str) -> list[Action]:
        self._proved.add(target)
        self._remember(target)
        return self._release()

    def _refuse(self, target: str) -> list[Action]:
        """A target that nothing proves does not share."""
        self._refused.add(target)
        return self._take(cell for cell, _ in self._todo.values() if cell.target.name == target)

    def _separate(self, group: Group) -> list[Action]:
        """A model does not share."""
        self._agreed.pop(group.name, None)
        self._apart.add(group.name)
        direct = self._take(cell for cell, owner in self._todo.values() if owner is group)
        provers = [target for target, groups in self._provers.items() if groups and groups[0] is group]
        waiting = [target for target in provers if target not in self._proved | self._refused]
        samples = [action for target in waiting for action in self._next_sample(target, group.donor)]
        return [*direct, *self._undo(group), *samples]

    def _off(self, why: str) -> list[Action]:
        with self._lock:
            if self.wrong:
                return []
            self.wrong = why
            self.notes.append(f"front halves were not shared: {why}")
            everything = self._take(cell for cell, _ in self._todo.values())
            return [Action("drop"), *everything, *self._undo(None)]

    def _undo(self, group: Group | None) -> list[Action]:
        """What was finished by sharing, of one model or of all, is compiled directly."""
        doubted = [cell for cell, owner in self._shared.values() if group is None or owner is group]
        for cell in doubted:
            del self._shared[cell.key]
        return [Action("direct", cell) for cell in doubted]

    def _take(self, cells: Iterable[PlannedCell]) -> list[Action]:
        taken = list(cells)
        for cell in taken:
            del self._todo[cell.key]
        return [Action("direct", cell) for cell in taken]

    def _release(self) -> list[Action]:
        """What can be resumed by now."""
        ready = [(cell, group) for cell, group in self._todo.values() if self._shares(cell, group)]
        for cell, _ in ready:
            del self._todo[cell.key]
        return [Action("resume", cell, group) for cell, group in ready]


def _cell_of(group: Group, target: str) -> PlannedCell | None:
    return next((cell for cell in group.cells if cell.target.name == target), None)
