"""One run of an artifact: its outputs as files, or why there are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.core.rules.lasting import here
from bot.measurement.running.feeding import Feed
from bot.measurement.running.runtime import Runtime
from bot.readers.interfaces import Function, parsed
from bot.system.processes import Cancel, Outcome, run

DEVICE = "local-sync"
"""The one that computes in the thread that calls it: what else the machine does decides less."""
_SAID_CHARACTERS = 200
_DIRECTORIES = re.compile(r"(?<![\w.])/(?:[^\s/:'\"]+/)+")
_NOT_ITS_FAULT = {"SIGILL": ": this processor lacks an instruction", "SIGKILL": ": memory ran out, most likely"}
"""Signals that tell more of the machine than of what ran on it."""
_RAN_OUT = re.compile(r"RESOURCE_EXHAUSTED|out of memory|bad_alloc|Cannot allocate memory|No space left", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run without outputs.

    Attributes:
        why: how it ended, as what follows the name of the artifact.
        is_own: False where the machine, and not the artifact, is to blame.
        is_refused: True where the runtime, or the program itself, said no.
        is_late: True where the time limit ended it.
    """

    why: str
    is_own: bool = True
    is_refused: bool = False
    is_late: bool = False


def execute(
    runtime: Runtime, artifact: Path, feed: Feed, draw: int, outputs: Path, cancel: Cancel, timeout_seconds: float
) -> list[Path] | Stopped:
    """Run it once; the files of its results below `outputs`, in order."""
    outputs.mkdir(parents=True, exist_ok=True)
    files = [outputs / f"{number}.bin" for number in range(len(feed.results))]
    flags = [f"--output=@{file}" for file in files] or ["--output="]
    argv = [runtime.run_module, *calling(artifact, feed, draw), *flags]
    ended = started(runtime, argv, feed, cancel, timeout_seconds)
    if isinstance(ended, Stopped):
        return ended
    lost = [number for number, file in enumerate(files) if not file.is_file()]
    return Stopped(f"gave no output {lost[0]}") if lost else files


def twice(module: str, function: Function) -> str:
    """A module of the VM's own operations, whose function of the same name calls a module's function twice in turn."""
    taken, given = (tuple(map(_passed, texts)) for texts in (function.arguments, function.results))
    names = [f"%a{number}" for number in range(2 * len(taken))]
    calls = [names[: len(taken)], names[len(taken) :]]
    heads = [f"%r{call}:{len(given)} = " if given else "" for call in range(2)]
    results = ", ".join(f"%r{call}#{number}" for call in range(2) for number in range(len(given)))
    own, both = ", ".join(given), ", ".join(given * 2)
    callee = f'@"{module}.{function.name}"'
    lines = [
        "vm.module @twice {",
        f"  vm.import private {callee}({', '.join(f'%a{at} : {kind}' for at, kind in enumerate(taken))}) -> ({own})",
        f'  vm.export @"{function.name}"',
        f'  vm.func private @"{function.name}"'
        f"({', '.join(f'{name} : {kind}' for name, kind in zip(names, taken * 2, strict=True))}) -> ({both}) {{",
        *(
            f"    {head}vm.call {callee}({', '.join(call)}) : ({', '.join(taken)}) -> ({own})"
            for head, call in zip(heads, calls, strict=True)
        ),
        f"    vm.return {results} : {both}" if given else "    vm.return",
        "  }",
        "}",
    ]
    return "\n".join(lines)


def _passed(text: str) -> str:
    tensor = parsed(text)
    if tensor is None or not tensor.is_scalar:
        return f"!vm.ref<{text if text.startswith('!') else '!hal.buffer_view'}>"
    return f"{'f' if tensor.is_float else 'i'}{64 if (tensor.bits or 0) > 32 else 32}"


def calling(artifact: Path, feed: Feed, draw: int) -> list[str]:
    """What both programs are told: device, artifact, function, parameters, arguments."""
    return [f"--device={DEVICE}", f"--module={artifact.absolute()}", *feed.draws[draw]]


def started(
    runtime: Runtime,
    argv: Sequence[str],
    feed: Feed,
    cancel: Cancel,
    timeout_seconds: float,
    stdout: Path | None = None,
) -> Outcome | Stopped:
    """Run one of the runtime's programs to its good end, or say how it ended."""
    try:
        outcome = run(argv, cancel=cancel, cwd=feed.directory, stdout=stdout, timeout_seconds=timeout_seconds)
    except OSError as error:
        return Stopped(here(f"the runtime cannot be started: {error.strerror or error}"), is_own=False)
    if outcome.ok:
        return outcome
    if outcome.timed_out:
        return Stopped(f"did not end within {timeout_seconds:g} s", is_late=True)
    if outcome.signal:
        means = _NOT_ITS_FAULT.get(outcome.signal, "")
        return Stopped(f"was ended by {outcome.signal}{means}", is_own=not means)
    why = f"was refused by {runtime.name}: {_first_words(outcome.output)}"
    is_machine = _RAN_OUT.search(outcome.output)
    return Stopped(here(why) if is_machine else why, is_own=not is_machine, is_refused=True)


def _first_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("EXEC ")]
    said = _DIRECTORIES.sub("", re.sub(r"\A\S+:\d+: ", "", lines[0])) if lines else "it gave no reason"
    return said if len(said) <= _SAID_CHARACTERS else f"{said[: _SAID_CHARACTERS - 1]}…"
