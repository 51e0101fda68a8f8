"""Find the flags in which the builds of two sides differ."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec

from bot.core.backends import backend_of_option, backends_of
from bot.core.delta import CellDelta, same_but_for_flags
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.proof import Status, Words, status_of
from bot.core.record import Amount, Record
from bot.core.snapshot import Cell, CellKey, Snapshot

FlagChange = tuple[tuple[str, str], ...]
"""Each removed flag and the added flag in its place; either is empty if missing."""
REORDERED: FlagChange = (("", ""),)
_QUOTED = re.compile(r"""['"\\]|[^\S \t\r\n]""")
"""Characters that a shell reads differently from `str.split`.

Nearly no command has any of them, and shlex is slow.
"""
_MOST_FLAG = 200_000  # Linux allows 128 KiB in one argument
_MOST_NAME = 300
MOST_FLAGS = 200
NO_COMPILER = "the compiler of head is not here"
SIZE = "artifact_bytes"

Flag = Annotated[str, msgspec.Meta(max_length=_MOST_FLAG)]
Text = Annotated[str, msgspec.Meta(max_length=_MOST_NAME)]


class FlagTrial(Record, frozen=True, omit_defaults=True):
    """The experiment on one build: head is compiled with this flag as base has it."""

    status: Status
    why: Words = ""  # why it was not tried; empty if it was
    # True if no build that has this difference of flags differs in anything else: base
    # itself is the experiment, for all of these builds
    only: bool = False
    # code size of the build: head − base, and what base's flag undoes of it; None if
    # they are not known
    moved_bytes: Amount | None = None
    restored_bytes: Amount | None = None
    # the build with the largest change of code size; empty if no build changed
    model: Text = ""
    target: Text = ""

    @property
    def key(self) -> CellKey | None:
        """Return the build; None if no build changed."""
        if not self.model:
            return None
        return CellKey(self.model, self.target)

    @property
    def is_experiment(self) -> bool:
        """Return whether a compile of its own gave the result."""
        return self.restored_bytes is not None and not self.only


class TriedFlag(Record, frozen=True):
    """One difference of flags and its experiment: a row of `changed_flags[]`."""

    # removed, added: the flag of base and the one of head; empty if that side has none
    removed: Flag
    added: Flag
    tried: FlagTrial


TriedFlags = Annotated[tuple[TriedFlag, ...], msgspec.Meta(max_length=MOST_FLAGS)]


def flag_change(delta: CellDelta) -> FlagChange | None:
    """Return the removed and added flags; None if a side's command cannot be read.

    A value replaces another one if its option occurs once on each side. If an option
    occurs several times, it is not known which value replaces which.
    """
    base_flags = _flags_of(delta.base)
    head_flags = _flags_of(delta.head)
    if base_flags is None or head_flags is None:
        return None
    if base_flags == head_flags:
        return ()
    went = Counter(base_flags) - Counter(head_flags)
    came = Counter(head_flags) - Counter(base_flags)
    base_options = Counter(map(_option, base_flags))
    head_options = Counter(map(_option, head_flags))
    new_flags = {}
    for flag in came:
        option = _option(flag)
        if base_options[option] == head_options[option] == 1:
            new_flags[option] = flag
    pairs = [(flag, new_flags.get(_option(flag), "")) for flag in went.elements()]
    for flag in came.elements():
        if _option(flag) not in new_flags:
            pairs.append(("", flag))
    return tuple(pairs) or REORDERED


def proved_alone(
    base: Snapshot, head: Snapshot, deltas: Iterable[CellDelta]
) -> tuple[TriedFlag, ...]:
    """Return each difference of flags, with what the comparison alone proves of it.

    If a flag is the only difference of all its builds, it is proved: base is head
    without it. An experiment on any other flag is still to be made.
    """
    backends = backends_of(base.targets, head.targets)
    builds: dict[tuple[str, str], list[_Build]] = {}
    for delta in deltas:
        change = flag_change(delta) or REORDERED
        if change != REORDERED:
            build = _Build(delta, _is_only_difference(base, head, delta, change))
            for pair in change:
                builds.setdefault(pair, []).append(build)
    rows = []
    for (removed, added), builds_of_flag in list(builds.items())[:MOST_FLAGS]:
        tried = _trial_of(builds_of_flag, backend_of_option(added or removed), backends)
        rows.append(TriedFlag(removed=removed, added=added, tried=tried))
    return tuple(rows)


def with_trials(
    rows: Sequence[TriedFlag], handed: Sequence[TriedFlag]
) -> tuple[TriedFlag, ...]:
    """Return the rows with the experiments that another run made on the same flags.

    What this comparison knows stays as it is. Only the result of an experiment on the
    same change of the same build is taken.
    """
    by_flag = {(row.removed, row.added): row.tried for row in handed}
    result = []
    for row in rows:
        other = by_flag.get((row.removed, row.added))
        if other is not None and row.tried.why == NO_COMPILER:
            tried = _with_result_of(row.tried, other)
            result.append(msgspec.structs.replace(row, tried=tried))
        else:
            result.append(row)
    return tuple(result)


def _with_result_of(trial: FlagTrial, other: FlagTrial) -> FlagTrial:
    """Return a trial with the result that another run has for the same change."""
    if (other.key, other.moved_bytes) != (trial.key, trial.moved_bytes):
        return trial
    if other.restored_bytes is None:
        return msgspec.structs.replace(trial, why=other.why or trial.why)
    return with_result(trial, other.restored_bytes)


def with_result(trial: FlagTrial, restored_bytes: int) -> FlagTrial:
    """Return a trial of a known change with what base's flag undoes of it."""
    return msgspec.structs.replace(
        trial,
        status=status_of(restored_bytes, trial.moved_bytes or 0),
        why="",
        restored_bytes=restored_bytes,
    )


class _Build(NamedTuple):
    """A build whose sides have different flags."""

    delta: CellDelta
    is_only: bool  # True if its sides differ in one flag and in nothing else

    @property
    def moved_bytes(self) -> int:
        """Return the change of its code size; 0 if that is not certain."""
        size = self.delta.metrics.get(SIZE)
        if size is None or self.delta.unstable:
            return 0
        return size.change or 0


def _trial_of(
    builds: Sequence[_Build], backend: str | None, backends: Mapping[str, str]
) -> FlagTrial:
    """Return what the comparison proves of a flag in which these builds differ.

    Args:
        backend: the only one that the flag is for; None if it is for any.
        backends: target → its backend.
    """
    is_only = all(build.is_only for build in builds)
    changed = []
    for build in builds:
        has_option = backend in (None, backends.get(build.delta.key.target))
        if build.moved_bytes and (has_option or is_only):
            changed.append(build)
    if not changed:
        reason = "no deterministic build that has the option changed its code size"
        return FlagTrial("not-tried", why=reason, only=is_only)
    largest = min(changed, key=_largest_first)
    trial = FlagTrial(
        "not-tried",
        why=NO_COMPILER,
        moved_bytes=largest.moved_bytes,
        model=largest.delta.key.model,
        target=largest.delta.key.target,
    )
    if not is_only:
        return trial
    return msgspec.structs.replace(
        trial, status="proved", why="", only=True, restored_bytes=largest.moved_bytes
    )


def _largest_first(build: _Build) -> tuple[int, CellKey]:
    return -abs(build.moved_bytes), build.delta.key


def _is_only_difference(
    base: Snapshot, head: Snapshot, delta: CellDelta, change: FlagChange
) -> bool:
    """Return whether a build's sides differ in one flag and in nothing else.

    It is False if one of their inputs is not known.
    """
    if delta.base is None or delta.head is None or len(change) != 1:
        return False
    removed, added = change[0]
    if _without(delta.base, removed) != _without(delta.head, added):
        return False
    return same_but_for_flags(base, head, delta.base, delta.head)


def _without(cell: Cell, flag: str) -> list[str]:
    """Return all words of a build's command but the model's path and one flag."""
    words = list(_words_of(cell) or ())
    if flag in words:
        words.remove(flag)
    return words


def _option(flag: str) -> str:
    return flag.partition("=")[0]


def _flags_of(cell: Cell | None) -> tuple[str, ...] | None:
    """Return the flags of a build's command; None if it cannot be read."""
    words = _words_of(cell)
    if words is None:
        return None
    return tuple(word for word in words if word.startswith("--"))


def _words_of(cell: Cell | None) -> tuple[str, ...] | None:
    """Return the words of a build's command before the model's path.

    Where the stack gate refused a build, the bot itself added the flag that lifts the
    limit, so this flag is left out. None without a command that can be read.
    """
    if cell is None:
        return None
    words = _words_in(cell.command)
    if words is None or cell.status != "over-stack-limit":
        return words
    return tuple(word for word in words if word != LIFTED_LIMIT_FLAG)


@lru_cache(maxsize=1)
def _words_in(command: str) -> tuple[str, ...] | None:
    """Return the words of a command; remembered, as both sides often have the same."""
    arguments = command.partition(" < ")[0]
    try:
        if _QUOTED.search(arguments):
            words = shlex.split(arguments)
        else:
            words = arguments.split()
    except ValueError:
        return None
    return tuple(words) or None
