"""From a SPEC to a compiler that can be run: its native binary, its Python bindings, and what it says of itself.

Forms of SPEC: a release (`3.13.0`, `iree-base-compiler==3.13.0`), a wheel file, a directory with one wheel, an
`iree-compile` binary, a virtual environment or a build directory that holds one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bot.compiler.tools import wheels
from bot.compiler.tools.identity import compiler_digest
from bot.compiler.tools.offered import newest
from bot.core.codec.kinds import mistaken
from bot.core.rules.lasting import here
from bot.core.rules.spec import MOVING, PROJECT, RESOLVED, Places, release_of
from bot.core.values.snapshot import CompilerInfo
from bot.errors import CompilerUnavailable
from bot.system.files import whole_or_nothing
from bot.system.processes import Cancel, Outcome, run

NATIVE_BINARY = Path("iree/compiler/_mlir_libs/iree-compile")
"""Inside a wheel; the `iree-compile` in `bin/` is a Python script that costs up to a second a call."""

_VERSION = re.compile(r"IREE compiler version (\S+)(?: @ ([0-9a-f]{7,40}))?")
_BINARY_PLACES = (
    "lib/python3*/site-packages/iree/compiler/_mlir_libs/iree-compile",
    "Lib/site-packages/iree/compiler/_mlir_libs/iree-compile",
    "iree/compiler/_mlir_libs/iree-compile",
    "tools/iree-compile",
    "bin/iree-compile",
    "iree-compile",
)
_BINDINGS_PLACES = ("compiler/bindings/python", "python_packages/iree_compiler")
_INDEX = Places()
PATIENCE_SECONDS = 120.0
"""For the answer to one question, where a compile may take longer."""
SPEC_HINT = "give a release such as 3.13.0, a wheel, an iree-compile binary, or a directory that holds one"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler of one side, ready to run.

    Attributes:
        binary: the native `iree-compile`.
        bindings: directory to put on `sys.path` for its own MLIR bindings; None with the reason in `no_bindings`.
        patience_seconds: for the answer to one question, such as a trivial module.
    """

    binary: Path
    info: CompilerInfo
    backends: tuple[str, ...]
    bindings: Path | None
    no_bindings: str = ""
    patience_seconds: float = PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class _Located:
    binary: Path
    bindings: Path | None
    shown: str


def resolve(
    spec: str,
    cache: Path,
    cancel: Cancel,
    say: Callable[[str], None],
    places: Places = _INDEX,
    timeout_seconds: float = PATIENCE_SECONDS,
) -> Toolchain:
    """The compiler that `spec` names; raises CompilerUnavailable.

    Args:
        say: gets a line before anything slow.
        timeout_seconds: how long one compile may take, and so the answer to a question.
    """
    cache = cache.absolute()  # compiles run in directories of their own
    named = _locate(spec, cache) or _locate_release(spec, cache, cancel, say, places)
    binary, bindings, no_bindings = named.binary, named.bindings, ""
    patience = min(timeout_seconds, PATIENCE_SECONDS)
    version, revision = _version(binary, spec, cancel, patience)
    info = CompilerInfo(version, revision, compiler_digest(binary, bindings, cache), named.shown)
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    libraries = bindings / NATIVE_BINARY.parent if bindings else None
    if libraries is None or not list(libraries.glob("_mlir.*")):
        bindings, no_bindings = None, "no MLIR Python bindings beside this compiler"
    elif not list(libraries.glob(f"_mlir.{tag}*")) and not list(libraries.glob("_mlir.abi3*")):
        reason = f"this compiler's MLIR bindings are not for Python {tag.removeprefix('cpython-')}"
        bindings, no_bindings = None, here(reason)
    listing = _ask(binary, "--iree-hal-list-target-backends", cancel, binary.name, patience)
    lines = listing.output.splitlines() if listing.ok else []
    backends = sorted(line.strip() for line in lines if re.fullmatch(r" +[\w-]+", line))
    return Toolchain(binary, info, tuple(backends), bindings, no_bindings, patience)


def _locate(spec: str, cache: Path) -> _Located | None:
    """What a path names; None where there is nothing."""
    try:
        path = Path(spec).expanduser()
        if not spec.strip():
            return None
        if path.is_file() and path.suffix == ".whl":
            return _in_wheel(wheels.unpack(path, cache), path.name)
        if path.is_file():
            return _from_binary(path.resolve())
        return _from_directory(path.resolve(), cache) if path.is_dir() else None
    except (RuntimeError, ValueError):  # `~nobody`, a null character
        return None
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise CompilerUnavailable(what, where=spec[:200], hint=SPEC_HINT) from None


def _locate_release(spec: str, cache: Path, cancel: Cancel, say: Callable[[str], None], places: Places) -> _Located:
    moving = spec.strip() if spec.strip() in MOVING else ""
    release = newest(moving, places, cancel) if moving else release_of(spec)
    if release is None:
        where = spec[:200] if spec.strip() else "an empty SPEC"
        raise CompilerUnavailable("is no compiler: no such file, directory or release", where=where, hint=SPEC_HINT)
    shown = f"{PROJECT}=={release}"
    if moving:
        shown = f"{moving}{RESOLVED}{shown}"
        say(shown)
    return _in_wheel(wheels.fetch_release(release, cache, cancel, say, places), shown)


def _in_wheel(root: Path, shown: str) -> _Located:
    return _Located(root / NATIVE_BINARY, root, shown)


def _from_binary(binary: Path) -> _Located:
    if _is_script(binary):  # the wrapper of a virtual environment
        return _from_directory(binary.parent.parent, None)
    if binary.match(f"*/{NATIVE_BINARY}"):
        return _Located(binary, binary.parents[3], binary.name)
    places = (binary.parent.parent / place for place in _BINDINGS_PLACES)
    return _Located(binary, next((place for place in places if (place / "iree/compiler").is_dir()), None), binary.name)


def _is_script(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def _from_directory(directory: Path, cache: Path | None) -> _Located:
    if cache is not None and (wheel_files := sorted(directory.glob("iree_base_compiler-*.whl"))):
        return _in_wheel(wheels.unpack(wheels.only_fitting(wheel_files, directory), cache), directory.name)
    for place in _BINARY_PLACES:
        for binary in sorted(directory.glob(place)):
            if binary.is_file() and not _is_script(binary):
                return replace(_from_binary(binary), shown=directory.name)
    raise CompilerUnavailable(
        "holds no iree-compile and no iree_base_compiler wheel", where=directory.name, hint=SPEC_HINT
    )


def _ask(binary: Path, option: str, cancel: Cancel, where: str, patience_seconds: float) -> Outcome:
    try:
        outcome = run([str(binary), option], cancel=cancel, timeout_seconds=patience_seconds)
    except OSError as error:
        if other := mistaken(whole_or_nothing(binary), "compiler"):
            raise CompilerUnavailable(other[0], where=where, hint=other[1]) from None
        reason = error.strerror or str(error)
        hint = "it must be an executable for this machine"
        raise CompilerUnavailable(f"cannot be started: {reason}", where=where, hint=hint) from None
    if outcome.timed_out:
        raise CompilerUnavailable(f"does not answer {option} within {patience_seconds:g} s", where=where)
    return outcome


def _version(binary: Path, spec: str, cancel: Cancel, patience_seconds: float) -> tuple[str, str]:
    outcome = _ask(binary, "--version", cancel, spec, patience_seconds)
    match = _VERSION.search(outcome.output)
    if not outcome.ok or match is None:
        said = outcome.output.strip().splitlines()[:1]
        detail = f" (it said: {said[0][:120]})" if said else ""
        raise CompilerUnavailable(f"is no iree-compile: --version does not name an IREE compiler{detail}", where=spec)
    return match[1], match[2] or ""
