"""Read the IR of one executable after each pass of its translation.

The compiler prints it into a tree of files.

Format: as `bot.readers.printed_files` has it. The first line names the pass and its
operation: `// -----// IR Dump After CSEPass: cse ('func.func' operation: @name) //----- //`.
Up to 3.11.0 the name is in brackets, and options are not printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.core.pass_cuts import Step
from bot.readers.pass_pipeline import module_pipeline
from bot.readers.printed_files import printed_files
from bot.system.files import MOST_READ_BYTES, read_bounded

_AFTER = r"// -----// IR Dump After \S+"
_ON = r" \('(?P<operation>[\w.]+)' operation(?:: @(?P<symbol>.*))?\) //----- //"
_WITH_OPTIONS = re.compile(rf"{_AFTER}: (?P<name>[\w-]+)(?P<options>\{{.*\}})?{_ON}")
_WITHOUT_OPTIONS = re.compile(rf"{_AFTER} \((?P<name>[\w-]+)\){_ON}")
_LONGEST_HEADER_BYTES = 1 << 16
_CONFIGURED = "iree-hal-configure-executables"
_TRANSLATED = "iree-hal-translate-all-executables"
_WRAPPERS = re.compile(
    r"iree-op-pipeline-adaptor|iree-hal-translate-target-executable-variants|iree-\w+-lower-executable-target(?:-pass)?"
)
"""Passes that only run others, which are printed themselves."""


@dataclass(frozen=True, slots=True)
class PrintedPass:
    """One run of a pass, and the file with the whole module after it."""

    name: str  # the argument name
    options: str  # in braces; empty where it has none, or where they are not printed
    operation: str  # the kind of operation that it ran on: `func.func`
    symbol: str  # the name of that operation; empty where it has none
    path: Path

    @property
    def step(self) -> Step:
        """Return the key by which passes of two compilers are compared."""
        return self.operation, self.name

    @property
    def is_wrapper(self) -> bool:
        """Return True for a pass that only runs others."""
        return _WRAPPERS.fullmatch(self.name) is not None

    @property
    def text(self) -> str:
        """Return the module; raises InputError and OSError."""
        whole = read_bounded(self.path, "the printed IR", MOST_READ_BYTES).decode(
            "utf-8", "replace"
        )
        return whole.partition("\n")[2]


@dataclass(frozen=True, slots=True)
class Translation:
    """The passes between an executable's configuration and its back end."""

    configured: PrintedPass  # the pass that leaves the configured IR
    passes: tuple[PrintedPass, ...]  # without those that only run others
    # how many of them run before the end of the pipeline that the configuration names
    lowering_end: int
    has_options: bool  # whether the compiler prints the options of its passes

    def text_behind(self, count: int) -> str:
        """Return the module after so many passes."""
        if count:
            printed = self.passes[count - 1]
        else:
            printed = self.configured
        return printed.text


def printed_translation(directory: Path) -> Translation | str:
    """Return the translation that a compiler printed here, or why there is none."""
    printed, has_options = _printed(directory)
    names = [printed_pass.name for printed_pass in printed]
    if _CONFIGURED not in names or _TRANSLATED not in names:
        return "the compiler printed no passes of the translation"
    first = names.index(_CONFIGURED)
    last = names.index(_TRANSLATED)
    inside = printed[first + 1 : last]
    functions = set[str]()
    passes = list[PrintedPass]()
    for printed_pass in inside:
        if printed_pass.operation == "func.func":
            functions.add(printed_pass.symbol)
        if not printed_pass.is_wrapper:
            passes.append(printed_pass)
    if len(functions) != 1:
        return f"the executable has {len(functions)} functions"
    return Translation(
        configured=printed[first],
        passes=tuple(passes),
        lowering_end=_lowering_end(inside),
        has_options=has_options,
    )


def _lowering_end(inside: Sequence[PrintedPass]) -> int:
    """Return how many passes run before the last lowering pass ends.

    This is the last pass that lowers the executable's target.
    """
    passes_before = 0
    passes_before_last = 0
    for printed_pass in inside:
        if "-lower-executable-target" in printed_pass.name:
            passes_before_last = passes_before
        passes_before += not printed_pass.is_wrapper
    return passes_before_last


def _printed(directory: Path) -> tuple[list[PrintedPass], bool]:
    """Return the runs of all passes in their order, and whether options are printed."""
    passes = list[PrintedPass]()
    has_options = False
    for _, path in printed_files(directory):
        header = _header(path)
        match = _WITH_OPTIONS.match(header)
        has_options = has_options or match is not None
        match = match or _WITHOUT_OPTIONS.match(header)
        if match:
            passes.append(_pass(match, path))
    return passes, has_options


def _header(path: Path) -> str:
    with path.open("rb") as file:
        return file.readline(_LONGEST_HEADER_BYTES).decode("utf-8", "replace")


def _pass(match: re.Match[str], path: Path) -> PrintedPass:
    parts = match.groupdict()
    return PrintedPass(
        name=match["name"],
        options=parts.get("options") or "",
        operation=match["operation"],
        symbol=match["symbol"] or "",
        path=path,
    )


_AROUND = ("hal.executable", "hal.executable.variant", "builtin.module")
"""The operations around a function, from the outermost inwards; all are in a module."""


def pipeline_text(passes: Sequence[tuple[str, str]], idle: Sequence[str] = ()) -> str:
    """Return a pipeline for `iree-opt --pass-pipeline`.

    Args:
        passes: the kind of operation that each works on, and its name with its options.
        idle: names of passes that are loaded, but find no operation to run on.
    """
    nested = [(_nesting(operation), text) for operation, text in passes]
    # there is no module directly in the outer one
    never_run = [f"builtin.module({name})" for name in idle]
    return module_pipeline(nested, never_run)


def _nesting(operation: str) -> tuple[str, ...]:
    if operation in _AROUND:
        return _AROUND[: _AROUND.index(operation) + 1]
    return (*_AROUND, operation)
