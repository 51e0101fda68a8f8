"""All compiles of one side, as tasks: the front half of a model once, then resumed for every target.

Sharing a front half is only a shortcut, and is proved before it is trusted: in every run one cell is compiled both ways
and the artifacts compared. Until that is done the other cells wait; if they differ, everything is compiled directly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bot.compiler.compiling import (
    Compiled,
    Front,
    Kit,
    Source,
    compile_directly,
    compile_front,
    compile_once,
    is_stack_refusal,
)
from bot.compiler.importing import Importer
from bot.compiler.probe import Answer, ask_device, device_of, with_device
from bot.compiler.schedule import Task
from bot.core.plan import LIFTED_LIMIT_FLAG, PlannedCell
from bot.core.snapshot import Failure

Finish = Callable[[PlannedCell, "Compiled | Failure"], None]

# Options with these beginnings shape only a target's half of the compile, and reach the front half through the device
# that is exchanged; cells that differ in any other option never share.
_BACKEND_PREFIXES = ("hal-target", "llvmcpu", "cuda", "rocm", "hip", "vulkan", "metal", "vmvx")
_TARGET_OPTIONS = tuple(f"--iree-{prefix}-" for prefix in _BACKEND_PREFIXES)
_FIRST = float("inf")


def front_flags(cell: PlannedCell) -> tuple[str, ...]:
    """The cell's flags that can change the front half."""
    return tuple(flag for flag in cell.argv if not flag.startswith(_TARGET_OPTIONS))


@dataclass(slots=True)
class _Group:
    """Cells of one model that share a front half, and that half once it is there."""

    cells: list[PlannedCell]
    front: Front | None = None

    @property
    def cost(self) -> float:
        return sum(cell.cost for cell in self.cells)


@dataclass(slots=True)
class _Trust:
    """Whether resuming gives the artifact of the direct compile: not known (None), proved, or refuted."""

    proved: bool | None = None
    prover: _Group | None = None
    waiting: list[_Group] = field(default_factory=list)


class Side:
    """Compiles the cells of one side; `finish` gets each result, in the thread that made it."""

    def __init__(self, kit: Kit, finish: Finish, importer: Importer) -> None:
        self._kit, self._finish, self._importer = kit, finish, importer
        self._lock = threading.Lock()
        self._trust = _Trust()
        self._devices: dict[tuple[str, ...], Answer] = {}
        self.notes: list[str] = []

    def tasks(self, cells: Sequence[PlannedCell], *, share: bool = True) -> list[Task]:
        """The first tasks for these cells; the cheapest model's goes first, it proves the sharing."""
        groups: dict[tuple[str, tuple[str, ...]], _Group] = {}
        for cell in cells:
            groups.setdefault((cell.model.name, front_flags(cell)), _Group([])).cells.append(cell)
        shared = [group for group in groups.values() if share and len(group.cells) > 1]
        alone = [cell for group in groups.values() if group not in shared for cell in group.cells]
        first = min(shared, key=lambda group: group.cost, default=None)
        return [self._front_task(group, first=group is first) for group in shared] + self._direct_tasks(alone)

    def _name(self, *parts: str) -> str:
        return " ".join((self._kit.label, *parts))

    # Direct compiles

    def _direct_tasks(self, cells: Iterable[PlannedCell]) -> list[Task]:
        return [Task(cell.cost, self._name(str(cell.key)), partial(self._direct, cell)) for cell in cells]

    def _direct(self, cell: PlannedCell) -> list[Task]:
        source = self._importer.source(cell.model)
        if isinstance(source, Failure):
            self._finish(cell, source)
        else:
            self._finish(cell, compile_directly(self._kit, cell.argv, Source(cell.model.name, source)))
        return []

    # Shared front halves

    def _front_task(self, group: _Group, *, first: bool) -> Task:
        cost = _FIRST if first else group.cost
        return Task(cost, self._name("front end of", group.cells[0].model.name), partial(self._front, group))

    def _front(self, group: _Group) -> list[Task]:
        source = self._importer.source(group.cells[0].model)
        donor = next((cell for cell in group.cells if self.device(cell.argv).device), None)
        if isinstance(source, Failure) or donor is None or self._trust.proved is False:
            return self._direct_tasks(group.cells)
        group.front = compile_front(self._kit, donor.argv, Source(donor.model.name, source))
        if group.front is None or device_of(group.front.text) != self.device(donor.argv).device:
            return self._direct_tasks(group.cells)
        with self._lock:
            return self._admit(group)

    def _admit(self, group: _Group) -> list[Task]:
        """Tasks of a group whose front is ready: to resume it, to prove it, or none yet."""
        if self._trust.proved is not None:
            return self._resume_tasks(group) if self._trust.proved else self._direct_tasks(group.cells)
        if self._trust.prover is None:
            self._trust.prover = group
            return [
                Task(_FIRST, self._name("proof of sharing on", group.cells[0].model.name), partial(self._prove, group))
            ]
        self._trust.waiting.append(group)
        return []

    def _prove(self, group: _Group) -> list[Task]:
        """Compile one cell of the group both ways; the cell rotates with the compiler."""
        start = int(self._kit.toolchain.info.digest[:8], 16) % len(group.cells)
        order = [cell for cell in (*group.cells[start:], *group.cells[:start]) if self.device(cell.argv).device]
        proved, done = None, 0
        while proved is None and done < len(order):
            proved = self._prove_cell(order[done], group)
            done += 1
        rest = _Group([cell for cell in group.cells if cell not in order[:done]], group.front)
        with self._lock:
            return self._judge(proved, rest)

    def _prove_cell(self, cell: PlannedCell, group: _Group) -> bool | None:
        """True where both ways give the same artifact, None where the cell does not compile."""
        source = self._importer.source(cell.model)
        assert isinstance(source, Path) and group.front is not None
        direct = compile_directly(self._kit, cell.argv, Source(cell.model.name, source))
        resumed = self._resumed(cell, group.front) if isinstance(direct, Compiled) else None
        if isinstance(direct, Failure):
            self._finish(cell, direct)
            return None
        if isinstance(resumed, Compiled) and resumed.artifact == direct.artifact:
            self._finish(cell, resumed)
            return True
        self._finish(cell, direct)
        return self._blame(cell, direct, compile_directly(self._kit, cell.argv, Source(cell.model.name, source)))

    def _blame(self, cell: PlannedCell, direct: Compiled, again: Compiled | Failure) -> bool | None:
        """A resumed artifact differs: False where sharing did it, None where the compiler does not repeat itself."""
        if isinstance(again, Compiled) and again.artifact == direct.artifact:
            self.notes.append(f"front ends were not shared: resumed and direct artifacts of {cell.key} differ")
            return False
        sizes = [len(one.artifact) if isinstance(one, Compiled) else "no" for one in (direct, again)]
        self.notes.append(f"not deterministic: the same command for {cell.key} gave {sizes[0]} and {sizes[1]} bytes")
        return None

    def _judge(self, proved: bool | None, rest: _Group) -> list[Task]:
        trust = self._trust
        trust.proved, trust.prover = proved, None
        if proved is None:  # no cell of that model compiles: nothing was proved, the next model tries
            return self._direct_tasks(rest.cells) + (self._admit(trust.waiting.pop()) if trust.waiting else [])
        ready = [rest, *trust.waiting]
        trust.waiting = []
        return [task for group in ready for task in self._admit(group)]

    def _resume_tasks(self, group: _Group) -> list[Task]:
        front = group.front
        assert front is not None
        return [Task(cell.cost, self._name(str(cell.key)), partial(self._resume, cell, front)) for cell in group.cells]

    def _resume(self, cell: PlannedCell, front: Front) -> list[Task]:
        self._finish(cell, self._resumed_or_direct(cell, front))
        return []

    def _resumed_or_direct(self, cell: PlannedCell, front: Front) -> Compiled | Failure:
        resumed = self._resumed(cell, front)
        if isinstance(resumed, Compiled) or (resumed is not None and resumed.stage == "timeout"):
            return resumed
        source = self._importer.source(cell.model)
        assert isinstance(source, Path)
        return compile_directly(self._kit, cell.argv, Source(cell.model.name, source))

    def _resumed(self, cell: PlannedCell, front: Front) -> Compiled | Failure | None:
        """The back half for one cell; None where the compiler does not name its device in one line."""
        model = cell.model.name
        first = self._resume_once(model, cell.argv, front)
        if not isinstance(first, Failure) or not is_stack_refusal(first):
            return first
        lifted = self._resume_once(model, (*cell.argv, LIFTED_LIMIT_FLAG), front)
        return replace(lifted, refusal=replace(first, stage="stack-limit")) if isinstance(lifted, Compiled) else first

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
