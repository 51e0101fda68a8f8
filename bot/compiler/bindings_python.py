"""Find the Python that loads the MLIR bindings of a compiler."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from bot.compiler.compiler_digest import NATIVE_BINARY
from bot.system.cancel import Cancel
from bot.system.processes import run

_LOADS = (
    "import sys; sys.path.insert(0, sys.argv[1]); sys.modules['numpy'] = None; import"
    " iree.compiler.ir"
)
# Byte code beside the bindings is neither read nor written: anybody who ran a compiler
# may have written it.
NO_BYTE_CODE = ("-B", "-X", f"pycache_prefix={os.devnull}/none")
# The program that reads IR needs Python 3.10, as this one does.
_PYTHONS = [f"python3.{minor}" for minor in range(10, 20)]


def interpreter(root: Path, cancel: Cancel) -> str | None:
    """Return the Python that loads the MLIR bindings below `root`.

    It is this one, else the first on PATH that can load them. Empty if there is
    none, and None if there are no bindings.
    """
    libraries = [path.name for path in (root / NATIVE_BINARY.parent).glob("_mlir.*")]
    if not libraries:
        return None
    own_library = f"_mlir.{sys.implementation.cache_tag}-"
    if any(name.startswith(own_library) for name in libraries):
        return sys.executable
    pythons = [sys.executable]
    for name in _PYTHONS:
        pythons += [os.path.join(place, name) for place in os.get_exec_path()]
    for python in filter(os.path.exists, pythons):
        with contextlib.suppress(OSError):
            if run(
                [python, "-I", *NO_BYTE_CODE, "-c", _LOADS, str(root)],
                cancel=cancel,
                timeout_seconds=60,
            ).ok:
                return python
    return ""
