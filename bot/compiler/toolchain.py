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

import contextlib
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.compiler.storage import read
from bot.compiler.wheels import INDEX, fetch_release, newest, only_fitting, unpack
from bot.core.policy import here
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
from bot.errors import CompilerUnavailable, OutputError
from bot.system.files import hashed, write_atomically
from bot.system.processes import Cancel, Outcome, run

UNTHREADED = (  # Whole compiles fill the cores, so that threads inside one only cost
    "--mlir-disable-threading"
)
LIBRARY = "libIREECompiler.so"
_BESIDE = ("iree-lld", "lib*.so*", "iree_platform_libs/**/*")
"""What the compiler reads beside its binary.

The linker, the libraries, and the device code that the compiler links in.
"""
_IN_LIB = (f"{LIBRARY}*", "iree_platform_libs/**/*")
"""What lies in `lib` of a build directory, which has its binaries in `tools`."""
_SHARED = "lib*.so*"  # of a build whose libraries are shared ones
_OF_THE_SYSTEM = (Path("/lib"), Path("/usr/lib"))
_BINDINGS = ("iree/compiler/**/*.py", "iree/compiler/_mlir_libs/*.so")
# Longer than the kernel's clock takes to go on: until then a file can change and keep
# its times
_TICK_SECONDS = 0.02


NATIVE_BINARY = Path("iree/compiler/_mlir_libs/iree-compile")
"""The native binary inside a wheel.

The `iree-compile` in `bin/` is a Python script that costs up to a second a call.
"""

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


_LOADS = (
    "import sys; sys.path.insert(0, sys.argv[1]); sys.modules['numpy'] = None; import"
    " iree.compiler.ir"
)
# Byte code beside the bindings is neither read nor written: anybody who ran a compiler
# may have written it.
NO_BYTE_CODE = ("-B", "-X", f"pycache_prefix={os.devnull}/none")
_PYTHONS = [f"python3.{minor}" for minor in range(9, 20)]


def interpreter(root: Path, cancel: Cancel) -> str | None:
    """Return the Python that loads the MLIR bindings below `root`.

    It is this one, else one on PATH that is seen to load them. Empty where there is
    none, None where there are no bindings.
    """
    libraries = [path.name for path in (root / NATIVE_BINARY.parent).glob("_mlir.*")]
    if not libraries:
        return None
    if any(
        name.startswith(f"_mlir.{sys.implementation.cache_tag}-") for name in libraries
    ):
        return sys.executable
    other_names = (
        os.path.join(place, name) for name in _PYTHONS for place in os.get_exec_path()
    )
    for python in (sys.executable, *filter(os.path.exists, other_names)):
        with contextlib.suppress(OSError):
            if run(
                [python, "-I", *NO_BYTE_CODE, "-c", _LOADS, str(root)],
                cancel=cancel,
                timeout_seconds=60,
            ).ok:
                return python
    return ""


def _locate(
    spec: str, cache: Path, cancel: Cancel, say: Callable[[str], None], places: Places
) -> _Located:
    """Return what a path names; where there is nothing, a release."""
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
    """Return the release that a SPEC states; raises CompilerUnavailable for none."""
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
    binaries = [
        path
        for place in _BINARY_PLACES
        for path in sorted(directory.glob(place))
        if path.is_file()
    ]
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


def compiler_digest(binary: Path, bindings: Path | None, cache: Path) -> str:
    """SHA-256 (hex) over the compiler's files and names.

    Raises CompilerUnavailable where they change meanwhile.
    """
    # of two places a file of one name each
    files = [*dict.fromkeys(_files(binary, bindings))]
    identity = _identity(files)
    memo = cache / "digests" / hashlib.sha256(identity.encode()).hexdigest()
    stored_digest = read(memo).decode("ascii", "replace")
    if re.fullmatch(r"[0-9a-f]{64}", stored_digest):
        return stored_digest
    time.sleep(_TICK_SECONDS)
    digest = hashlib.sha256(
        "".join(f"{name}\0{hashed(path)}\n" for name, path in files).encode()
    ).hexdigest()
    if _identity([*dict.fromkeys(_files(binary, bindings))]) != identity:
        hint = "wait until the build is done"
        raise CompilerUnavailable(
            "changed while the bot was reading it", where=binary.name, hint=hint
        )
    with contextlib.suppress(OutputError):  # only the next run's time is lost
        write_atomically(memo, digest.encode())
    return digest


def _files(binary: Path, bindings: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield name within the compiler → file.

    The order is the same everywhere.
    """
    yield "iree-compile", binary
    libraries = binary.parent.parent / "lib"
    in_lib = [*_IN_LIB]
    if libraries not in _OF_THE_SYSTEM:
        in_lib.append(_SHARED)
    places = [("", binary.parent, _BESIDE), ("", libraries, in_lib)]
    if bindings is not None:
        places.append(("python/", bindings, _BINDINGS))
    for prefix, root, patterns in places:
        for pattern in patterns:
            files = sorted(
                (path.relative_to(root).as_posix(), path)
                for path in root.glob(pattern)
                if path.is_file()
            )
            yield from ((prefix + name, path) for name, path in files)


def _identity(files: Sequence[tuple[str, Path]]) -> str:
    """Return what tells a file from any other, and from itself before a change."""
    rows = []
    for name, path in files:
        stat = path.stat()
        times = (stat.st_mtime_ns, stat.st_ctime_ns)
        rows.append(
            f"{name}\0{path}\0{stat.st_dev} {stat.st_ino} {stat.st_size} {times}"
        )
    return "\n".join(rows)
