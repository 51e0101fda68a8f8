"""All compiles of one side, as tasks: where that is proved, the front half of a model once, resumed for every target.

Sharing a front half is only a shortcut: `bot.compiler.sharing.front_halves` says which cells may,
`bot.compiler.sharing.proof` when a resumed artifact is believed. Everything else, and every failure, is the direct
compile of the printed command.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bot.compiler.compiling import (
    Compiled,
    Front,
    Kit,
    Source,
    compile_directly,
    compile_front,
    compile_once,
    lifting,
)
from bot.compiler.schedule import Task
from bot.compiler.sharing.front_halves import (
    Group,
    agree,
    front_flags,
    groups_of,
    is_worth_proving,
    may_share,
    missing_resource,
)
from bot.compiler.sharing.proof import Action, Proof
from bot.compiler.sharing.proof_book import ProofBook
from bot.compiler.tools.importing import Importer
from bot.compiler.tools.probe import Answer, ask_device, device_of, with_device
from bot.core.values.planned import PlannedCell
from bot.core.values.snapshot import Failure

Finish = Callable[[PlannedCell, "Compiled | Failure", "str | None"], None]
"""Gets each result, and the target whose front half it was resumed from; a cell whose shared result turned out not to
be believed comes once more."""

_FIRST = float("inf")
_PROOF = frozenset({"sample", "again", "check", "drop"})
_EXECUTABLE = "stream.executable private"
_LATER = 0.25
"""Puts a cell behind the others of its model, where one of them may say that it fails; still before small models."""
OTHER_ADDRESSES = 1
"""The layout of addresses for a compile that is to show whether the compiler repeats itself."""


@dataclass
class _Shared:
    """One flag set that shares: its proof, and the front halves that were made.

    Attributes:
        halves: target → front half, by model, until both are there.
        fronts: model → the donor's front half, and the witness's text.
    """

    proof: Proof
    flags: tuple[str, ...]
    halves: dict[str, dict[str, Front | None]]
    fronts: dict[str, tuple[Front, str]]


class Side:
    """Compiles the cells of one side; `finish` gets each result, in the thread that made it."""

    def __init__(self, kit: Kit, finish: Finish, importer: Importer, book: ProofBook) -> None:
        self._kit, self._finish_cell, self._importer, self._book = kit, finish, importer, book
        self._devices: dict[tuple[str, ...], Answer] = {}
        self._sets: list[_Shared] = []
        self._lock = threading.Lock()

    @property
    def notes(self) -> list[str]:
        """What a reader of the snapshot should know."""
        return [note for shared in self._sets for note in shared.proof.notes]

    def tasks(self, cells: Sequence[PlannedCell], *, share: bool = True, layout: int = 0) -> list[Task]:
        """The first tasks for these cells; those that prove the sharing go first."""
        sets: dict[tuple[str, ...], list[PlannedCell]] = {}
        for cell in cells:
            if share and may_share(cell):
                sets.setdefault(front_flags(cell), []).append(cell)
        made = [shared for flags, mine in sets.items() if (shared := self._shared(flags, mine)) is not None]
        grouped = {cell.key for _, groups in made for group in groups for cell in group.cells}
        tasks = [task for shared, groups in made for task in self._begin(shared, groups)]
        alone = [Action("direct", cell) for cell in cells if cell.key not in grouped]
        return [*tasks, *(self._task(None, action, layout) for action in alone)]

    def _shared(self, flags: tuple[str, ...], cells: Sequence[PlannedCell]) -> tuple[_Shared, list[Group]] | None:
        """The flag set with its groups, where sharing it pays and nothing speaks against it."""
        named = [cell for cell in cells if not self._book.wrong(flags) and self.device(cell.argv).device]
        groups = groups_of(named)
        targets = {cell.target.name: cell.target for cell in named}
        proved = self._book.proved(flags, targets.values())
        if not is_worth_proving(groups, targets.keys() - proved):
            return None

        def remember(target: str) -> None:
            self._book.remember(flags, targets[target])

        shared = _Shared(Proof(groups, proved, remember), flags, {}, {})
        self._sets.append(shared)
        return shared, groups

    def _begin(self, shared: _Shared, groups: Sequence[Group]) -> list[Task]:
        fronts = [
            Task(
                _FIRST if group is groups[0] else group.cost,
                self._name("front end of", group.name, "for", cell.target.name),
                partial(self._front, shared, group, cell),
            )
            for group in groups
            for cell in (group.donor, group.witness)
        ]
        return [*self._todo(shared, shared.proof.start()), *fronts]

    def _name(self, *parts: str) -> str:
        return " ".join((self._kit.label, *parts))

    def _todo(self, shared: _Shared, actions: Iterable[Action]) -> list[Task]:
        """The actions of a proof as tasks; what takes no time is done at once."""
        tasks = []
        for action in actions:
            if action.do == "finish":
                assert action.cell is not None and action.result is not None
                self._finish_cell(action.cell, action.result, action.donor)
            elif action.do == "drop":
                self._book.drop(shared.flags, shared.proof.wrong)
            else:
                tasks.append(self._task(shared, action))
        return tasks

    def _task(self, shared: _Shared | None, action: Action, layout: int = 0) -> Task:
        assert action.cell is not None
        cost = _FIRST if action.do in _PROOF else self._cost(shared, action)
        run = partial(self._run, shared, action, layout)
        return Task(cost, self._name(str(action.cell.key)), run)

    def _cost(self, shared: _Shared | None, action: Action) -> float:
        """A resumed compile costs by its executables, in the unit of the others' costs: only their order matters."""
        assert action.cell is not None
        if shared is None or action.group is None:
            return action.cell.cost
        later = _LATER if action.group.follows(action.cell) else 1.0
        return later * action.cell.weight * (shared.fronts[action.group.name][0].text.count(_EXECUTABLE) + 1)

    def _run(self, shared: _Shared | None, action: Action, layout: int) -> list[Task]:
        """Do one action, and whatever the proof says is next."""
        cell, group = action.cell, action.group
        assert cell is not None
        if shared is None or action.do == "direct":
            self._finish_cell(cell, self._compile(cell, layout), None)
            return []
        proof = shared.proof
        if action.do == "sample":
            return self._todo(shared, proof.sampled(cell, self._compile(cell)))
        if action.do == "again":
            return self._todo(shared, proof.repeated(cell, self._compile(cell, OTHER_ADDRESSES)))
        assert group is not None
        if action.do == "check":
            return self._todo(shared, proof.checked(cell, self._resumed(cell, self._foreign(shared, group, cell))))
        if action.do == "instead":
            return self._todo(shared, proof.instead(cell, group, self._compile(cell)))
        in_vain = proof.wrong or proof.likely_fails(cell)
        resumed = None if in_vain else self._resumed(cell, shared.fronts[group.name][0])
        return self._todo(shared, proof.resumed(cell, group, resumed))

    def _compile(self, cell: PlannedCell, layout: int = 0) -> Compiled | Failure:
        source = self._importer.source(cell.model)
        if isinstance(source, Failure):
            return source
        return compile_directly(self._kit, cell.argv, Source(cell.model.name, source), layout=layout)

    def _front(self, shared: _Shared, group: Group, cell: PlannedCell) -> list[Task]:
        """One of a model's two front halves; the second one compares them."""
        donates = cell is group.donor
        half = None if shared.proof.wrong else self._front_of(cell, measuring=donates)
        with self._lock:
            halves = shared.halves.setdefault(group.name, {})
            halves[cell.target.name] = half
            complete = len(halves) == 2
        return self._todo(shared, self._compare(shared, group, halves)) if complete else []

    def _compare(self, shared: _Shared, group: Group, halves: Mapping[str, Front | None]) -> list[Action]:
        donor, witness = (halves[cell.target.name] for cell in (group.donor, group.witness))
        if donor is None or witness is None:
            return shared.proof.paired(group, "")
        if lost := missing_resource(donor.text):
            why = f"the front half of {group.name} was not shared: it names the resource {lost} and does not carry it"
            return shared.proof.paired(group, why)
        if not agree(donor.text, witness.text):
            return shared.proof.disagreed(group)
        shared.fronts[group.name] = donor, witness.text
        return shared.proof.paired(group, None)

    def _front_of(self, cell: PlannedCell, *, measuring: bool) -> Front | None:
        """The front half for one target; None where it fails (the direct compile says why) or names another device."""
        source = self._importer.source(cell.model)
        if isinstance(source, Failure):
            return None
        front = compile_front(self._kit, cell.argv, Source(cell.model.name, source), measuring=measuring)
        named = front is not None and device_of(front.text) == self.device(cell.argv).device
        return front if named else None

    def _foreign(self, shared: _Shared, group: Group, cell: PlannedCell) -> Front:
        """A front half that was made for another target than the cell's: for its own it would prove nothing."""
        front, witness = shared.fronts[group.name]
        return front if cell is not group.donor else front.with_text(witness)

    def _resumed(self, cell: PlannedCell, front: Front) -> Compiled | Failure | None:
        """The back half for one cell; None where the compiler does not name its device in one line."""
        return lifting(lambda argv: self._resume_once(cell.model.name, argv, front), cell.argv)

    def _resume_once(self, model: str, argv: tuple[str, ...], front: Front) -> Compiled | Failure | None:
        device = self.device(argv).device
        if device is None:
            return None
        with self._importer.temporary(with_device(front.text, device)) as source:
            return compile_once(self._kit, argv, Source(model, source), front)

    def device(self, argv: tuple[str, ...]) -> Answer:
        """What the compiler makes of these flags; asked once."""
        if argv not in self._devices:
            with self._importer.directory() as scratch:
                self._devices[argv] = ask_device(self._kit.toolchain, argv, scratch, self._kit.cancel)
        return self._devices[argv]
