"""`calibrate --replay`: what the thresholds of a configuration would have said of changes that were measured before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from bot.commands.history.candidates import expanded
from bot.config.configuration import load_config
from bot.core.codec.kinds import Headed
from bot.core.history.history_values import HISTORY_SCHEMA
from bot.core.history.replaying import counts, least_levels, replayed, sides_of
from bot.core.values.snapshot import Snapshot
from bot.errors import InputError, UsageError
from bot.measurement.prepare import Request, load_snapshot, selected
from bot.render.terminal.replay_text import replay_lines
from bot.system.files import whole_or_nothing

UNSEEN = "a history has statuses and metrics alone: other bytes of the same size and edited models are not seen"
_Side = tuple[str, Snapshot | None]


def replay(request: Request, files: Sequence[Path], most: int | None, say: Callable[[str], None]) -> list[str]:
    """The lines to print; nothing is compiled.

    Args:
        files: snapshots in their order, directories of them, or one history.
        most: in how many steps a rule may alarm at most, for the smallest level that does so; None to leave that out.
    """
    config = load_config(request.config, models=False)
    sides = _history(files, say) if _is_history(files[0]) else _snapshots(files)
    gaps: list[str] = []
    narrowed = _narrowed(sides, request, gaps)
    steps = list(replayed(narrowed, config.thresholds, config.states, config.noise))
    least = [] if most is None else least_levels(steps, most)
    return list(replay_lines(steps, gaps, counts(steps), least, most))


def _narrowed(sides: Iterable[_Side], request: Request, gaps: list[str]) -> Iterator[_Side]:
    """The selected cells of each side; names of those that could not be had go to `gaps`."""
    must_match = True
    for name, side in sides:
        if side is None:
            gaps.append(name)
            yield name, None
        else:
            yield name, selected({name: side}, request, must_match=must_match)[name]
            must_match = False


def _is_history(path: Path) -> bool:
    try:
        return msgspec.json.decode(whole_or_nothing(path), type=Headed).schema == HISTORY_SCHEMA
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _history(files: Sequence[Path], say: Callable[[str], None]) -> list[_Side]:
    if len(files) > 1:
        raise UsageError("a history is replayed alone", where=f"--replay {files[0]}", hint="leave out the other files")
    try:
        sides = sides_of(files[0].read_bytes(), str(files[0]))
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text, so no history", where=str(files[0])) from None
    _require_two([name for name, side in sides if side], str(files[0]))
    say(UNSEEN)
    return sides


def _snapshots(files: Sequence[Path]) -> Iterator[_Side]:
    """One at a time: a snapshot of many cells is large."""
    paths = [spec for file in files for spec in expanded(str(file))]
    _require_two(paths, " ".join(paths))
    return ((path, load_snapshot(Path(path))) for path in paths)


def _require_two(names: Sequence[str], where: str) -> None:
    if len(names) < 2:
        raise UsageError(f"holds {len(names)} of the two that a step has", where=where, hint="name more snapshots")
