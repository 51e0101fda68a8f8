"""Options that releases call by other names: the table, and a side's cells in the words of its own compiler.

The compiler itself is asked which of two names it knows, so that nightly builds and forks are right too. From 3.5.0 to
3.13.0 all other options of the default configuration have one name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from bot.compiler.tools.probe import knows
from bot.compiler.tools.toolchain import Toolchain
from bot.core.values.planned import PlannedCell
from bot.system.files import temporary_directory
from bot.system.processes import Cancel

_HIP_UNTIL_3_10 = (
    "target", "target-features", "bc-dir", "waves-per-eu", "index-bits", "enable-ukernels", "enable-tensor-ukernels",
    "encoding-layout-resolver", "specialize-dispatches", "llvm-global-isel", "llvm-slp-vec", "denormal-fp-math-f32",
    "emit-debug-info", "enable-register-spill-warning",
)  # fmt: skip
"""`--iree-hip-X` up to 3.10.0, `--iree-rocm-X` from 3.12.0 on; 3.11.0 knows both."""

RENAMED: tuple[tuple[str, str], ...] = tuple((f"--iree-hip-{end}", f"--iree-rocm-{end}") for end in _HIP_UNTIL_3_10)
"""Old and new name of one option."""
OTHER_NAME = {name: other for old, new in RENAMED for name, other in ((old, new), (new, old))}


def known_names(flags: Iterable[str], known: Callable[[str], bool]) -> tuple[str, ...]:
    """The flags, each under the name that is known; one that is known under no name stays as it is."""
    return tuple(_known_name(flag, known) for flag in flags)


def in_its_words(toolchain: Toolchain, cells: Sequence[PlannedCell], cancel: Cancel) -> tuple[PlannedCell, ...]:
    """The cells with their options as this compiler calls them; raises CompilerUnavailable."""
    if not any(flag.partition("=")[0] in OTHER_NAME for cell in cells for flag in cell.argv):
        return tuple(cells)
    with temporary_directory("code-size-") as scratch:
        asked = _asking(toolchain, scratch, cancel)
        return tuple(_renamed(cell, asked) for cell in cells)


def _asking(toolchain: Toolchain, scratch: Path, cancel: Cancel) -> Callable[[str], bool]:
    @cache
    def asked(flag: str) -> bool:
        return knows(toolchain, flag, scratch, cancel)

    return asked


def _renamed(cell: PlannedCell, known: Callable[[str], bool]) -> PlannedCell:
    target = replace(cell.target, flags=known_names(cell.target.flags, known))
    return replace(cell, target=target, user_flags=known_names(cell.user_flags, known))


def _known_name(flag: str, known: Callable[[str], bool]) -> str:
    option, equals, value = flag.partition("=")
    if option not in OTHER_NAME or known(flag):
        return flag
    other = f"{OTHER_NAME[option]}{equals}{value}"
    return other if known(other) else flag
