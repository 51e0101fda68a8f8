"""Two artifacts of one program, run on this machine: whether they give the same, and which of them is faster.

The artifacts are run as they are: machine code that a compiler made of a model. Whoever does not trust the two does not
trust the artifacts. They see no secret, but they can read what this user can.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bot.core.folds.fold_values import Price
from bot.core.rules.lasting import here
from bot.measurement.running.arrays import compare
from bot.measurement.running.comparing import Equality, judged
from bot.measurement.running.executing import Stopped, calling, execute, started, twice
from bot.measurement.running.feeding import Feed, called, feed
from bot.measurement.running.pricing import FEWEST_PAIRS, microseconds, price_of
from bot.measurement.running.retiring import retired
from bot.measurement.running.runtime import Runtime, refusal
from bot.readers.interfaces import Interface
from bot.system.files import temporary_directory
from bot.system.processes import Cancel

DYNAMIC_SIZES = (16, 64, 128, 1)
"""What dimensions are made that are not fixed: the first of these with which the artifact before runs."""
DRAWS = 3
PAIRS = 12
LONG_SECONDS = 120
"""When that much time has gone, nothing is repeated that need not be."""
_FEWEST_DRAWS = 2
_MUCH_LONGER = 10
"""An artifact that takes so many times as long as the other is not merely slow: it does not end."""
_SHORTEST_SECONDS = 0.2
"""How long each process of a pair repeats the function, at least."""


PAIR_SECONDS = 60
TOO_LONG = "a single pair of runs takes too long for several of them"


class Runner:
    """Runs artifacts of one program on one machine.

    Attributes:
        reason: why none of them can be run; None where they can, as far as is known before.
    """

    def __init__(
        self,
        runtime: Runtime,
        interface: Interface,
        directory: Path,
        cancel: Cancel,
        *,
        timeout_seconds: float = 600,
        draws: int = DRAWS,
        long_seconds: float = LONG_SECONDS,
        pair_seconds: float = PAIR_SECONDS,
        names: tuple[str, str] = ("the artifact before folding", "the artifact after folding"),
        runtimes: Mapping[Path, Runtime] | None = None,
        compiled: Callable[[Path, str], Path | str] | None = None,
    ) -> None:
        """Prepare it.

        Args:
            interface: of the program at the end of the flow phase, for the target of the artifacts.
            directory: where the random data are kept, about as large as the parameters; programs with the same
                parameters share them, and nobody removes them.
            timeout_seconds: for each run.
            draws: random inputs; a quantised program gets one more, with other parameters.
            long_seconds: after which neither draws nor pairs are added to the fewest that there must be.
            pair_seconds: what the first pair of a price may take; after a longer one there is none.
            names: what the artifacts before and after are called where one of them does not run.
            runtimes: artifact → the runtime that runs it, where that is another one.
            compiled: gives a module of the VM's own operations that is run beside this artifact, or why there is none;
                without it a program that remembers is called once.
        """
        self._runtime, self._interface, self._directory = runtime, interface, directory.absolute()
        self._cancel, self._timeout_seconds, self._draws = cancel, timeout_seconds, draws
        self._long_seconds, self._pair_seconds = long_seconds, pair_seconds
        self._runtimes = runtimes if runtimes is not None else {}
        self._compiled = compiled
        self._names = dict(zip(("before", "after"), names, strict=True))
        self._called = called(interface)
        self._feeds: dict[Path, Feed | str] = {}
        self.reason = refusal(interface.targets, runtime, cancel)
        if self.reason is None and isinstance(self._called, str):
            self.reason = self._called

    def outputs_equal(self, before: Path, after: Path) -> Equality:
        """Whether both give the same on the same random inputs and parameters.

        A program whose result hides what it computed (a quantised one that ends in a softmax) proves nothing: ask it
        of both programs' probed forms (the IR worker's request `probe`), and `interface` be that of such a one.
        """
        fed = self._feed(before)
        if isinstance(fed, str):
            return Equality(None, fed)
        if not self._interface.remembers:
            return self._compare(before, after, fed, fed)
        twice = [self._twice(fed, artifact) for artifact in (before, after)]
        why = next((each for each in twice if isinstance(each, str)), "")
        feeds = [each for each in twice if isinstance(each, Feed)]
        of_two = Equality(None, why) if why else self._compare(before, after, *feeds)
        if of_two.equal is not None:
            return of_two
        once = self._compare(before, after, fed, fed)
        return once._replace(equal_note=f"{once.equal_note}; of first calls alone: {of_two.equal_note}")

    def _twice(self, fed: Feed, artifact: Path) -> Feed | str:
        """How to call the function twice, of which the second call sees what the first has left; or why that cannot be.

        The second is given what the run before was, so that it is no repetition.
        """
        module = (
            "nobody compiles a second call"
            if self._compiled is None
            else self._compiled(artifact, twice(self._interface.module, self._interface.functions[0]))
        )
        if isinstance(module, str):
            return module
        inputs = [tuple(flag for flag in draw if flag.startswith("--input=")) for draw in fed.draws]
        draws = [
            (f"--module={module.absolute()}", *draw, *inputs[max(0, number - 1)])
            for number, draw in enumerate(fed.draws)
        ]
        return replace(fed, draws=tuple(draws), results=fed.results * 2, calls=2)

    def _compare(self, before: Path, after: Path, *feeds: Feed) -> Equality:
        fed = feeds[0]
        with temporary_directory("outputs-", self._directory) as outputs:
            runs: dict[int, list[tuple[str, str]]] = {}
            for draw in self._unless_long(len(fed.draws), _FEWEST_DRAWS):
                ran = self._both(before, after, feeds, draw, outputs / str(draw))
                if isinstance(ran, Equality):
                    return ran
                if ran is not None:
                    runs[draw] = ran
            requests = [
                {"element": element, "draws": [run[number] for run in runs.values()]}
                for number, element in enumerate(fed.results)
            ]
            compared = compare(requests, outputs, self._cancel)
        if isinstance(compared, str):
            return Equality(None, compared)
        return judged(compared, fed.results, _inputs(fed, runs), fed.calls)

    def price(self, before: Path, after: Path, pairs: int = PAIRS) -> Price | str:
        """Their times, or the reason why there are none.

        A pair is two processes, one after the other, of which the first is now this artifact and then that; the first
        pair of all only warms up.

        `pairs`: at least FEWEST_PAIRS, or ValueError.
        """
        if pairs < FEWEST_PAIRS:
            raise ValueError(f"{pairs} pairs, of at least {FEWEST_PAIRS}")
        fed = self._feed(before)
        if isinstance(fed, str):
            return fed
        times: list[tuple[float, float]] = []
        start = time.monotonic()
        for number in self._unless_long(pairs + 1, FEWEST_PAIRS + 1):
            if number == 1 and time.monotonic() - start > self._pair_seconds:
                return TOO_LONG
            pair = self._pair(before, after, fed, is_swapped=number % 2 == 1)
            if isinstance(pair, str):
                return pair
            times.append(pair)
        return price_of(times[1:])

    def instructions(self, before: Path, artifact: Path) -> int | str:
        """Instructions of one run of an artifact, on what the artifact before runs on; or why they are not counted."""
        fed = self._feed(before)
        if isinstance(fed, str):
            return fed
        return retired(self._runtimes.get(artifact, self._runtime), artifact, fed, self._cancel, self._timeout_seconds)

    def _unless_long(self, most: int, fewest: int) -> Iterator[int]:
        start = time.monotonic()
        for number in range(most):
            if number >= fewest and time.monotonic() - start > self._long_seconds:
                return
            yield number

    def _feed(self, before: Path) -> Feed | str:
        if before not in self._feeds:
            self._feeds[before] = self._found(before)
        return self._feeds[before]

    def _found(self, before: Path) -> Feed | str:
        if self.reason is not None or isinstance(self._called, str):
            return self.reason or str(self._called)
        function, is_dynamic = self._called
        first = ""
        for size in DYNAMIC_SIZES if is_dynamic else (None,):
            fed = feed(self._interface, function, size, self._draws, self._directory, self._cancel)
            if isinstance(fed, str) or not is_dynamic:
                return fed
            with temporary_directory("outputs-", self._directory) as outputs:
                tried = self._execute(before, fed, 0, outputs)
            if not isinstance(tried, Stopped) or not tried.is_refused:
                return fed
            first = first or f"{self._names['before']} {tried.why} (dynamic dimensions: {size})"
        return first

    def _execute(self, artifact: Path, fed: Feed, draw: int, outputs: Path) -> list[Path] | Stopped:
        runtime = self._runtimes.get(artifact, self._runtime)
        return execute(runtime, artifact, fed, draw, outputs, self._cancel, self._timeout_seconds)

    def _both(
        self, before: Path, after: Path, feeds: Sequence[Feed], draw: int, outputs: Path
    ) -> list[tuple[str, str]] | Equality | None:
        """The files of one draw, before and after for each output; or the verdict where one artifact does not run.

        None where it is the one before that refuses these data, and did not refuse those of the first draw.
        """
        start, inputs = time.monotonic(), _inputs(feeds[0], range(draw + 1))
        left = self._execute(before, feeds[0], draw, outputs / "before")
        if isinstance(left, Stopped):
            why = f"{self._names['before']} {left.why}, {inputs}"
            return None if draw and left.is_own else Equality(None, why)
        taken = time.monotonic() - start
        right = self._execute(after, feeds[1], draw, outputs / "after")
        if isinstance(right, Stopped):
            is_only_slow = right.is_late and taken * _MUCH_LONGER > self._timeout_seconds
            equal = False if right.is_own and not is_only_slow else None
            return Equality(equal, f"{self._names['after']} {right.why}, {inputs}")
        return [(str(one), str(other)) for one, other in zip(left, right, strict=True)]

    def _pair(self, before: Path, after: Path, fed: Feed, *, is_swapped: bool) -> tuple[float, float] | str:
        order = [(before, "before"), (after, "after")]
        times: dict[str, float] = {}
        for artifact, name in reversed(order) if is_swapped else order:
            timed = self._timed(artifact, fed)
            if isinstance(timed, str):
                return f"{self._names[name]} {timed}"
            times[name] = timed
        return times["before"], times["after"]

    def _timed(self, artifact: Path, fed: Feed) -> float | str:
        with temporary_directory("report-", self._directory) as directory:
            report = directory / "report.json"
            how = ["--benchmark_format=json", f"--benchmark_min_time={_SHORTEST_SECONDS}s"]
            runtime = self._runtimes.get(artifact, self._runtime)
            argv = [runtime.benchmark_module, *calling(artifact, fed, 0), *how]
            ended = started(runtime, argv, fed, self._cancel, self._timeout_seconds, stdout=report)
            if isinstance(ended, Stopped):
                return ended.why
            timed = microseconds(report.read_bytes())
            return here(f"was not timed: {timed}") if isinstance(timed, str) else timed


def _inputs(fed: Feed, runs: Collection[int]) -> str:
    """On what these runs were: how many, what was drawn for them, and how often they were called."""
    counts = Counter(fed.drawn[run] for run in runs)
    what = ("input", "inputs") if fed.has_inputs else ("set of parameters", "sets of parameters")
    if not any(counts):
        return "in its only run, as it is given nothing" if len(fed.draws) == 1 else f"in {len(runs)} runs"
    said = [f"{f'{count} of ' if len(counts) > 1 else 'of '}{drawn}" for drawn, count in counts.items()]
    drawn = f"on {len(runs)} random {what[len(runs) != 1]}{': ' if len(said) > 1 else ' '}{'; '.join(said)}"
    sizes = f", with dynamic dimensions of {fed.dynamic}" if fed.dynamic else ""
    return f"{drawn}{sizes}{', called twice on each' if fed.calls > 1 else ''}"
