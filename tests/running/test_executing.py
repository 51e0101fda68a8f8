"""bot.running.runner: how a run that gives nothing is told."""

from __future__ import annotations

from pathlib import Path

from bot.running.feeding import Feed
from bot.running.runner import Runtime, Stopped, started
from bot.system.processes import Cancel

SAID = "iree/vm/module.c:12: INVALID_ARGUMENT; bytecode version mismatch; loading module at '/tmp/fold-x1/4.vmfb'; a/b"


def test_what_a_runtime_says_is_told_without_the_places_of_this_machine(tmp_path: Path) -> None:
    fed = Feed(tmp_path, ((),), ("",), True, (), None)
    argv = ["/bin/sh", "-c", f'echo "{SAID}"; exit 1']
    ended = started(Runtime(tmp_path, "3.13.0"), argv, fed, Cancel(), 20)
    why = "INVALID_ARGUMENT; bytecode version mismatch; loading module at '4.vmfb'; a/b"
    assert ended == Stopped(f"was refused by iree-base-runtime 3.13.0: {why}", is_own=True, is_refused=True)
