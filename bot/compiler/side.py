"""All compiles of one side, as tasks: the front half of a model once, then resumed for every target.

Sharing a front half is only a shortcut, and is proved before it is trusted: see `bot.compiler.proof`. Where a cell
cannot be resumed it is compiled directly, and so are those that fail, until one was seen to fail alike both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from bot.compiler.importing import Importer
from bot.compiler.probe import Answer, ask_device, device_of, with_device
from bot.compiler.proof import Action, Proof
from bot.compiler.schedule import Task
from bot.core.plan import PlannedCell
from bot.core.snapshot import Failure

Finish = Callable[[PlannedCell, "Compiled | Failure"], None]

# Options with these beginnings shape only a target's half of the compile, and reach the front half through the device
# that is exchanged; cells that differ in any other option never share.
_BACKEND_PREFIXES = ("hal-target", "llvmcpu", "cuda", "rocm", "hip", "vulkan", "metal", "vmvx")
_TARGET_OPTIONS = tuple(f"--iree-{prefix}-" for prefix in _BACKEND_PREFIXES)
_FIRST, _LAST = float("inf"), -1.0
_COSTS = {"finish_with": _FIRST, "sample": _FIRST, "again": _FIRST, "doubt": _LAST}
_EXECUTABLE = "stream.executable private"


def front_flags(cell: PlannedCell) -> tuple[str, ...]:
    """The cell's flags that can change the front half."""
    return tuple(flag for flag in cell.argv if not flag.startswith(_TARGET_OPTIONS))


@dataclass(frozen=True, slots=True)
class _Group:
    """Cells of one model that share a front half."""

    cells: tuple[PlannedCell, ...]

    @property
    def cost(self) -> float:
        return sum(cell.cost for cell in self.cells)

    def candidates(self, digest: str) -> tuple[PlannedCell, ...]:
        """Its cells in the order in which they may prove the sharing; the cheapest third rotates with the compiler."""
        order = sorted(self.cells, key=lambda cell: cell.weight)
        third = max(1, len(order) // 3)
        start = int(digest[:8], 16) % third
        return (*order[start:third], *order[:start], *order[third:])


class Side:
    """Compiles the cells of one side; `finish` gets each result, in the thread that made it."""

    def __init__(self, kit: Kit, finish: Finish, importer: Importer) -> None:
        self._kit, self._finish, self._importer = kit, finish, importer
        self._devices: dict[tuple[str, ...], Answer] = {}
        self._proof = Proof(())

    @property
    def notes(self) -> list[str]:
        """What a reader of the snapshot should know."""
        return self._proof.notes

    def tasks(self, cells: Sequence[PlannedCell], *, share: bool = True) -> list[Task]:
        """The first tasks for these cells; the cheapest model's go first, it proves the sharing."""
        groups: dict[tuple[str, tuple[str, ...]], list[PlannedCell]] = {}
        for cell in cells:
            groups.setdefault((cell.model.name, front_flags(cell)), []).append(cell)
        shared = [_Group(tuple(group)) for group in groups.values() if share and len(group) > 1]
        shared.sort(key=lambda group: group.cost)
        alone = [cell for group in groups.values() if not share or len(group) == 1 for cell in group]
        digest = self._kit.toolchain.info.digest
        self._proof = Proof([cell for group in shared for cell in group.candidates(digest)])
        fronts = [self._front_task(group, first=group is shared[0]) for group in shared]
        return fronts + self._todo(self._proof.start()) + self._direct_tasks(alone)

    def _name(self, *parts: str) -> str:
        return " ".join((self._kit.label, *parts))

    def _todo(self, actions: Iterable[Action]) -> list[Task]:
        """The actions of the proof as tasks."""
        return [
            Task(
                _COSTS.get(action.do, action.cell.cost),
                self._name(str(action.cell.key)),
                partial(getattr(self, f"_{action.do}"), action),
            )
            for action in actions
        ]

    def _direct_tasks(self, cells: Iterable[PlannedCell]) -> list[Task]:
        return self._todo(Action("direct", cell) for cell in cells)

    def _compile(self, cell: PlannedCell, *, places: bool = True) -> Compiled | Failure:
        source = self._importer.source(cell.model)
        if isinstance(source, Failure):
            return source
        return compile_directly(self._kit, cell.argv, Source(cell.model.name, source), places=places)

    def _finish_with(self, action: Action) -> list[Task]:
        assert action.result is not None
        self._finish(action.cell, action.result)
        return []

    def _direct(self, action: Action) -> list[Task]:
        self._finish(action.cell, self._compile(action.cell))
        return []

    def _doubt(self, action: Action) -> list[Task]:
        cell = self._proof.doubted()
        return self._todo(self._proof.compared(cell, self._compile(cell, places=False)))

    def _sample(self, action: Action) -> list[Task]:
        if self.device(action.cell.argv).device is None:
            return self._todo(self._proof.skip())
        return self._todo(self._proof.sampled(action.cell, self._compile(action.cell)))

    def _again(self, action: Action) -> list[Task]:
        return self._todo(self._proof.repeated(action.cell, self._compile(action.cell)))

    def _front_task(self, group: _Group, *, first: bool) -> Task:
        cost = _FIRST if first else group.cost
        return Task(cost, self._name("front end of", group.cells[0].model.name), partial(self._front, group))

    def _front(self, group: _Group) -> list[Task]:
        front = self._front_of(group)
        if front is None:
            return self._todo(action for cell in group.cells for action in self._proof.resumed(cell, None))
        executables = front.text.count(_EXECUTABLE) + 1
        costs = {cell.key: executables * cell.weight for cell in group.cells}
        if (sample := self._proof.sample) is not None:
            costs[sample.key] = _FIRST
        return [
            Task(costs[cell.key], self._name(str(cell.key)), partial(self._resume, cell, front)) for cell in group.cells
        ]

    def _front_of(self, group: _Group) -> Front | None:
        """The front half for the first target that can be resumed; None where there is none to share."""
        source = self._importer.source(group.cells[0].model)
        donor = next((cell for cell in group.cells if self.device(cell.argv).device), None)
        if isinstance(source, Failure) or donor is None or self._proof.proved is False:
            return None
        front = compile_front(self._kit, donor.argv, Source(donor.model.name, source))
        named = front is not None and device_of(front.text) == self.device(donor.argv).device
        return front if named else None

    def _resume(self, cell: PlannedCell, front: Front) -> list[Task]:
        if self._proof.proved is False:
            return self._todo(self._proof.resumed(cell, None))
        resumed = self._resumed(cell, front)
        if isinstance(resumed, Failure):
            return self._todo(self._proof.failed(cell, resumed))
        return self._todo(self._proof.resumed(cell, resumed))

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
