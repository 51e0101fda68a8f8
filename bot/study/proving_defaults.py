"""Prove that a changed default causes a change.

Head is compiled with base's value of the option.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from bot.compiler.compiling import CompileInput, CompileSetup
from bot.core.defaults import DefaultChange
from bot.core.proof import NOT_TRIED, KnobProof
from bot.core.snapshot import Dispatch, Failure
from bot.study.compiling_alone import SOURCES, AloneCode, compile_from
from bot.study.executable_sources import executables_at
from bot.study.proving import (
    moved_code_bytes,
    proof_after,
    why_no_experiment,
    why_other_code,
)
from bot.system.files import temporary_directory

_BOOLEANS = ("true", "false")


@dataclass(frozen=True, slots=True)
class BuildSide:
    """One build on one side: how it is compiled, and one of its dispatches."""

    setup: CompileSetup
    # flags of the build, with the lifted stack limit if the build needs it
    argv: Sequence[str]
    source: CompileInput
    row: Dispatch

    def code_with(self, *flags: str) -> AloneCode | Failure:
        """Compile the program with these flags added; return the dispatch's code."""
        argv = (*self.argv, *flags)
        with temporary_directory("default-", self.setup.session.scratch) as out:
            paths = executables_at(
                self.setup, argv=argv, source=self.source, phase=SOURCES, out=out
            )
            if isinstance(paths, Failure):
                return paths
            if self.row.executable not in paths:
                return Failure(
                    "read", f"the program has no executable {self.row.executable}"
                )
            text = paths[self.row.executable].read_text(
                encoding="utf-8", errors="replace"
            )
            return compile_from(
                self.setup,
                argv=argv,
                text=text,
                phase=SOURCES,
                entry_point=self.row.name,
            )


@dataclass(frozen=True, slots=True)
class FoundDefault:
    """Base's default of an option or the reason why it is unknown, and the number of compiles."""

    value: str | None
    why: str = ""  # empty if the value is known
    compiles: int = 0


def most_search_compiles(change: DefaultChange) -> int:
    """Return how many compiles `base_default` takes at most."""
    if change.base is None and change.head in _BOOLEANS:
        return len(_BOOLEANS)
    return 0


def base_default(base: BuildSide, change: DefaultChange) -> FoundDefault:
    """Return base's default of an option, as base reports it or as its code shows it.

    A boolean that base does not report is tried on base with head's value first. If that
    gives base's code, the default cannot explain the change, and the search ends.
    """
    if change.base is not None:
        return FoundDefault(change.base)
    unreported = "base does not report its default"
    if change.head not in _BOOLEANS:
        return FoundDefault(None, unreported)
    opposite = _BOOLEANS[1 - _BOOLEANS.index(change.head)]
    for compiles, value in enumerate((change.head, opposite), 1):
        code = base.code_with(f"{change.option}={value}")
        if isinstance(code, Failure):
            flag = f"{change.option}={value}"
            why = f"base does not compile with {flag}: {code.first_line}"
            return FoundDefault(None, why, compiles)
        if code.code is None or code.code != base.row.code:
            continue
        if value == change.head:
            why = f"{unreported}, and on base head's value gives the same code"
            return FoundDefault(None, why, compiles)
        return FoundDefault(value, compiles=compiles)
    why = f"{unreported}, and neither true nor false gives its code"
    return FoundDefault(None, why, len(_BOOLEANS))


def why_set(base: BuildSide, head: BuildSide, option: str) -> str:
    """Return which side's build sets an option itself; empty if none does."""
    for side, flags in (("base", base.argv), ("head", head.argv)):
        if any(flag.partition("=")[0] == option for flag in flags):
            return f"the build on {side} sets {option} itself"
    return ""


def prove_default(base: BuildSide, head: BuildSide, change: DefaultChange) -> KnobProof:
    """Return the proof of one option: head is compiled with base's default.

    `change.base` is base's default as it is reported, or as `base_default` found it.
    """
    moved_bytes = moved_code_bytes(base.row, head.row)
    untried = partial(KnobProof, NOT_TRIED, moved_bytes=moved_bytes)
    reason = why_no_experiment(base.row, head.row)
    if moved_bytes is None or reason:
        return untried(reason)
    if change.base is None:
        return untried(f"base's default of {change.option} is not known")
    if change.head is None:
        return untried(f"head does not report the default of {change.option}")
    alone_code = head.code_with()
    if isinstance(alone_code, Failure):
        return untried(
            f"head does not compile alone: {alone_code.first_line}", compiles=1
        )
    if reason := why_other_code(alone_code, head.row, moved_bytes):
        return untried(reason, compiles=1)
    flag = f"{change.option}={change.base}"
    after = head.code_with(flag)
    if isinstance(after, Failure):
        return untried(
            f"head does not compile with {flag}: {after.first_line}", compiles=2
        )
    proof = proof_after(
        base.row, moved_bytes=moved_bytes, alone_code=alone_code, after=after
    )
    return replace(proof, knobs=(flag,), compiles=2)
