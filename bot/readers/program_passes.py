"""Read the operations that become a dispatch, before the dispatch exists.

They are found by their places in the model, after each earlier pass.

Format: as `bot.readers.printed_files` has it, with locations in local scope. Places are
lines and columns of a model without locations of its own: names, as models bring them,
stand for many operations.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from bot.core.json_text import nonzero, without_zeros
from bot.core.planned import SIDES
from bot.core.trace import MLIR, PROGRAM, REGION, PassStep
from bot.readers.passes import LONGEST_LINE_BYTES, TYPE, header_of, operations_of
from bot.readers.printed_files import printed_files

LOCATION = re.compile(rb'(?<!=) loc\((?:#\w+|unknown|"(?:[^"\\]|\\.)*"(?::\d+:\d+)?)\)')
_PLACE = re.compile(rb'(?<! at )("(?:[^"\\]|\\.)*"(?::\d+:\d+)?)')
"""A place, but not the one from which an inlined function was called.

All operations of that function have the call's place in common.
"""
_FUNCTION = re.compile(rb"(func|util)\.func\b[^@]*@\"?([\w$.-]+)\"?\(.*\{$")
_EXECUTABLE = re.compile(rb'flow\.executable (?:public |private )?@"?([\w$.-]+)')
_HOST = re.compile(
    r"(?:util|flow|stream|hal|vm|iree_tensor_ext|builtin|func|cf|ml_program)\.|torch\.(?:constant|prim)\b"
)
"""Operations of the host's program around dispatches, in all releases.

They are also those of the data that passes between dispatches.
"""
_NO_WORK = (
    ".constant",
    ".const",
    ".yield",
    ".return",
    "tensor.dim",
    "tensor.empty",
    "tensor.cast",
)
_REGIONS = frozenset({REGION, "flow.dispatch.workgroups"})
_LAST = (  # From this pass on one executable stands for several places
    "iree-flow-deduplicate-executables"
)
_INITIALIZER = "initializer"

Places = frozenset[bytes]
Counted = Counter[tuple[Places, str]]


class ProgramReader:
    """The program's operations by their places after each pass.

    Nothing of the text is kept.

    Attributes:
        model: digest of the text whose places they are.
    """

    def __init__(self, directory: Path, model: bytes) -> None:
        self.model = hashlib.sha256(model).digest()
        self._steps: list[tuple[str, str, Counted]] = []
        self._functions: dict[str, Counted] = {}
        self._executables: dict[str, str] = {}
        total = Counted()
        for path, is_whole in _dumps(directory):
            with path.open("rb") as file:
                name, class_name = header_of(file.readline(LONGEST_LINE_BYTES))
                if name == _LAST:
                    break
                read = _Dump(file)
            if is_whole:
                self._functions = read.functions
                self._executables = read.executables
            else:
                self._functions |= read.functions
                self._executables = read.executables | self._executables
            now = sum(self._functions.values(), Counted())
            changes = Counted(now)
            changes.subtract(total)
            changes = Counted(without_zeros(changes))
            if changes:
                self._steps.append((name, class_name, changes))
            total = now

    @staticmethod
    def is_unseen(executable: str) -> bool:
        """Return whether a dispatch runs when the module is loaded.

        Its functions have no names to tell their dumps apart.
        """
        return _INITIALIZER in executable

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Return executable → its function."""
        names = dict[str, str]()
        for name, executable in self._executables.items():
            if executable:
                names[executable] = name
        return names

    @cached_property
    def dispatches(self) -> Mapping[str, Places]:
        """Return executable → the places of its operations."""
        places_of = dict[str, Places]()
        for executable, name in self.names.items():
            places = set[bytes]()
            for operation_places, _ in self._functions.get(name, ()):
                places |= operation_places
            places_of[executable] = frozenset(places)
        return places_of

    def steps(self, places: Places) -> tuple[PassStep, ...]:
        """Return the passes that changed the operations at these places.

        An operation counts if most of its own places are among them.
        """
        steps = []
        for name, class_name, changes in self._steps:
            own_changes = Counter[str]()
            for (where, operation), count in changes.items():
                if 2 * len(where & places) > len(where):
                    own_changes[operation] += count
            changed = nonzero(own_changes)
            if changed:
                steps.append(
                    PassStep(
                        name=name, class_name=class_name, level=PROGRAM, changes=changed
                    )
                )
        return tuple(steps)


def joint_places(
    readers: Sequence[ProgramReader], executables: Sequence[str]
) -> Places:
    """Return the places of a dispatch on both sides.

    They include the places of the dispatches that do the same work on either side:
    those share most of the smaller one's places. One side may have fused what are
    several dispatches on the other. Empty if a side has no such executable.

    `executables`: of each reader; empty if that side has none.
    """
    joint = frozenset[bytes]()
    dispatches = list[Places]()
    for reader, name in zip(readers, executables, strict=True):
        dispatches += reader.dispatches.values()
        if name:
            own_places = reader.dispatches.get(name)
            if not own_places:
                return frozenset()
            joint |= own_places
    for _ in SIDES:
        near = list[Places]()
        for places in dispatches:
            if 2 * len(places & joint) > min(len(places), len(joint)) > 0:
                near.append(places)
        joint = joint.union(*near)
    return joint


def _dumps(directory: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the dumps in the order in which they were printed, and whether each is whole."""
    for numbers, path in printed_files(directory):
        folders = path.relative_to(directory).parts[1:-1]
        if not any(_INITIALIZER in folder for folder in folders):
            yield path, len(numbers) == 1


class _Dump:
    """The functions of one dump, each with its operations by their places.

    An operation inside of another one may have no place of its own. It then has the
    place of the outer one.
    """

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.functions: dict[str, Counted] = {}
        self.executables: dict[str, str] = {}
        self._executable = ""
        self._counted: Counted | None = None
        self._frames: list[list[str]] = []
        self._opening: list[str] = []
        for line in lines:
            self._line(line[:LONGEST_LINE_BYTES].strip())

    def _line(self, line: bytes) -> None:
        opens = line.endswith(b"{")
        closes = line.startswith(b"}")
        if self._counted is None:
            if opens:
                self._begin(line)
            return
        if closes and opens:
            return
        text, _, location = line.rpartition(b" loc(")
        if closes:
            self._assign(self._frames.pop(), location)
            if not self._frames:
                if _INITIALIZER in self._executable:
                    self._counted.clear()
                self._counted = None
            return
        names = list(_work(text or line))
        if line.endswith(b" ="):
            self._opening = names
        elif opens:
            self._frames.append(names or self._opening)
            self._opening = []
        else:
            self._assign(names, location)

    def _begin(self, line: bytes) -> None:
        """Read the line that opens an executable or a function."""
        if executable := _EXECUTABLE.match(line):
            self._executable = executable[1].decode()
        elif function := _FUNCTION.match(line):
            name = function[2].decode()
            is_in_executable = function[1] == b"func"
            self.executables[name] = self._executable if is_in_executable else ""
            self._counted = self.functions[name] = Counted()
            self._frames = [[REGION] if self.executables[name] else []]

    def _assign(self, names: list[str], location: bytes) -> None:
        places = frozenset(_PLACE.findall(location))
        if places and self._counted is not None:
            for name in names:
                self._counted[places, name] += 1
        elif len(self._frames) > 1:
            self._frames[-1] += names


def _work(line: bytes) -> Iterator[str]:
    """Yield the operations that become code of a dispatch, and the dispatch itself.

    Each has the types of all that it reads.
    """
    for name in operations_of(line, MLIR):
        operation, _, types = name.partition(" ")
        if operation in _REGIONS:
            yield REGION
        elif (
            types != "index"
            and not _HOST.match(operation)
            and not operation.endswith(_NO_WORK)
        ):
            start = -1
            if operation.startswith("linalg."):
                start = line.find(b" ins(")
            if start < 0:
                yield name
            else:
                read_types = dict.fromkeys(TYPE.findall(line[start:]))
                yield b" ".join([operation.encode(), *read_types]).decode()
