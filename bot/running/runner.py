"""IREE's runtime, which the extra `run` brings: its programs, and which artifacts they can run on this machine."""

from __future__ import annotations

import platform
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from bot.compiler.toolchain import RUNTIME, fetch_release
from bot.core.backends import backend_of
from bot.core.fold import Price
from bot.core.policy import here
from bot.core.spec import Places
from bot.readers.ir_facts import CompiledFor, Function, Interface, parsed
from bot.running.comparing import FEWEST_PAIRS, Equality, judged, microseconds, price_of
from bot.running.feeding import Feed, called, compare, feed
from bot.system.defaults import cores
from bot.system.files import temporary_directory
from bot.system.processes import Cancel, Outcome, run

PACKAGE = RUNTIME
HOW_TO_GET_IT = "pip install 'code-size-bot[run]'"
MISSING = here(f"IREE's runtime is not installed: {HOW_TO_GET_IT}")
_PROGRAM = "iree-run-module"
_NATIVE = f"iree/_runtime_libs/{_PROGRAM}"
"""The program itself; the package's other one of this name is a script that takes a second to start it."""
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm_64", "arm64": "arm_64", "riscv64": "riscv_64"}
"""What this machine may call itself → what the compiler calls it in the name of a format."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One runtime: the directory of its programs, and the version of its package."""

    directory: Path
    version: str

    @property
    def name(self) -> str:
        """`iree-base-runtime 3.13.0`."""
        return f"{PACKAGE} {self.version}"

    @property
    def run_module(self) -> str:
        """Runs a function once."""
        return str(self.directory / _PROGRAM)

    @property
    def benchmark_module(self) -> str:
        """Runs it often, and says how long that took."""
        return str(self.directory / "iree-benchmark-module")

    @property
    def cpuinfo(self) -> str:
        """Says what the processor has, in LLVM's names."""
        return str(self.directory / "iree-cpuinfo")


@cache
def installed() -> Runtime | None:
    """The runtime of this environment; None without the package, or where it has no programs for this machine."""
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        return None
    for file in package.files or ():
        program = Path(str(file.locate()))
        if str(file) == _NATIVE and program.is_file():
            return Runtime(program.parent, package.version)
    return None


def of_release(version: str, cache: Path, cancel: Cancel, say: Callable[[str], None], places: Places) -> Runtime:
    """The runtime of a release: an artifact may ask its own release's runtime for what no other has.

    Raises CompilerUnavailable where it cannot be had.
    """
    here = installed()
    if here is not None and here.version == version:
        return here
    root = fetch_release(version, cache.absolute(), cancel, say, places, RUNTIME)
    return Runtime((root / _NATIVE).parent, version)


def machine(runtime: Runtime) -> str:
    """What ran the artifacts, in one line."""
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        said = ""
    named = re.search(r"^model name\s*:\s*(\S.*?)\s*$", said, flags=re.MULTILINE)
    processor = named[1] if named else platform.processor() or platform.machine()
    return f"{processor}, {cores()} cores, {runtime.name}"


def refusal(targets: Sequence[CompiledFor], runtime: Runtime, cancel: Cancel) -> str | None:
    """Why this machine does not run what was compiled for these; None where it does, as far as can be told before.

    The runtime itself refuses the code of another kind of processor. It does not look at what the code asks of a
    processor of this kind: one that lacks it is ended by a signal, or does something else than was meant.
    """
    if len(targets) != 1:
        return f"the program is compiled for {len(targets)} targets, and can be run on one"
    target = targets[0]
    runs_on = backend_of(target.backend).runs_on
    if runs_on == "any processor":
        return None
    if runs_on == "its device":
        return here(f"{target.backend} code needs its device, and the processor is none")
    own = _MACHINES.get(platform.machine().lower(), platform.machine())
    if not target.format.endswith(f"-{own}"):
        return here(f"a processor of kind {own} does not run {target.format}")
    lacking = _lacking(runtime, cancel)
    missing = [name[1:] for name in target.features if name.startswith("+") and name[1:] in lacking]
    return here(f"the processor has no {', '.join(missing)}, for which it is compiled") if missing else None


def _lacking(runtime: Runtime, cancel: Cancel) -> frozenset[str]:
    try:
        outcome = run([runtime.cpuinfo], cancel=cancel, timeout_seconds=60)
    except OSError:
        return frozenset()
    rows = [line.split() for line in outcome.output.splitlines()] if outcome.ok else []
    return frozenset(row[0] for row in rows if len(row) == 2 and row[1] == "0")


# One run of an artifact: its outputs as files, or why there are none.


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
    lines = [line.strip() for line in outcome.output.splitlines() if line.strip() and not line.startswith("EXEC ")]
    said = _DIRECTORIES.sub("", re.sub(r"\A\S+:\d+: ", "", lines[0])) if lines else "it gave no reason"
    said = said if len(said) <= _SAID_CHARACTERS else f"{said[: _SAID_CHARACTERS - 1]}…"
    why = f"was refused by {runtime.name}: {said}"
    is_machine = _RAN_OUT.search(outcome.output)
    return Stopped(here(why) if is_machine else why, is_own=not is_machine, is_refused=True)


# Instructions that one run of an artifact retires, where this machine's kernel counts them and `perf` is there.
#
# A count hardly depends on what else the machine does, as a time does. What starting the program and loading the
# artifact take is in every run alike: it is measured once with few repetitions and once with more, and the difference
# is told.


PERF = "perf"
_FEW, _MORE = 1, 5


def retired(runtime: Runtime, artifact: Path, fed: Feed, cancel: Cancel, timeout_seconds: float) -> int | str:
    """User-mode instructions of one run, or why they are not known."""
    if why := _refusal(cancel):
        return why
    counts = []
    for repetitions in (_FEW, _MORE):
        how = ["--benchmark_format=json", f"--benchmark_min_time={repetitions}x"]
        argv = [runtime.benchmark_module, *calling(artifact, fed, 0), *how]
        count = _counted(argv, fed.directory, cancel, timeout_seconds)
        if isinstance(count, str):
            return count
        counts.append(count)
    count = (counts[1] - counts[0]) // (_MORE - _FEW)
    return count if count > 0 else here(f"instructions are not counted: {_MORE} runs took no more than {_FEW}")


@lru_cache(maxsize=1)
def _refusal(cancel: Cancel) -> str:
    """Why nothing is counted here; empty where it is. Asked once, of a program that does nothing."""
    with temporary_directory("perf-") as directory:
        count = _counted(["true"], directory, cancel, 60)
    return count if isinstance(count, str) else ""


def _counted(argv: list[str], cwd: Path, cancel: Cancel, timeout_seconds: float) -> int | str:
    with temporary_directory("perf-") as directory:
        counts, heard = directory / "counts.csv", directory / "output.txt"
        command = [PERF, "stat", "-x,", "-e", "instructions:u", "-o", str(counts), "--", *argv]
        try:
            outcome = run(command, cancel=cancel, cwd=cwd, stdout=heard, timeout_seconds=timeout_seconds)
        except OSError:
            return here("perf, which counts instructions, is not installed")
        if not outcome.ok or not counts.is_file():
            said = " ".join(outcome.output.split())[:120]
            return here(f"instructions are not counted: {said or 'perf failed'}")
        return count_of(counts.read_text(encoding="utf-8", errors="replace"))


def count_of(report: str) -> int | str:
    """The count in what `perf stat -x,` writes: value, unit, event, and more; or why there is none."""
    rows = [line.split(",") for line in report.splitlines() if line and not line.startswith("#")]
    counts = [row[0].strip() for row in rows if len(row) > 2 and row[2].startswith("instructions")]
    if len(counts) == 1 and counts[0].isdecimal():
        return int(counts[0])
    return here(f"instructions are not counted: the kernel says {counts[0][:40] if counts else 'nothing'}")


# Two artifacts of one program, run on this machine: whether they give the same, and which of them is faster.
#
# The artifacts are run as they are: machine code that a compiler made of a model. Whoever does not trust the two does
# not trust the artifacts. They see no secret, but they can read what this user can.


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
            self._feeds[before] = self._new_feed(before)
        return self._feeds[before]

    def _new_feed(self, before: Path) -> Feed | str:
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
        ran = self._execute(before, feeds[0], draw, outputs / "before")
        if isinstance(ran, Stopped):
            why = f"{self._names['before']} {ran.why}, {inputs}"
            return None if draw and ran.is_own else Equality(None, why)
        taken = time.monotonic() - start
        ran_after = self._execute(after, feeds[1], draw, outputs / "after")
        if isinstance(ran_after, Stopped):
            is_only_slow = ran_after.is_late and taken * _MUCH_LONGER > self._timeout_seconds
            equal = False if ran_after.is_own and not is_only_slow else None
            return Equality(equal, f"{self._names['after']} {ran_after.why}, {inputs}")
        return [(str(one), str(other)) for one, other in zip(ran, ran_after, strict=True)]

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
