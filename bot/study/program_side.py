"""One program on one side: its IR at a phase, and single passes run over it.

IR of the other side is read as it is printed, then in the generic form, which changes
less between releases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.compiler.compiling import CompileInput, CompileSetup, compile_to
from bot.compiler.toolchain import UNTHREADED
from bot.core.program_proof import PROGRAM_PHASES
from bot.core.snapshot import Failure
from bot.errors import InputError
from bot.readers.pass_runs import PassRun, pass_runs, pipeline_of
from bot.study.compiling_alone import program_bytes
from bot.study.foreign_ir import LOCAL, optimized, printed, run_tool, with_fixes
from bot.system.files import MOST_READ_BYTES, read_bounded, temporary_directory

FLOW = PROGRAM_PHASES[-1]
_ELIDED = (
    "--mlir-elide-elementsattrs-if-larger=8",
    "--mlir-elide-resource-strings-if-larger=8",
)
_PRINTED = "passes"
_UNKNOWN_OPTION = re.compile(r"no such option (\S+)")
_MOST_UNKNOWN = 8
_MOST_REASON = 300
_DEVICE = re.compile(r"^  util\.global private @__device_\d+ = .*$", re.MULTILINE)


class NoText(Exception):
    """An experiment that cannot go on, with the reason in one line."""


@dataclass(eq=False)
class ProgramSide:
    """One program on one side; every method raises NoText if the compiler fails.

    Attributes:
        compiles: how often the compiler or its passes ran.
    """

    setup: CompileSetup
    argv: Sequence[str]  # flags of the build
    source: CompileInput
    compiles: int = 0
    _texts: dict[str, str] = field(default_factory=dict)
    # whether all phases were asked for in one run, also if that run failed
    _is_printed: bool = False

    def at(self, phase: str) -> str:
        """Return the program's IR at a phase.

        The first call prints all phases in one run. A phase that this does not give,
        as a later one fails, gets a run of its own.
        """
        if not self._is_printed:
            self._is_printed = True
            self._texts.update(self._all_phases())
        if phase not in self._texts:
            self.compiles += 1
            argv = (*self.argv, f"--compile-to={phase}", UNTHREADED)
            self._texts[phase] = _text(compile_to(self.setup, argv, self.source))
        return self._texts[phase]

    def _all_phases(self) -> dict[str, str]:
        """Return phase → the program's IR; empty if the compiler fails on the way.

        The texts are those that a run to each phase prints.
        """
        self.compiles += 1
        texts = dict[str, str]()
        with temporary_directory("phases-", self.setup.session.scratch) as directory:
            options = (
                f"--compile-to={FLOW}",
                f"--dump-compilation-phases-to={directory}",
                LOCAL,
                UNTHREADED,
            )
            result = compile_to(self.setup, (*self.argv, *options), self.source)
            if isinstance(result, Failure):
                return {}
            for path in sorted(directory.glob("*.mlir")):
                phase = path.stem.rpartition(".")[2]
                try:
                    data = read_bounded(path, "the printed IR", MOST_READ_BYTES)
                except (InputError, OSError):
                    continue
                texts[phase] = data.decode("utf-8", "replace")
        return texts

    def flow_from(self, text: str, phase: str) -> str:
        """Return the IR at `flow` of a program that is at a phase.

        Another compiler may have printed the text.
        """
        if phase == FLOW:
            return self.run_passes(text, ())
        self.compiles += 1
        options = (f"--compile-from={phase}", f"--compile-to={FLOW}", UNTHREADED)
        with temporary_directory("program-", self.setup.session.scratch) as directory:
            source = CompileInput(self.source.model, _written(directory, text))
            return _text(compile_to(self.setup, (*self.argv, *options), source))

    def passes_of(self, phase: str, *, only_changing: bool = False) -> list[PassRun]:
        """Return the passes that bring this program from the phase before to a phase.

        Args:
            only_changing: leave out the runs that change nothing in this program.
        """
        before = phase_before(phase)
        options = (
            f"--compile-from={before}",
            f"--compile-to={phase}",
            "--mlir-print-ir-after-all",
            *(("--mlir-print-ir-after-change",) if only_changing else ()),
            *_ELIDED,
            f"--mlir-print-ir-tree-dir={_PRINTED}",
        )
        source_text = self.at(before)
        self.compiles += 1
        with temporary_directory("passes-", self.setup.session.scratch) as directory:
            path = _written(directory, source_text)
            arguments = ("-", *self.argv, *options, UNTHREADED, "-o", "out.mlir")
            _require(
                run_tool(
                    self.setup,
                    name="iree-compile",
                    arguments=arguments,
                    directory=directory,
                    stdin=path,
                )
            )
            try:
                return pass_runs(directory / _PRINTED)
            except InputError as error:
                raise NoText(error.what) from None

    def run_passes(self, text: str, runs: Sequence[PassRun]) -> str:
        """Run passes over a program's IR with this side's `iree-opt`.

        An option that this compiler's pass does not have is left out: the passes of a
        release that prints no options borrow those of the other side.
        """
        remaining = list(runs)
        for _ in range(_MOST_UNKNOWN):
            result = self._optimized(text, remaining)
            if isinstance(result, str):
                return result
            unknown = _UNKNOWN_OPTION.search(result.message)
            if unknown:
                shorter = [run.without_option(unknown[1]) for run in remaining]
            else:
                shorter = remaining
            if shorter == remaining:
                break
            remaining = shorter
        return _text(result)

    def _optimized(self, text: str, runs: Sequence[PassRun]) -> str | Failure:
        self.compiles += 1
        pipeline = list[str]()
        if runs:
            pipeline.append(f"--pass-pipeline={pipeline_of(runs)}")
        return optimized(self.setup, text, (*pipeline, LOCAL))

    def code_bytes(self, text: str) -> int:
        """Compile a program from `flow` to the end; return its bytes of code."""
        for_own_device = with_device_of(text, self.at(FLOW))
        if for_own_device is None:
            raise NoText("the program is not for one device")
        self.compiles += 1
        size = program_bytes(
            self.setup, argv=self.argv, text=for_own_device, phase=FLOW
        )
        if isinstance(size, Failure):
            raise NoText(size.first_line)
        return size

    def generic(self, text: str) -> str:
        """Return this side's IR in the form that changes least between releases."""
        self.compiles += 1
        return _text(printed(self.setup, text, is_generic=True))


def read_generic(read: Callable[[str], str], text: str) -> str:
    """Return what a side makes of generic IR of the other side.

    The IR is rewritten where this compiler asks for it.

    Raises:
        NoText: the compiler cannot read it.
    """

    def attempt(rewritten: str) -> str | Failure:
        try:
            return read(rewritten)
        except NoText as stopped:
            return Failure("read", str(stopped))

    return _text(with_fixes(attempt, text))


def phase_before(phase: str) -> str:
    """Return the phase before another one.

    Raises:
        NoText: it is the first one, which has none before it.
    """
    place = PROGRAM_PHASES.index(phase)
    if not place:
        raise NoText(f"passes of the phase {phase} cannot be run one by one")
    return PROGRAM_PHASES[place - 1]


def with_device_of(text: str, own_text: str) -> str | None:
    """Return a program with the device of another text; None unless each has just one.

    A device names the features of its processor, and releases name them differently.
    """
    own_devices = _DEVICE.findall(own_text)
    devices = _DEVICE.findall(text)
    if len(own_devices) != 1 or len(devices) != 1:
        return None
    return _DEVICE.sub(lambda _: str(own_devices[0]), text)


def _written(directory: Path, text: str) -> Path:
    path = directory / "program.mlir"
    path.write_text(text, encoding="utf-8")
    return path


def _text(result: str | Failure) -> str:
    if isinstance(result, Failure):
        raise NoText(result.first_line[:_MOST_REASON])
    return result


def _require(failed: Failure | None) -> None:
    if failed is not None:
        raise NoText(failed.first_line[:_MOST_REASON])
