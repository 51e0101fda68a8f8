"""Digest the files of a compiler that decide what it compiles."""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.compiler.storage import read
from bot.errors import CompilerUnavailable, OutputError
from bot.system.files import hashed, write_atomically

LIBRARY = "libIREECompiler.so"
_BESIDE = ("iree-lld", "lib*.so*", "iree_platform_libs/**/*")
"""The files that the compiler reads beside its binary.

They are the linker, the libraries, and the device code that the compiler links in.
"""
_IN_LIB = (f"{LIBRARY}*", "iree_platform_libs/**/*")
"""The files in `lib` of a build directory, which has its binaries in `tools`."""
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


def compiler_digest(binary: Path, bindings: Path | None, cache: Path) -> str:
    """Return the SHA-256 (hex) over the compiler's files and names.

    Raises CompilerUnavailable if they change meanwhile.
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
            paths = list(filter(Path.is_file, root.glob(pattern)))
            files = sorted((path.relative_to(root).as_posix(), path) for path in paths)
            for name, path in files:
                yield prefix + name, path


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
