"""Run the rest of a compiler's passes on IR from within a translation.

`iree-opt` runs the passes that the compiler printed, with their options. No pass runs
twice, as a second run could change the other compiler's IR. A control shows whether the
compiler does the same: with its own IR it must give its own code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.compiler.compiling import CompileSetup
from bot.compiler.toolchain import UNTHREADED
from bot.core.snapshot import Failure
from bot.errors import InputError
from bot.readers.printed_ir import (
    PrintedPass,
    Translation,
    pipeline_text,
    printed_translation,
)
from bot.study.compiling_alone import (
    CONFIGURATIONS,
    SOURCES,
    TARGETS,
    AloneCode,
    compile_from,
    run_in,
)
from bot.study.foreign_ir import (
    GENERIC,
    LOCAL,
    NamedText,
    optimized,
    transplanted,
    with_fixes,
    without_pipeline,
)
from bot.study.ladder import LadderSide
from bot.system.files import temporary_directory
from bot.system.processes import Outcome, run

_TREE = "passes"
_HELP = "help.txt"
_SOURCE = "source.mlir"
_RESULT = "result.mlir"
_PRINTED = (
    "--mlir-print-ir-after-all",
    "--mlir-print-ir-module-scope",
    LOCAL,
    GENERIC,
    f"--mlir-print-ir-tree-dir={_TREE}",
    UNTHREADED,
)
_REWRITTEN = {
    "arith-expand": re.compile(
        r"\"arith\.(?:ceildiv|floordiv|max|min|extf|truncf|scaling_|flush_)"
    )
}
"""Passes that `iree-opt` does not know → the operations that they rewrite.

Their source is in mlir/lib/Dialect/Arith/Transforms.
"""
_OPTION_NAME = re.compile(r"^  --([\w-]+)", re.MULTILINE)
_LISTED_NAME = re.compile(r"^ +--([\w-]+)", re.MULTILINE)
_BUFFERIZATION = re.compile(
    r"^ +--(iree-codegen-\w+-bufferization-pipeline)", re.MULTILINE
)
_LISTED_PASS = re.compile(r"^ {4}([\w-]+)", re.MULTILINE)
_CONVERSION = "iree-convert-to-"
_BUFFERIZE = "iree-codegen-iree-comprehensive-bufferize"


@dataclass(frozen=True, slots=True)
class Registered:
    """The passes and options that one `iree-opt` knows."""

    options: frozenset[str]
    names: frozenset[str]  # names of options, passes and pipelines
    # pipeline → the passes that it runs. Bufferization has options that cannot be
    # printed, and such a pipeline sets them.
    bufferizations: Mapping[str, tuple[str, ...]]


def registered(setup: CompileSetup) -> Registered | Failure:
    """Ask the `iree-opt` beside the compiler for its options and its pipelines."""
    with temporary_directory("registered-", setup.session.scratch) as directory:
        help_text = directory / _HELP
        answer = _ask(
            setup, arguments=("--help-hidden",), directory=directory, stdout=help_text
        )
        if answer is None or not answer.ok:
            return Failure("option", "iree-opt beside this compiler does not answer")
        text = help_text.read_text(encoding="utf-8", errors="replace")
        names = sorted(set(_BUFFERIZATION.findall(text)))
        bufferizations = {name: _expanded(setup, name, directory) for name in names}
        options = frozenset(_OPTION_NAME.findall(text))
        return Registered(
            options, frozenset(_LISTED_NAME.findall(text)), bufferizations
        )


def _expanded(setup: CompileSetup, pipeline: str, directory: Path) -> tuple[str, ...]:
    """Return the passes on functions that a pipeline runs.

    It is empty for a pipeline of another operation.
    """
    (directory / _SOURCE).write_text("module {}\n", encoding="utf-8")
    pipeline_option = f"--pass-pipeline=builtin.module(func.func({pipeline}))"
    answer = _ask(
        setup,
        arguments=(pipeline_option, "--dump-pass-pipeline", _SOURCE),
        directory=directory,
        stdout=directory / _RESULT,
    )
    if answer is None or not answer.ok:
        return ()
    return tuple(_LISTED_PASS.findall(answer.output))


def _ask(
    setup: CompileSetup, arguments: Sequence[str], directory: Path, stdout: Path
) -> Outcome | None:
    """Run `iree-opt`; None if it cannot be started."""
    program = setup.toolchain.binary.with_name("iree-opt")
    try:
        return run(
            [str(program), *arguments],
            cancel=setup.session.cancel,
            stdout=stdout,
            cwd=directory,
            timeout_seconds=setup.session.timeout_seconds,
        )
    except OSError:
        return None


def printed_side(side: LadderSide, directory: Path) -> Translation | Failure:
    """Compile a dispatch's executable, and print the IR after each pass.

    The passes are those of its translation. The IR is printed into a directory.
    """
    if isinstance(side.source, Failure):
        return side.source
    source = directory / _SOURCE
    source.write_text(side.source, encoding="utf-8")
    phases = (f"--compile-from={SOURCES}", f"--compile-to={TARGETS}")
    arguments = ("-", *side.argv, *phases, *_PRINTED, "-o", _RESULT)
    failed = run_in(
        side.setup,
        program=side.setup.toolchain.binary,
        arguments=arguments,
        directory=directory,
        stdin=source,
    )
    if failed is not None:
        return failed
    try:
        translation = printed_translation(directory / _TREE)
    except (InputError, OSError) as error:
        return Failure("read", f"the printed passes cannot be read: {error}")
    if isinstance(translation, Translation):
        return translation
    return Failure("read", translation)


class Splicer:
    """Runs one compiler's passes from a cut on, on its own IR or on the other's.

    Attributes:
        compiles: how many compiles there were, with those that ended in `iree-opt`.
    """

    def __init__(
        self, side: LadderSide, translation: Translation, registered_passes: Registered
    ) -> None:
        self.side, self.translation = side, translation
        self.compiles = 0
        self._known = registered_passes
        self._options = tuple(_known_options(side.argv, registered_passes.options))
        # Some passes do not say which dialects they need, and the tool crashes. The
        # conversions at the end load these dialects.
        names = [printed.name for printed in translation.passes]
        self._idle = sorted({name for name in names if name.startswith(_CONVERSION)})

    def own_code(self, count: int) -> AloneCode | Failure:
        """Return the code from the compiler's own IR behind so many of its passes.

        It is the control of a cut.
        """
        text = self._text(self.translation, count)
        if isinstance(text, Failure):
            return text
        return self._rest(text, count, self.side.row.name)

    def foreign_code(
        self, other_splicer: Splicer, other_count: int, count: int
    ) -> AloneCode | Failure:
        """Return the code with the other compiler's IR, and the rest of the own passes.

        Args:
            other_count: how many passes of the other compiler ran.
            count: how many passes of the own compiler are left out.
        """
        spliced_text = self._text(self.translation, count)
        foreign = self._text(other_splicer.translation, other_count)
        if isinstance(spliced_text, Failure):
            return spliced_text
        if isinstance(foreign, Failure):
            return foreign
        name = self.side.row.name
        foreign_name = other_splicer.side.row.name
        own_text = NamedText(name, "", spliced_text)
        text = transplanted(
            own_text, NamedText(foreign_name, "", foreign), is_generic=True
        )
        if text is None:
            return Failure("read", "the executable has no module of functions")
        return with_fixes(lambda fixed: self._rest(fixed, count, foreign_name), text)

    def _text(self, translation: Translation, count: int) -> str | Failure:
        try:
            return translation.text_behind(count)
        except (InputError, OSError) as error:
            return Failure("read", f"the printed IR cannot be read: {error}")

    def _rest(self, text: str, count: int, entry_point: str) -> AloneCode | Failure:
        """Run what is left of the translation, and the back end.

        A cut before the end of the configured pipeline leaves the passes behind it to
        the compiler itself.
        """
        lowering_end = self.translation.lowering_end
        if count <= lowering_end:
            lowered = self._optimized(text, self.translation.passes[count:lowering_end])
            if isinstance(lowered, Failure):
                return lowered
            return self._compiled(
                without_pipeline(lowered), CONFIGURATIONS, entry_point
            )
        translated = self._optimized(text, self.translation.passes[count:])
        if isinstance(translated, Failure):
            return translated
        return self._compiled(translated, TARGETS, entry_point)

    def _compiled(self, text: str, phase: str, entry_point: str) -> AloneCode | Failure:
        self.compiles += 1
        return compile_from(
            self.side.setup,
            argv=self.side.argv,
            text=text,
            phase=phase,
            entry_point=entry_point,
        )

    def _optimized(self, text: str, passes: Sequence[PrintedPass]) -> str | Failure:
        """Return the module after these passes.

        A pass that `iree-opt` does not know is left out if it has nothing to do.
        """
        begin = 0
        for place, printed in enumerate(passes):
            if printed.name in self._known.names:
                continue
            rewritten = _REWRITTEN.get(printed.name)
            if rewritten:
                result = self._run(text, passes[begin:place])
            else:
                result = None
            if isinstance(result, Failure):
                return result
            if result is None or rewritten is None or rewritten.search(result):
                return Failure(
                    "option", f"iree-opt does not know the pass {printed.name}"
                )
            text = result
            begin = place + 1
        return self._run(text, passes[begin:])

    def _run(self, text: str, passes: Sequence[PrintedPass]) -> str | Failure:
        if not passes:
            return text
        pipeline = pipeline_text(
            _runnable(passes, self._known.bufferizations), self._idle
        )
        result = optimized(
            self.side.setup,
            text,
            (f"--pass-pipeline={pipeline}", *self._options, GENERIC),
        )
        if isinstance(result, Failure):
            self.compiles += 1
        return result


def _known_options(argv: Sequence[str], known_options: frozenset[str]) -> Iterator[str]:
    """Yield the flags of a build that `iree-opt` knows, too.

    A flag whose value is a separate word is left out, with its value.
    """
    for flag, following in zip(argv, (*argv[1:], "-"), strict=True):
        name = flag.lstrip("-").partition("=")[0]
        if flag.startswith("-") and name in known_options and following.startswith("-"):
            yield flag


def _runnable(
    passes: Sequence[PrintedPass], bufferizations: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the passes for `iree-opt`: a kind of operation, and the text of a pass.

    Bufferization and its neighbours become a pipeline: the one that has most of them.
    """
    runnable = []
    names = []
    for printed in passes:
        runnable.append((printed.operation, f"{printed.name}{printed.options}"))
        names.append(printed.name)
    if _BUFFERIZE not in names:
        return runnable
    place = names.index(_BUFFERIZE)
    best = slice(place, place)
    best_pipeline = ""
    for pipeline, expanded in bufferizations.items():
        span = _span(names, place, expanded)
        if span.stop - span.start > best.stop - best.start:
            best = span
            best_pipeline = pipeline
    if not best_pipeline:
        return runnable
    return [
        *runnable[: best.start],
        (passes[place].operation, best_pipeline),
        *runnable[best.stop :],
    ]


def _span(names: Sequence[str], place: int, expanded: Sequence[str]) -> slice:
    """Return which of the passes a pipeline replaces.

    The slice is empty if the pipeline has no bufferization, or if other passes follow
    bufferization there.
    """
    if _BUFFERIZE not in expanded:
        return slice(place, place)
    before = expanded[: expanded.index(_BUFFERIZE)]
    behind = expanded[expanded.index(_BUFFERIZE) :]
    stop = place + len(behind)
    if list(names[place:stop]) != list(behind):
        return slice(place, place)
    start = place
    for name in reversed(before):
        if not start or names[start - 1] != name:
            break
        start -= 1
    return slice(start, stop)
