"""Fakes of `iree-compile` that are real programs: installed into a directory, run like the real one.

The program itself is `fakes/iree_compile.py`; here are the ways to install it, to ask
what was run, and what it must have made. A rule is `{"do": …, "kind": …, "model": …,
"argv": …}`: the first whose `kind` (of `options` and `direct`; both separated by a
space), part of the model's text and part of the command line fit decides. `do` is
`crash`, `hang`, `flood`, `refuse` (the stack gate), `fail`, `warn`, `differ` (another
artifact), `random` (another one each time), `grow` (a larger one, as often as it stands
there), `flaky` (a larger one every other time), `burn` (CPU time), `once-fails`,
`truncate`, `say CODE TEXT`, `nothing` (success without an artifact), `huge BYTES FILE`
(a file of the compile's directory is that long, for the most part a hole), or anything
else for good behaviour.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import FIXTURES, PROGRAMS

from bot.compiler.toolchain import Toolchain
from bot.core.planned import LIFTED_LIMIT_FLAG, Model, PlannedCell, Target, plan
from bot.core.snapshot import CompilerInfo

PROGRAM = PROGRAMS / "iree_compile.py"
BINARIES = FIXTURES / "binaries"
TEMPLATES = {
    "llvm-cpu": str(BINARIES / "dense.llvm-cpu-x86_64.vmfb"),
    "rocm": str(BINARIES / "dense.rocm.vmfb"),
    "vmvx": str(BINARIES / "dense.vmvx.vmfb"),
    "cuda": str(BINARIES / "dense.cuda.vmfb"),
    "vulkan-spirv": str(BINARIES / "dense.vulkan-spirv.vmfb"),
    "metal-spirv": str(BINARIES / "dense.metal-spirv.vmfb"),
}
"""Real artifacts, so that the readers have something to read."""

X86 = Target("llvm-cpu-x86_64", "llvm-cpu", ("--iree-llvmcpu-target-cpu=x86-64-v3",))
ARM = Target("llvm-cpu-aarch64", "llvm-cpu", ("--iree-llvmcpu-target-cpu=generic",))
ROCM = Target("rocm", "rocm", ("--iree-rocm-target=gfx942",))
VMVX = Target("vmvx", "vmvx")
TARGETS = (X86, ROCM, VMVX)

_LOADED_AT = 0x400000
_HEADERS_BYTES = 64 + 56


def _machine_code(pointers: Sequence[int]) -> bytes:
    """x86-64: execve(first pointer, the stack with the three pointers put before argv[1], environment), or exit(127).

    mov rcx,[rsp]; lea rdx,[rsp+rcx*8+16]; mov rdi,1st; mov [rsp-8],rdi; mov rax,2nd;
    mov [rsp],rax; mov rax,3rd; mov [rsp+8],rax; lea rsi,[rsp-8]; mov eax,59; syscall;
    mov edi,127; mov eax,60; syscall
    """
    parts = ("488b0c24488d54cc1048bf", "48897c24f848b8", "4889042448b8")
    tail = "4889442408488d7424f8b83b0000000f05bf7f000000b83c0000000f05"
    loads = (
        bytes.fromhex(part) + struct.pack("<Q", pointer)
        for part, pointer in zip(parts, pointers, strict=True)
    )
    return b"".join(loads) + bytes.fromhex(tail)


def native_launcher(script: Path) -> bytes:
    """A static ELF program that becomes `python -IS script ARGUMENTS…`.

    The bot tells native compilers from wrapper scripts by their first bytes, so a fake
    must not begin with `#!`.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the fake native compiler is for Linux on x86-64")
    arguments = [str(word).encode() + b"\0" for word in (sys.executable, "-IS", script)]
    start = _LOADED_AT + _HEADERS_BYTES + len(_machine_code((0, 0, 0)))
    code = _machine_code(
        [start + sum(map(len, arguments[:i])) for i in range(3)]
    ) + b"".join(arguments)
    size = _HEADERS_BYTES + len(code)
    entry = _LOADED_AT + _HEADERS_BYTES
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\2\1\1",
        2,
        62,
        1,
        entry,
        64,
        0,
        0,
        64,
        56,
        1,
        0,
        0,
        0,
    )
    segment = struct.pack(
        "<IIQQQQQQ", 1, 5, 0, _LOADED_AT, _LOADED_AT, size, size, 0x1000
    )
    return header + segment + code


def program() -> ModuleType:
    """The fake as a module, for what it must make."""
    spec = importlib.util.spec_from_file_location("fake_iree_compile", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_PROGRAM = program()


@dataclass(frozen=True)
class FakeCompiler:
    """A fake in a directory of its own; `binary` is a script that can be run at once."""

    home: Path
    version: str
    digest: str
    templates: dict[str, str]

    @property
    def binary(self) -> Path:
        """The program."""
        return self.home / "iree-compile.py"

    @property
    def toolchain(self) -> Toolchain:
        """As `resolve` would give it."""
        info = CompilerInfo(self.version, "ab" * 20, self.digest, self.version)
        return Toolchain(
            self.binary, info, None, "no MLIR Python bindings beside this compiler"
        )

    def calls(self, *kinds: str) -> list[dict[str, Any]]:
        """What was run, in the order in which it began; all kinds where none is named."""
        log = self.home / "calls.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [
            call
            for call in map(json.loads, lines)
            if not kinds or call["kind"] in kinds
        ]

    @property
    def compiles(self) -> int:
        """How many compiles of models ran."""
        return len(self.calls("direct"))

    @property
    def pids(self) -> list[int]:
        """Processes that a `hang` left word of: compilers and their children."""
        file = self.home / "pids"
        return (
            [int(line) for line in file.read_text().splitlines()]
            if file.exists()
            else []
        )

    def artifact(self, cell: PlannedCell, *, lifted: bool = False) -> bytes:
        """What the compile of a cell gives."""
        argv = (*cell.argv, *((LIFTED_LIMIT_FLAG,) if lifted else ()))
        name = self.templates.get(cell.target.backend)
        text = Path(cell.model.path).read_text()
        template = Path(name).read_bytes() if name else b""
        artifact: bytes = _PROGRAM.artifact(text, argv, template)
        return artifact


def install(
    home: Path,
    rules: Sequence[dict[str, str]] = (),
    *,
    unknown: Sequence[str] = (),
    version: str = "3.13.0rc1",
    templates: dict[str, str] | None = None,
) -> FakeCompiler:
    """A fake compiler in the directory `home`.

    `templates` maps a backend to the file its artifacts begin with.
    """
    home.mkdir(parents=True, exist_ok=True)
    knobs = {
        "rules": list(rules),
        "unknown": list(unknown),
        "version": version,
    }
    digest = hashlib.sha256(json.dumps(knobs, sort_keys=True).encode()).hexdigest()
    all_knobs = {**knobs, "templates": templates or {}}
    (home / "knobs.json").write_text(json.dumps(all_knobs))
    fake = FakeCompiler(home, version, digest, templates or {})
    lines = (
        f"#!{sys.executable} -IS",
        "import sys",
        f"sys.path[:0] = [{str(PROGRAM.parent)!r}]",
        "from iree_compile import main",
        f"sys.exit(main({str(home)!r}, {all_knobs!r}, sys.argv[1:]))",
    )
    fake.binary.write_text("\n".join(lines) + "\n")
    fake.binary.chmod(0o755)
    return fake


def install_native(path: Path, fake: FakeCompiler) -> Path:
    """The same fake as a native binary at `path`, with a library beside it, as the compiler has one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(native_launcher(fake.binary))
    path.chmod(0o755)
    (path.parent / "libIREECompiler.so").write_bytes(
        b"\x7fELF library " + (fake.home / "knobs.json").read_bytes()
    )
    return path


def write_model(directory: Path, name: str, text: str = "func.func @main()") -> Model:
    """A model file and its entry in a plan."""
    path = directory / f"{name}.mlir"
    data = f"// model {name}\n{text}\n".encode()
    path.write_bytes(data)
    return Model(
        name=name,
        path=str(path),
        shown=path.name,
        digest=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
    )


def cells_of(
    directory: Path,
    names: Sequence[str],
    targets: Sequence[Target] = TARGETS,
    flags: Sequence[str] = (),
) -> tuple[PlannedCell, ...]:
    """The plan for models of these names."""
    return plan([write_model(directory, name) for name in names], targets, flags)


def is_alive(pid: int) -> bool:
    """True while a process runs; a zombie that its parent has not yet collected is gone."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            not in "ZX"
        )
    except FileNotFoundError:
        return False


def wait_until(condition: Any, seconds: float = 10) -> bool:
    """Wait for a condition, at most some seconds; whether it came true."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(condition())
