"""Compare two artifacts of one program: whether outputs are equal, and which is faster.

IREE's runtime runs them on this machine.

The extra `run` brings the runtime. The artifacts are machine code that a compiler made
of a model. Run them only if you trust both the compiler and the model. They see no
secret, but they can read what this user can.
"""

from __future__ import annotations

import math
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from bot.compiler.diagnostics import DIRECTORIES
from bot.compiler.machine_limits import NO_MEMORY, RAN_OUT_LIKELY
from bot.compiler.ptxas import program_of
from bot.compiler.this_processor import cpuinfo
from bot.compiler.wheels import RUNTIME, fetch_release
from bot.core.backends import backend_of
from bot.core.json_text import decoded
from bot.core.record import Small
from bot.core.runs import Price, Run
from bot.core.spec import Places
from bot.core.this_machine import here
from bot.errors import InputError
from bot.readers.ir_facts import CompiledFor, Interface
from bot.running.feeding import Draw, Feed, Output, compare, feed, not_called
from bot.system.cancel import Cancel
from bot.system.defaults import cores
from bot.system.files import temporary_directory
from bot.system.processes import Outcome, run

PACKAGE = RUNTIME
HOW_TO_GET_IT = "pip install 'code-size-bot[run]'"
MISSING = here(f"IREE's runtime is not installed: {HOW_TO_GET_IT}")
_PROGRAM = "iree-run-module"
_NATIVE = f"iree/_runtime_libs/{_PROGRAM}"
"""The program itself.

The package also has a script of this name, which takes a second to start it.
"""
_MACHINES = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "arm_64",
    "arm64": "arm_64",
    "riscv64": "riscv_64",
}
"""Name of this machine → the compiler's name for it in the name of a format."""
# It computes in the calling thread, so other load on the machine disturbs times less.
DEVICE = "local-sync"
_SAID_CHARACTERS = 200
_NOT_ITS_FAULT = {
    "SIGILL": ": this processor lacks an instruction",
    "SIGKILL": f": {RAN_OUT_LIKELY}",
}
"""Signals that say more about the machine than about the artifact."""
_RAN_OUT = re.compile(
    rf"RESOURCE_EXHAUSTED|{NO_MEMORY.pattern}|No space left", re.IGNORECASE
)
DYNAMIC_SIZE = 16
"""The size that dimensions get if they are not fixed."""
# The time limit of a run: an interpreter needs minutes for one second of native code.
RUN_SECONDS = 120
DRAWS = 3
PAIRS = 12
FEWEST_PAIRS = 6
"""With fewer pairs, not even all ratios hold the median with CONFIDENCE."""
CONFIDENCE = 0.95
PAIR_SECONDS = 60
"""The time limit of the first pair.

Draws and pairs are counted, so that a slow machine runs as many.
"""
# an artifact that takes so many times as long as the other is not merely slow: it does
# not end
_MUCH_LONGER = 10
# how long each process of a pair repeats the function, at least
_SHORTEST_SECONDS = 0.2
TOO_LONG = "one pair of runs takes too long to repeat it"
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_ALLOWED = {"f64": 1e-4, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2}
"""The largest difference that another order of the same operations may make.

It is a share of the largest magnitude of an output. An `f64` may have been computed in
`f32`. Elements that are not here have to be the same to the bit.
"""
NOTHING = "nothing to compare"
"""The beginning of the note if outputs would be equal whatever was computed."""
HAS_STATE = "has state: one call changes the result of the next call"


class Runtime(NamedTuple):
    """A runtime: the directory of its programs, and the version of its package."""

    directory: Path
    version: str

    @property
    def name(self) -> str:
        """Return package and version, as in `iree-base-runtime 3.13.0`."""
        return f"{PACKAGE} {self.version}"


@cache
def installed() -> Runtime | None:
    """Return the runtime of this environment.

    None without the package, or if it has no programs for this machine.
    """
    program = program_of(PACKAGE, _NATIVE)
    if program:
        return Runtime(program[0].parent, program[1])
    return None


def of_release(
    version: str,
    cache: Path,
    cancel: Cancel,
    say: Callable[[str], None],
    places: Places,
) -> Runtime:
    """Return the runtime of a release.

    An artifact may need the runtime of its own release.

    Raises CompilerUnavailable if the runtime cannot be had.
    """
    own = installed()
    if own is not None and own.version == version:
        return own
    root = fetch_release(
        version,
        cache=cache.absolute(),
        cancel=cancel,
        say=say,
        places=places,
        project=RUNTIME,
    )
    return Runtime((root / _NATIVE).parent, version)


def machine(runtime: Runtime) -> str:
    """Return the machine that ran the artifacts, in one line."""
    named = re.search(r"^model name\s*:\s*(\S.*?)\s*$", cpuinfo(), flags=re.MULTILINE)
    if named:
        processor = named[1]
    else:
        processor = platform.processor() or platform.machine()
    return f"{processor}, {cores()} cores, {runtime.name}"


def refusal(
    targets: Sequence[CompiledFor], runtime: Runtime, cancel: Cancel
) -> str | None:
    """Return why this machine does not run artifacts for these targets.

    None if it does, as far as can be known before. The runtime itself refuses the
    code of another kind of processor. It does not check the features that the code
    needs. Without them a signal ends the code, or it does something else than was
    meant.
    """
    if len(targets) != 1:
        return (
            f"the program is compiled for {len(targets)} targets, and the bot can run"
            " it for only one"
        )
    target = targets[0]
    runs_on = backend_of(target.backend).runs_on
    if runs_on == "any processor":
        return None
    if runs_on == "its device":
        return device_refusal(target.backend)
    own = _MACHINES.get(platform.machine().lower(), platform.machine())
    if not target.format.endswith(f"-{own}"):
        return here(f"a {own} processor does not run {target.format}")
    try:
        outcome = run(
            [str(runtime.directory / "iree-cpuinfo")], cancel=cancel, timeout_seconds=60
        )
    except OSError:
        return None
    if not outcome.ok:
        return None
    lacking = _lacking(outcome.output)
    missing = []
    for name in target.features:
        if name in lacking:
            missing.append(name[1:])
    if not missing:
        return None
    return here(f"the processor lacks {', '.join(missing)}, which the code needs")


def _lacking(cpuinfo_output: str) -> set[str]:
    """Return the features that the processor lacks, by LLVM's names (`+avx512f`)."""
    lacking = set[str]()
    for line in cpuinfo_output.splitlines():
        row = line.split()
        if len(row) == 2 and row[1] == "0":
            lacking.add(f"+{row[0]}")
    return lacking


def device_refusal(backend: str) -> str:
    """Return why code for a device is not run."""
    return here(f"{backend} code needs its device, and does not run on a processor")


class Stopped(NamedTuple):
    """A run without outputs."""

    why: str  # how it ended, as what follows the name of the artifact
    is_own: bool = True  # False where the machine, and not the artifact, is to blame
    is_late: bool = False  # True where the time limit ended it


def started(
    runtime: Runtime,
    argv: Sequence[str],
    feed: Feed,
    cancel: Cancel,
    timeout_seconds: float,
    stdout: Path | None = None,
) -> Outcome | Stopped:
    """Run one of the runtime's programs to its good end, or return how it ended."""
    try:
        outcome = run(
            argv,
            cancel=cancel,
            cwd=feed.directory,
            stdout=stdout,
            timeout_seconds=timeout_seconds,
        )
    except OSError as error:
        return Stopped(
            here(f"the runtime cannot be started: {error.strerror or error}"),
            is_own=False,
        )
    if outcome.ok:
        return outcome
    if outcome.timed_out:
        return Stopped(f"did not end within {timeout_seconds:g} s", is_late=True)
    if outcome.signal:
        means = _NOT_ITS_FAULT.get(outcome.signal, "")
        return Stopped(f"was ended by {outcome.signal}{means}", is_own=not means)
    reason = f"was refused by {runtime.name}: {_refusal_message(outcome.output)}"
    if _RAN_OUT.search(outcome.output):
        return Stopped(here(reason), is_own=False)
    return Stopped(reason)


def _refusal_message(output: str) -> str:
    """Return the first line of a program's output that says why it failed."""
    message = "it gave no reason"
    for line in output.splitlines():
        if line.strip() and not line.startswith("EXEC "):
            without_place = re.sub(r"\A\S+:\d+: ", "", line.strip())
            message = DIRECTORIES.sub("", without_place)
            break
    if len(message) > _SAID_CHARACTERS:
        return f"{message[: _SAID_CHARACTERS - 1]}…"
    return message


def _argv(
    runtime: Runtime, program: str, artifact: Path, feed: Feed, draw: int
) -> list[str]:
    """Return the command: device, artifact, function, parameters and arguments."""
    path = str(runtime.directory / program)
    return [
        path,
        f"--device={DEVICE}",
        f"--module={artifact.absolute()}",
        *feed.draws[draw],
    ]


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
        timeout_seconds: float = RUN_SECONDS,
        names: tuple[str, str] = (
            "the artifact before folding",
            "the artifact after folding",
        ),
        runtimes: Mapping[Path, Runtime] | None = None,
    ) -> None:
        """Prepare it.

        `interface`: of the program at the end of the flow phase, for the target of the
        artifacts; `directory`: where the random data are kept, about as large as the
        parameters; programs with the same parameters share them, and nobody removes
        them; `timeout_seconds`: for each run; `names`: what the artifacts before and
        after are called where one of them does not run; `runtimes`: artifact → the
        runtime that runs it, where that is another one.
        """
        self._runtime = runtime
        self._interface = interface
        self._directory = directory.absolute()
        self._cancel = cancel
        self._timeout_seconds = timeout_seconds
        self._names = names
        self._runtimes = runtimes if runtimes is not None else {}
        self.reason = refusal(interface.targets, runtime, cancel) or not_called(
            interface
        )

    def outputs_equal(self, before: Path, after: Path) -> Equality:
        """Return whether both give the same on the same random inputs."""
        if self._interface.remembers:
            return Equality(None, HAS_STATE)
        fed = self._feed
        if isinstance(fed, str):
            return Equality(None, fed)
        with temporary_directory("outputs-", self._directory) as outputs:
            runs: list[list[tuple[str, str]]] = []
            for draw in range(len(fed.draws)):
                ran = self._both(
                    before, after=after, fed=fed, draw=draw, outputs=outputs / str(draw)
                )
                if isinstance(ran, Equality):
                    return ran
                if ran is not None:
                    runs.append(ran)
            requests = []
            for number, element in enumerate(fed.results):
                files = [run_files[number] for run_files in runs]
                requests.append({"element": element, "draws": files})
            compared = compare(requests, outputs, self._cancel)
        if isinstance(compared, str):
            return Equality(None, compared)
        return judged(compared, fed.results, _inputs(fed, len(runs)))

    def run(self, before: Path, after: Path) -> Run:
        """Compare the outputs of two artifacts, and time them in pairs."""
        equality = self.outputs_equal(before, after)
        price = self.price(before, after)
        if isinstance(price, Price):
            return Run(equality.equal, equality.equal_note, price)
        return Run(
            equal=equality.equal,
            equal_note=equality.equal_note,
            price=None,
            price_note=price,
        )

    def price(self, before: Path, after: Path, pairs: int = PAIRS) -> Price | str:
        """Return the times of two artifacts, or the reason why there are none.

        A pair is two processes, one after the other. The artifact that runs
        first changes from pair to pair. The first pair of all only warms up.
        """
        fed = self._feed
        if isinstance(fed, str):
            return fed
        times: list[tuple[float, float]] = []
        start = time.monotonic()
        for number in range(pairs + 1):
            if number == 1 and time.monotonic() - start > PAIR_SECONDS:
                return TOO_LONG
            pair = [0.0, 0.0]
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                timed = self._timed((before, after)[side], fed)
                if isinstance(timed, str):
                    return f"{self._names[side]} {timed}"
                pair[side] = timed
            times.append((pair[0], pair[1]))
        return price_of(times[1:])

    @cached_property
    def _feed(self) -> Feed | str:
        return self.reason or feed(
            self._interface,
            dynamic=DYNAMIC_SIZE,
            draws=DRAWS,
            directory=self._directory,
            cancel=self._cancel,
        )

    def _execute(
        self, artifact: Path, fed: Feed, draw: int, outputs: Path
    ) -> list[Path] | Stopped:
        """Run it once, and return the files of its results, which are in `outputs`."""
        runtime = self._runtimes.get(artifact, self._runtime)
        outputs.mkdir(parents=True, exist_ok=True)
        files = [outputs / f"{number}.bin" for number in range(len(fed.results))]
        flags = [f"--output=@{file}" for file in files] or ["--output="]
        argv = [
            *_argv(runtime, program=_PROGRAM, artifact=artifact, feed=fed, draw=draw),
            *flags,
        ]
        ended = started(
            runtime,
            argv=argv,
            feed=fed,
            cancel=self._cancel,
            timeout_seconds=self._timeout_seconds,
        )
        if isinstance(ended, Stopped):
            return ended
        for number, file in enumerate(files):
            if not file.is_file():
                return Stopped(f"did not give output {number}")
        return files

    def _both(
        self, before: Path, after: Path, fed: Feed, draw: int, outputs: Path
    ) -> list[tuple[str, str]] | Equality | None:
        """Return the files of one draw, before and after for each output.

        Returns the verdict if one artifact does not run. None if the artifact
        before refuses these data, and did not refuse those of the first draw.
        """
        start = time.monotonic()
        inputs = _inputs(fed, draw + 1)
        ran = self._execute(before, fed=fed, draw=draw, outputs=outputs / "before")
        if isinstance(ran, Stopped):
            if draw and ran.is_own:
                return None
            return Equality(None, f"{self._names[0]} {ran.why}, {inputs}")
        taken = time.monotonic() - start
        ran_after = self._execute(after, fed=fed, draw=draw, outputs=outputs / "after")
        if isinstance(ran_after, Stopped):
            is_only_slow = (
                ran_after.is_late and taken * _MUCH_LONGER > self._timeout_seconds
            )
            if ran_after.is_own and not is_only_slow:
                equal = False
            else:
                equal = None
            return Equality(equal, f"{self._names[1]} {ran_after.why}, {inputs}")
        return list(zip(map(str, ran), map(str, ran_after), strict=True))

    def _timed(self, artifact: Path, fed: Feed) -> float | str:
        runtime = self._runtimes.get(artifact, self._runtime)
        argv = _argv(
            runtime,
            program="iree-benchmark-module",
            artifact=artifact,
            feed=fed,
            draw=0,
        )
        argv += [
            "--benchmark_format=json",
            f"--benchmark_min_time={_SHORTEST_SECONDS}s",
        ]
        with temporary_directory("report-", self._directory) as directory:
            report = directory / "report.json"
            ended = started(
                runtime,
                argv=argv,
                feed=fed,
                cancel=self._cancel,
                timeout_seconds=self._timeout_seconds,
                stdout=report,
            )
            if isinstance(ended, Stopped):
                return ended.why
            timed = microseconds(report.read_bytes())
            if isinstance(timed, str):
                return here(f"was not timed: {timed}")
            return timed


def _inputs(fed: Feed, runs: int) -> str:
    """Say on what these runs were, as in `on 3 random inputs`."""
    if not fed.random:
        return "in one run, because the program has no inputs"
    drawn = fed.random
    if runs != 1:
        drawn = drawn.replace("input", "inputs").replace("set", "sets")
    if fed.dynamic:
        sizes = f", with dynamic dimensions of {fed.dynamic}"
    else:
        sizes = ""
    return f"on {runs} random {drawn}{sizes}"


class Equality(NamedTuple):
    """The result of comparing outputs, as in `bot.fold.audit.FoldCell`."""

    equal: bool | None
    equal_note: str


def judged(outputs: Sequence[Output], elements: Sequence[str], inputs: str) -> Equality:
    """Judge two artifacts' outputs: equal, not equal or not known, and why in one line.

    `elements`: of the outputs, in order (`f32`); `inputs`: what they were computed
    from, as in `on 3 random inputs`.
    """
    differing = [(0.0, 0.0)]
    for number, (output, element) in enumerate(zip(outputs, elements, strict=True)):
        for draw in output.draws:
            if reason := _unequal(draw, element):
                return Equality(False, f"output {number} {reason}, {inputs}")
            if draw.different:
                allowed = _ALLOWED.get(element, 0.0)
                differing.append((draw.relative or 0.0, allowed))
    mute = [_mute(output) for output in outputs]
    if not mute:
        return Equality(None, f"{NOTHING}: the program has no output, {inputs}")
    if all(mute):
        return Equality(None, f"{NOTHING}: {mute[0]}, {inputs}")
    agreement = "bit-equal"
    if len(differing) > 1:
        most, allowed = max(differing)
        agreement = (
            f"largest difference {most:.2g} of the largest magnitude ({allowed:g} is"
            " allowed),"
        )
    return Equality(True, f"{agreement} {inputs}{_proves_nothing(outputs, mute)}")


def _proves_nothing(outputs: Sequence[Output], mute: Sequence[str]) -> str:
    """Return how many outputs and inputs prove nothing; empty if all prove something.

    `mute`: why an output proves nothing, empty if it does.
    """
    text = ""
    reasons = [reason for reason in mute if reason]
    if reasons:
        text += f"; {len(reasons)} of {len(mute)} outputs prove nothing: {reasons[0]}"
    runs = list(zip(*(output.draws for output in outputs), strict=True))
    barren = sum(not any(draw.finite for draw in run) for run in runs)
    if barren:
        text += f"; {barren} of {len(runs)} inputs prove nothing: no value is finite"
    return text


def _mute(output: Output) -> str:
    """Return why an output proves nothing; empty if it proves something."""
    if not any(draw.finite for draw in output.draws):
        if any(draw.values for draw in output.draws):
            return "no value is finite"
        return "there are no values"
    if output.constant:
        return "all values are the same"
    if output.still:
        return "it is the same for all inputs"
    return ""


def _unequal(draw: Draw, element: str) -> str:
    if draw.before_bytes != draw.after_bytes:
        return f"has {draw.after_bytes:,} bytes instead of {draw.before_bytes:,}"
    allowed = _ALLOWED.get(element)
    if not draw.different or (
        allowed is not None and draw.relative is not None and draw.relative <= allowed
    ):
        return ""
    differs = f"differs in {draw.different:,} of {draw.values:,} values"
    if allowed is None:
        return differs
    if draw.relative is None:
        return f"{differs}, and the difference is not finite"
    return (
        f"{differs}, by up to {draw.relative:.2g} of its largest magnitude ({allowed:g}"
        " is allowed)"
    )


class _Benchmark(Small, frozen=True):
    """One line of Google Benchmark's report, which has more fields than these."""

    cpu_time: Annotated[float, msgspec.Meta(gt=0)]
    time_unit: str


class _Report(Small, frozen=True):
    benchmarks: tuple[_Benchmark, ...]


def microseconds(report: bytes) -> float | str:
    """Return the CPU time of one run, or the fault of the report."""
    try:
        benchmarks = decoded(report, _Report, "iree-benchmark-module").benchmarks
    except (InputError, UnicodeDecodeError) as error:
        return str(error)
    if len(benchmarks) != 1:
        return f"iree-benchmark-module reports {len(benchmarks)} times instead of one"
    unit = benchmarks[0].time_unit
    if unit not in _MICROSECONDS:
        return f"iree-benchmark-module reports a time in {unit[:20]!r}"
    return benchmarks[0].cpu_time * _MICROSECONDS[unit]


def price_of(pairs: Sequence[tuple[float, float]]) -> Price:
    """Return the price of (before, after) times in microseconds.

    The interval is the shortest one that contains the true median with CONFIDENCE. It
    leaves out equally many ratios at both ends. A ratio is below the median as often as
    above it, whatever the distribution. So the number of ratios below it is binomial.
    That gives the probability that an interval of certain ranks misses the median.

    Raises ValueError if there are fewer than FEWEST_PAIRS pairs.
    """
    if len(pairs) < FEWEST_PAIRS:
        raise ValueError(
            f"only {len(pairs)} pairs of runs, and {FEWEST_PAIRS} are needed"
        )
    ratios = sorted(after / before for before, after in pairs)
    low = -1
    missed = 0.0  # probability that the true median is outside of the interval
    while True:
        missed += 2 * math.comb(len(ratios), low + 1) / 2 ** len(ratios)
        if missed > 1 - CONFIDENCE:
            break
        low += 1
    return Price(
        before_us=round(statistics.median(before for before, _ in pairs)),
        after_us=round(statistics.median(after for _, after in pairs)),
        pairs=len(pairs),
        ratio=statistics.median(ratios),
        low=ratios[low],
        high=ratios[-1 - low],
    )


def within(price: Price, max_slowdown: float) -> bool | None:
    """Return whether the folded artifact is slower by no more than this share.

    0.01 is 1 %. None if the interval contains the limit.
    """
    if price.high <= 1 + max_slowdown:
        return True
    if price.low > 1 + max_slowdown:
        return False
    return None
