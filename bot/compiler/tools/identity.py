"""The identity of a compiler: one digest over the bytes of all files that a compile, or the reading of its IR, runs.

It is computed, never taken from what a wheel says of itself, and remembered by what the kernel says of every file: a
second run reads nothing but that. The same files give the same digest, wherever they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from bot.compiler.caches.storage import touch
from bot.errors import CompilerUnavailable, OutputError
from bot.system.files import write_atomically

LIBRARY = "libIREECompiler.so"
_BESIDE = ("iree-lld", "lib*.so*", "iree_platform_libs/**/*")
"""The linker, the libraries, and the device code that the compiler links in, beside its binary."""
_IN_LIB = (f"{LIBRARY}*", "iree_platform_libs/**/*")
"""What lies in `lib` of a build directory, which has its binaries in `tools`."""
_BINDINGS = ("iree/compiler/**/*.py", "iree/compiler/_mlir_libs/*.so")
_TICK_SECONDS = 0.02
"""Longer than the kernel's clock takes to go on: until then a file can change and keep its times."""


def compiler_digest(binary: Path, bindings: Path | None, cache: Path) -> str:
    """SHA-256 (hex) over the compiler's files and names; raises CompilerUnavailable where they change meanwhile."""
    files = dict(_files(binary, bindings))
    identity = _identity(files)
    memo = cache / "digests" / hashlib.sha256(identity.encode()).hexdigest()
    with contextlib.suppress(OSError, ValueError):
        known = memo.read_text(encoding="ascii")
        if re.fullmatch(r"[0-9a-f]{64}", known):
            touch(memo)
            return known
    time.sleep(_TICK_SECONDS)
    digest = hashlib.sha256("".join(f"{name}\0{hashed(path)}\n" for name, path in files.items()).encode()).hexdigest()
    if _identity(dict(_files(binary, bindings))) != identity:
        hint = "wait until the build is done"
        raise CompilerUnavailable("is being written while it is read", where=binary.name, hint=hint)
    with contextlib.suppress(OutputError):  # only the next run's time is lost
        write_atomically(memo, digest.encode())
    return digest


def _files(binary: Path, bindings: Path | None) -> Iterator[tuple[str, Path]]:
    """Name within the compiler → file, in the same order everywhere."""
    yield "iree-compile", binary
    places = [("", binary.parent, _BESIDE), ("", binary.parent.parent / "lib", _IN_LIB)]
    if bindings is not None:
        places.append(("python/", bindings, _BINDINGS))
    for prefix, root, patterns in places:
        for pattern in patterns:
            files = sorted((path.relative_to(root).as_posix(), path) for path in root.glob(pattern) if path.is_file())
            yield from ((prefix + name, path) for name, path in files)


def _identity(files: dict[str, Path]) -> str:
    """What tells a file from any other, and from itself before a change."""
    rows = []
    for name, path in files.items():
        stat = path.stat()
        times = (stat.st_mtime_ns, stat.st_ctime_ns)
        rows.append(f"{name}\0{path}\0{stat.st_dev} {stat.st_ino} {stat.st_size} {times}")
    return "\n".join(rows)


def hashed(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
