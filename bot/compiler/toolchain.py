"""Turn a SPEC into a compiler that can be run.

It has its native binary, its Python bindings, and which compiler it is.

Forms of SPEC: a release (`3.13.0`, `iree-base-compiler==3.13.0`), a wheel file, a
directory with one wheel, an `iree-compile` binary, a virtual environment or a build
directory that holds one.

The identity of a compiler is one digest over the bytes of all files that a compile, or
the reading of its IR, runs. It is computed, never taken from what a wheel says of
itself, and remembered by what the kernel says of every file: a second run reads nothing
but that. The same files give the same digest, wherever they are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot.compiler.bindings_python import interpreter
from bot.compiler.compiler_digest import NATIVE_BINARY, compiler_digest
from bot.compiler.wheels import INDEX, fetch_release, newest, only_fitting, unpack
from bot.core.snapshot import CompilerInfo
from bot.core.spec import (
    MOVING,
    PROJECT,
    RESOLVED,
    Places,
    is_release,
    meant_spec,
    release_of,
)
from bot.core.this_machine import here
from bot.errors import CompilerUnavailable
from bot.system.cancel import Cancel
from bot.system.processes import Outcome, run

UNTHREADED = (  # Whole compiles fill the cores, so that threads inside one only cost
    "--mlir-disable-threading"
)


_VERSION = re.compile(r"IREE compiler version (\S+)(?: @ ([0-9a-f]{7,40}))?")
_BINARY_PLACES = (
    "lib/python3*/site-packages/iree/compiler/_mlir_libs/iree-compile",
    "iree/compiler/_mlir_libs/iree-compile",
    "tools/iree-compile",
    "bin/iree-compile",
    "iree-compile",
)
_BINDINGS_PLACES = ("compiler/bindings/python", "python_packages/iree_compiler")
# For the answer to one question, where a compile may take longer
PATIENCE_SECONDS = 120.0
SPEC_HINT = (
    "give a release such as 3.13.0, a wheel, an iree-compile binary, or a directory"
    " that holds one"
)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler of one side, ready to run."""

    binary: Path  # the native `iree-compile`
    info: CompilerInfo
    # directory to put on `sys.path` for its own MLIR bindings; None with the reason in
    # `no_bindings`
    bindings: Path | None
    no_bindings: str = ""
    # for the answer to one question, such as a trivial module
    patience_seconds: float = PATIENCE_SECONDS
    python: str = sys.executable  # the interpreter that loads them


_Located = tuple[Path, Path | None, str]
"""A native binary, the directory of its Python bindings, and the shown SPEC."""


def resolve(
    spec: str,
    cache: Path,
    cancel: Cancel,
    say: Callable[[str], None],
    places: Places = INDEX,
    timeout_seconds: float = PATIENCE_SECONDS,
) -> Toolchain:
    """Return the compiler that `spec` names; raises CompilerUnavailable.

    `say`: gets a line before anything slow; `timeout_seconds`: how long one compile may
    take, and so the answer to a question.
    """
    cache = cache.absolute()  # compiles run in directories of their own
    binary, bindings, shown_spec = _locate(
        spec, cache=cache, cancel=cancel, say=say, places=places
    )
    no_bindings = ""
    patience = min(timeout_seconds, PATIENCE_SECONDS)
    answer = _ask_version(binary, cancel=cancel, where=spec, patience_seconds=patience)
    stated = _VERSION.search(answer.output)
    if not answer.ok or stated is None:
        lines = answer.output.strip().splitlines()[:1]
        detail = f" (it said: {lines[0][:120]})" if lines else ""
        problem = (
            f"is not an iree-compile: --version does not name an IREE compiler{detail}"
        )
        raise CompilerUnavailable(problem, where=spec)
    info = CompilerInfo(
        version=stated[1],
        revision=stated[2] or "",
        digest=compiler_digest(binary, bindings, cache),
        spec=shown_spec,
    )
    python = interpreter(bindings, cancel) if bindings else None
    if bindings is None or python is None:
        bindings = None
        no_bindings = "no MLIR Python bindings beside this compiler"
    elif not python:
        bindings = None
        no_bindings = here("no Python on PATH can load this compiler's MLIR bindings")
    return Toolchain(
        binary=binary,
        info=info,
        bindings=bindings,
        no_bindings=no_bindings,
        patience_seconds=patience,
        python=python or sys.executable,
    )


def _locate(
    spec: str, cache: Path, cancel: Cancel, say: Callable[[str], None], places: Places
) -> _Located:
    """Return the compiler that a path names; if nothing is there, that of a release."""
    try:
        path = Path(spec).expanduser()
        is_path = spec.strip() and not is_release(spec)
        if is_path and path.is_file():
            if path.suffix == ".whl":
                return _unpacked(unpack(path, cache, say=say), path.name)
            return _from_binary(path.resolve(), spec[:200])
        if is_path and path.is_dir():
            return _from_directory(
                path.resolve(), cache=cache, where=spec[:200], say=say
            )
    except (RuntimeError, ValueError):  # `~nobody`, a null character
        pass
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise CompilerUnavailable(problem, where=spec[:200], hint=SPEC_HINT) from None
    moving = spec.strip()
    if moving in MOVING:
        release = newest(moving, places, cancel)
        shown_spec = f"{moving}{RESOLVED}{PROJECT}=={release}"
        say(shown_spec)
    else:
        release = _stated_release(spec)
        shown_spec = f"{PROJECT}=={release}"
    return _unpacked(
        fetch_release(release, cache=cache, cancel=cancel, say=say, places=places),
        shown_spec,
    )


def _stated_release(spec: str) -> str:
    """Return the release that a SPEC states.

    Raises CompilerUnavailable if it states none.
    """
    release = release_of(spec)
    if release is None:
        where = spec[:200] if spec.strip() else "an empty SPEC"
        meant = meant_spec(spec)
        hint = f"did you mean {meant}?" if meant else SPEC_HINT
        raise CompilerUnavailable(
            "is not a compiler: no such file, directory or release",
            where=where,
            hint=hint,
        )
    return release


def _unpacked(root: Path, shown_spec: str) -> _Located:
    return root / NATIVE_BINARY, root, shown_spec


def _from_binary(binary: Path, where: str) -> _Located:
    if _is_script(binary):  # the wrapper of a virtual environment
        try:
            return _from_directory(binary.parent.parent, None, where)
        except CompilerUnavailable:
            problem = (
                "is a script, and its virtual environment or build has no native"
                " iree-compile"
            )
            raise CompilerUnavailable(problem, where=where, hint=SPEC_HINT) from None
    if binary.match(f"*/{NATIVE_BINARY}"):
        return binary, binary.parents[3], binary.name
    places = (binary.parent.parent / place for place in _BINDINGS_PLACES)
    return (
        binary,
        next((place for place in places if (place / "iree/compiler").is_dir()), None),
        binary.name,
    )


def _is_script(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def _from_directory(
    directory: Path,
    cache: Path | None,
    where: str,
    say: Callable[[str], None] | None = None,
) -> _Located:
    if (
        cache is not None
        and say is not None
        and (wheel_files := sorted(directory.glob("iree_base_compiler-*.whl")))
    ):
        return _unpacked(
            unpack(only_fitting(wheel_files, directory), cache, say=say), directory.name
        )
    binaries = list[Path]()
    for place in _BINARY_PLACES:
        binaries += filter(Path.is_file, sorted(directory.glob(place)))
    if native := next((path for path in binaries if not _is_script(path)), None):
        return *_from_binary(native, where)[:2], directory.name
    problem = "holds no iree-compile"
    if binaries:
        problem = "holds an iree-compile that is a script"
    raise CompilerUnavailable(
        f"{problem}, and no iree_base_compiler wheel", where=where, hint=SPEC_HINT
    )


def _ask_version(
    binary: Path, cancel: Cancel, where: str, patience_seconds: float
) -> Outcome:
    try:
        outcome = run(
            [str(binary), "--version"], cancel=cancel, timeout_seconds=patience_seconds
        )
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "name an executable for this machine"
        raise CompilerUnavailable(
            f"cannot be started: {reason}", where=where, hint=hint
        ) from None
    if outcome.timed_out:
        raise CompilerUnavailable(
            f"does not answer --version within {patience_seconds:g} s", where=where
        )
    return outcome
