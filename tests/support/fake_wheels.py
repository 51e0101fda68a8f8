"""Tiny wheels of `iree-base-compiler` around the fake compiler."""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from fake_compiler import FakeCompiler, native_launcher
from packaging.tags import platform_tags

LIBRARIES = "iree/compiler/_mlir_libs"
DIST_INFO = "iree_base_compiler-3.13.0.dist-info"
RELEASE = "3.13.0"
LIBRARY = b"\x7fELF the compiler library of 300 MB"
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
HERE = next(iter(platform_tags()))


def wheel_name(
    version: str = "3.13.0", python: str = PYTHON, platform: str = HERE
) -> str:
    """The file name of a release's wheel."""
    return f"iree_base_compiler-{version}-{python}-{python}-{platform}.whl"


def record_row(path: str, data: bytes) -> str:
    """A line of RECORD (PEP 376)."""
    digest = (
        base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    )
    return f"{path},sha256={digest},{len(data)}\n"


def entries(
    fake: FakeCompiler, library: bytes = LIBRARY, version: str = RELEASE
) -> dict[str, bytes]:
    """What the wheel of a fake holds, without its bindings."""
    info = DIST_INFO.replace(RELEASE, version)
    files = {
        f"{LIBRARIES}/iree-compile": native_launcher(fake.binary),
        f"{LIBRARIES}/iree-lld": b"\x7fELF",
        f"{LIBRARIES}/libIREECompiler.so": library,
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: iree-base-compiler\nVersion: {version}\n".encode()
        ),
        f"{info}/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: fake\nRoot-Is-Purelib: false\n"
        ),
    }
    record = "".join(record_row(path, data) for path, data in files.items())
    return {**files, f"{info}/RECORD": record.encode()}


def write_wheel(path: Path, files: Mapping[str, bytes]) -> Path:
    """A wheel file; entries are packed as real wheels pack them, without permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path
