"""Assemble the PTX of an artifact with NVIDIA's assembler, from the extra `cuda`.

A device runs not the PTX text of an artifact but the machine code that an assembler
makes of it. On a device that is the driver's own assembler, in the driver's version.
Here it is the `ptxas` of the package, at its default level, for the device that each
module asks for. The text may come from anyone. So it is assembled as untrusted as a
model is compiled: in a directory of its own, with a time limit and an environment
without secrets.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from bot.compiler.machine_limits import blamed, require_room
from bot.core.backends import NVIDIA
from bot.core.reading import Assembled, PtxModule
from bot.core.this_machine import here
from bot.system.cancel import Cancel
from bot.system.files import temporary_directory
from bot.system.processes import Outcome, run

PACKAGE = "nvidia-cuda-nvcc-cu12"
HOW_TO_GET_IT = "pip install 'code-size-bot[cuda]'"
MISSING = f"ptxas is not installed: {HOW_TO_GET_IT}"
BACKEND = NVIDIA
# What `ptxas` takes when nobody says otherwise; said all the same, as it is part of the
# figures
LEVEL = "-O3"
MOST_SAID_BYTES = 1 << 24  # A function takes about 400 bytes
MOST_CUBIN_BYTES = 1 << 28
_MODULE = "module.ptx"
_CUBIN = "module.cubin"
_REFUSAL_CHARS = 240


@dataclass(frozen=True, slots=True)
class Ptxas:
    """An assembler: its program, and the version of its package."""

    binary: Path
    version: str

    @property
    def name(self) -> str:
        """Return the name that identifies its figures, such as `ptxas 12.9.86 -O3`."""
        return f"ptxas {self.version} {LEVEL}"


def program_of(package: str, pattern: str) -> tuple[Path, str] | None:
    """Return a program of an installed package and its version.

    None without the package, or if it has no program for this machine.
    """
    try:
        package_distribution = distribution(package)
    except PackageNotFoundError:
        return None
    for name in package_distribution.files or ():
        file = Path(str(name.locate()))
        if name.match(pattern) and file.is_file():
            return file, package_distribution.version
    return None


@cache
def installed() -> Ptxas | None:
    """Return the assembler of this environment; None if it has none."""
    program = program_of(PACKAGE, "*/bin/ptxas")
    if program:
        return Ptxas(*program)
    return None


def assembler_of(backend: str, ptxas: Ptxas | None) -> str:
    """Return the name of the assembler that makes the figures of this backend's cells.

    Empty if the backend has no PTX text, or without an assembler.
    """
    if ptxas and backend == BACKEND:
        return ptxas.name
    return ""


class Assembler:
    """Assembles modules, each text once. Any thread may use it."""

    def __init__(
        self, cancel: Cancel, timeout_seconds: float, ptxas: Ptxas | None
    ) -> None:
        self._cancel = cancel
        self._timeout_seconds = timeout_seconds
        self.ptxas = ptxas
        self._known: dict[tuple[str, bytes], Assembled] = {}
        self._lock = threading.Lock()

    def assembled(self, modules: Sequence[PtxModule]) -> tuple[Assembled, ...] | str:
        """Return all modules as machine code, or why one of them could not be made."""
        if self.ptxas is None:
            return MISSING
        assembled = []
        for module in modules:
            key = module.device, hashlib.sha256(module.text).digest()
            with self._lock:
                result: Assembled | str | None = self._known.get(key)
            if result is None:
                result = self._run(self.ptxas.binary, module)
            if isinstance(result, str):
                return result
            with self._lock:
                self._known[key] = result
            assembled.append(result)
        return tuple(assembled)

    def _run(self, binary: Path, module: PtxModule) -> Assembled | str:
        # all that is printed, of which `run` keeps too little for a large module
        output = bytearray()

        def keep(chunk: bytes) -> bytes:
            output.extend(chunk[: MOST_SAID_BYTES - len(output)])
            return b""

        with temporary_directory("ptxas-") as directory:
            (directory / _MODULE).write_bytes(module.text)
            command = [
                str(binary),
                "-v",
                LEVEL,
                "--gpu-name",
                module.device,
                "-o",
                _CUBIN,
                _MODULE,
            ]
            try:
                outcome = run(
                    command,
                    cancel=self._cancel,
                    cwd=directory,
                    environment={"TMPDIR": str(directory)},
                    timeout_seconds=self._timeout_seconds,
                    keeping=keep,
                )
            except OSError as error:
                return here(f"ptxas cannot be started: {error.strerror or error}")
            require_room(outcome, directory)
            cubin = directory / _CUBIN
            text = output.decode("utf-8", "replace")
            if not outcome.ok or not cubin.is_file():
                return self._refusal(outcome, text)
            if cubin.stat().st_size > MOST_CUBIN_BYTES:
                return f"ptxas made a cubin of {cubin.stat().st_size:,} bytes"
            return Assembled(cubin.read_bytes(), text)

    def _refusal(self, outcome: Outcome, output: str) -> str:
        """Return why there is no cubin.

        It is the first line that says so, or how the assembler ended.
        """
        if outcome.timed_out:
            return here(f"ptxas did not end within {self._timeout_seconds:g} s")
        if outcome.signal:
            return here(f"ptxas was ended by {outcome.signal}")
        first = _first_error(output)
        if first:
            detail = f": {first[:_REFUSAL_CHARS]}"
        else:
            detail = f" without a message, exit code {outcome.exit_code}"
        return blamed(
            f"ptxas refuses the PTX text{detail}", replace(outcome, output=output)
        )


def _first_error(output: str) -> str:
    """Return the first line that reports an error, else the first line with text."""
    first = ""
    for line in output.splitlines():
        text = line.strip()
        if "error" in text or "fatal" in text:
            return text
        first = first or text
    return first
