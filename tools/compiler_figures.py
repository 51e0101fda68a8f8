"""Read the figures of an artifact, and of the compiler's dumps, with other tools.

The printed command is run with additional dump options. They leave the artifact as it
is, and the caller checks that by its digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

DUMPS = ("--dump-compilation-phases-to", "--iree-hal-dump-executable-binaries-to")
EXECUTABLE = re.compile(r'mime_type = "application/x-(?:flatbuffers|elf)"')
LENGTH = re.compile(r": vector<(\d+)xi8>")
STATISTICS = {
    "dispatch_sites": ("execution", "dispatch-count"),
    "executables": ("executable", "executable-count"),
    "fills": ("execution", "fill-count"),
    "copies": ("execution", "copy-count"),
    "submissions": ("execution", "submission-count"),
    "awaits": ("synchronization", "await-count"),
    "transient_memory_bytes": ("execution", "transient-memory-size"),
    "constant_bytes": ("global", "constant-size"),
}
"""Metric → where `stream-aggregate` of the compiler's statistics has it."""
NOTES: Mapping[str, tuple[str, Callable[[Iterable[int]], int]]] = {
    "vgprs_max": (".vgpr_count", max),
    "sgprs_max": (".sgpr_count", max),
    "agprs_max": (".agpr_count", max),
    "vgpr_spills": (".vgpr_spill_count", sum),
    "sgpr_spills": (".sgpr_spill_count", sum),
}
"""Metric → the key in a kernel's metadata, and what is taken of all kernels."""
TOOLS = ("readelf", "llvm-readelf", "ptxas", "spirv-val")


@dataclass(frozen=True)
class Compiled:
    """What a printed command gave."""

    # has the artifact as `a.vmfb` and the dumps; nothing of it where the command failed
    folder: Path
    digest: str = ""
    # metric → the value by another tool
    figures: Mapping[str, int] = field(default_factory=dict)

    @property
    def ran(self) -> bool:
        """Return whether the command gave an artifact."""
        return bool(self.digest)


def listing(path: Path) -> str:
    """Return what the runtime's own tool says of a module's segments."""
    beside = Path(sys.executable).parent / "iree-dump-module"
    tool = (
        str(beside)
        if beside.is_file()
        else shutil.which("iree-dump-module") or "iree-dump-module"
    )
    return subprocess.run(
        [tool, "--output=metadata", str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def executable_bytes(vm: str) -> int:
    """Return the bytes of all executables in the dump of the VM phase."""
    lines = (
        line
        for line in vm.splitlines()
        if "vm.rodata private" in line[:80] and EXECUTABLE.search(line[:600])
    )
    return sum(int(LENGTH.findall(line[-80:])[-1]) for line in lines)


def tool_of(metric: str) -> str:
    """Return the name of the tool that gives a figure."""
    return "the compiler's statistics" if metric in STATISTICS else "iree-dump-module"


def compiled(command: str, binary: Path, home: Path, folder: Path) -> Compiled:
    """Run a printed command in a shell with dumps, and read what it gave."""
    dumps = [f"{name}={folder / str(number)}" for number, name in enumerate(DUMPS)]
    dumps += [f"--iree-hal-dump-executable-intermediates-to={folder / '2'}"] * (
        "llvm-cpu" in command
    )
    dumps += ["--iree-scheduling-dump-statistics-format=json"]
    dumps += [f"--iree-scheduling-dump-statistics-file={folder / 'statistics.json'}"]
    line = command.replace("iree-compile -", f"{binary} - {' '.join(dumps)}", 1)
    line = re.sub(r"-o \S+\.vmfb", f"-o {folder / 'a.vmfb'}", line, count=1)
    done = subprocess.run(
        ["sh", "-c", line], cwd=home, capture_output=True, check=False
    )
    artifact = folder / "a.vmfb"
    if done.returncode or not artifact.is_file():
        return Compiled(folder)
    return Compiled(
        folder, hashlib.sha256(artifact.read_bytes()).hexdigest(), dict(figures(folder))
    )


def figures(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the metrics that have a second source, with its values."""
    yield from segments(folder)
    statistics = folder / "statistics.json"
    totals = (
        json.loads(statistics.read_text(encoding="utf-8"))["stream-aggregate"]
        if statistics.is_file()
        else {}
    )
    for metric, (group, key) in STATISTICS.items():
        if isinstance(value := totals.get(group, {}).get(key), int):
            yield metric, value


def segments(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the artifact's parts by `iree-dump-module`.

    The IR of the VM phase says which segments are executables.
    """
    printed = listing(folder / "a.vmfb")
    whole = (folder / "a.vmfb").stat().st_size
    bytecode = re.search(r"^ *Bytecode: (\d+) bytes", printed, re.MULTILINE)
    data = sum(
        map(
            int,
            re.findall(
                r"^ *\.rodata\[ *\d+\] +\w+ +(\d+) bytes", printed, re.MULTILINE
            ),
        )
    )
    host = int(bytecode[1]) if bytecode else 0
    (vm,) = (
        path for path in (folder / "0").iterdir() if path.name.split(".")[-2] == "vm"
    )
    executables = executable_bytes(vm.read_text(encoding="utf-8"))
    yield from (
        ("artifact_bytes", whole),
        ("vm_bytes", host),
        ("executable_bytes", executables),
    )
    yield from (
        ("rodata_bytes", data - executables),
        ("unattributed_bytes", whole - host - data),
    )


def device_files(folder: Path, *suffixes: str) -> list[Path]:
    """Return the compiler's own dumps of device code."""
    return sorted(path for path in folder.rglob("*") if path.suffix in suffixes)


# readelf


def section_bytes(path: Path, name: str) -> int:
    """Return the size of a section by `readelf`; 0 without it."""
    return sum(size for section, size in sections(path) if section == name)


def sections(path: Path) -> list[tuple[str, int]]:
    """Return all sections with their sizes by `readelf`."""
    rows = re.findall(
        r"\] (\S+) +[A-Z_]+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) ",
        output("readelf", "-SW", str(path)),
    )
    return [(section, int(size, 16)) for section, size in rows]


def function_bytes(path: Path) -> dict[str, int]:
    """Return function → its size by `readelf`.

    `readelf` writes sizes of six digits and more in hexadecimal. A function that is
    in both tables counts once.
    """
    row = re.compile(
        r"^ *\d+: [0-9a-f]+ +(\d+|0x[0-9a-f]+) FUNC .* (\S+)$", re.MULTILINE
    )
    return {
        name: int(size, 0)
        for size, name in row.findall(output("readelf", "-sW", str(path)))
    }


def machine_code(cubin: Path) -> dict[str, int]:
    """Return function → the size of its section of machine code by `readelf`."""
    return {
        name.removeprefix(".text."): size
        for name, size in sections(cubin)
        if name.startswith(".text.")
    }


def kernels(path: Path) -> dict[str, dict[str, Any]]:
    """Return kernel → its metadata in an AMD code object, by `llvm-readelf`."""
    notes = (
        output("llvm-readelf", "--notes", str(path))
        .partition("---\n")[2]
        .partition("\n...")[0]
    )
    return {
        str(kernel[".name"]): kernel
        for kernel in (yaml.safe_load(notes) or {}).get("amdhsa.kernels", ())
    }


# ptxas and spirv-val


@dataclass(frozen=True)
class Assembled:
    """What `ptxas` says of a module."""

    # entry point → how many it takes, for all that were compiled
    registers: Mapping[str, int] = field(default_factory=dict)
    spill_bytes: int = 0  # of all functions, stores and loads
    complaint: str = ""  # why it refused the module; empty where it did not


def assembled(path: Path) -> Assembled:
    """Let `ptxas` compile a module; the machine code is then beside it, as `.cubin`."""
    target = re.search(
        r"^\.target (sm_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    if target is None:
        return Assembled(complaint="it names no target")
    command = (
        tool("ptxas"),
        f"-arch={target[1]}",
        "-v",
        str(path),
        "-o",
        str(path.with_suffix(".cubin")),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    printed = done.stdout + done.stderr
    if done.returncode:
        return Assembled(complaint=printed.strip() or f"exit code {done.returncode}")
    _, *texts = re.split(r"Compiling entry function '(\S+)'", printed)
    used = [
        (name, re.search(r"Used (\d+) registers", text))
        for name, text in zip(texts[::2], texts[1::2], strict=True)
    ]
    spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", printed)
    return Assembled(
        {name: int(count[1]) for name, count in used if count}, sum(map(int, spilled))
    )


def invalid(path: Path) -> str:
    """Return what `spirv-val` complains of in a module, without numbers.

    Empty if it accepts the module.
    """
    command = (tool("spirv-val"), "--target-env", "vulkan1.3", str(path))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    first = (done.stdout + done.stderr).strip().partition("\n")[0]
    return re.sub(r"\d+", "N", first) or f"exit code {done.returncode}"


def output(name: str, *words: str) -> str:
    """Return what a tool prints; raises CalledProcessError if it fails."""
    return subprocess.run(
        (tool(name), *words), capture_output=True, text=True, check=True
    ).stdout


def tool(name: str) -> str:
    """Return the path of a tool.

    It is beside this Python, in a package that brings it, or on PATH. Raises
    FileNotFoundError.
    """
    if path := next(
        filter(None, (shutil.which(name, path=str(place)) for place in places())), None
    ):
        return path
    raise FileNotFoundError(f"{name} is not here")


def places() -> Iterator[Path]:
    """Yield the folders in which tools are looked for.

    They are those of Python packages, such as CUDA's and SPIR-V's, then those of
    PATH.
    """
    for path in map(Path, sys.path):
        yield path / "nvidia" / "cuda_nvcc" / "bin"
        yield path / "cmeel.prefix" / "bin"
    yield Path(sys.executable).parent
    for path in map(Path, os.get_exec_path()):
        yield path
