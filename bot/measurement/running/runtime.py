"""IREE's runtime, which the extra `run` brings: its programs, and which artifacts they can run on this machine."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from bot.compiler.tools.wheels import RUNTIME, fetch_release
from bot.core.backends import backend_of
from bot.core.rules.lasting import here
from bot.core.rules.spec import Places
from bot.readers.interfaces import CompiledFor
from bot.system.defaults import cores
from bot.system.processes import Cancel, run

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
