"""The artifact reader, against iree-dump-module."""

from __future__ import annotations

import re
import subprocess

import needs
import pytest
from growth import steps
from reader_checks import BINARIES, check_flips, check_truncations, fixture

from bot.errors import MalformedBinary
from bot.readers.artifact import read_artifact
from bot.readers.vm_module import parse_module

ARTIFACTS = sorted(path.name for path in BINARIES.glob("*.vmfb"))
SMALLEST = "dense.vmvx.vmfb"
FORMATS = {
    "llvm-cpu-x86_64": "elf",
    "llvm-cpu-aarch64": "elf",
    "llvm-cpu-riscv64": "elf",
    "vmvx": "vm-bytecode",
    "vulkan-spirv": "spirv",
    "cuda": "ptx",
    "rocm": "hsaco",
    "metal-spirv": "msl",
}


@pytest.mark.parametrize("name", ARTIFACTS)
def test_sizes_are_those_of_the_recorded_dump(name: str) -> None:
    compare_with_dump(name, fixture(f"{name}.dump.txt").decode())


@pytest.mark.parametrize("name", ARTIFACTS)
def test_sizes_are_those_of_iree_dump_module(name: str) -> None:
    command = [needs.program("iree-dump-module"), "--output=metadata", str(BINARIES / name)]
    compare_with_dump(name, subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize(("target", "expected"), FORMATS.items())
def test_executables_of_every_target_are_read(target: str, expected: str) -> None:
    reading = read_artifact(fixture(f"dense.{target}.vmfb"))
    assert {executable.format for executable in reading.executables} == {expected}
    assert reading.unread == ()
    assert sum(executable.size_bytes for executable in reading.executables) == reading.executable_bytes


@pytest.mark.parametrize("name", ["dense.cuda.vmfb", "dense-3.8.0.vulkan-spirv.vmfb", "dense.llvm-cpu-x86_64.vmfb"])
def test_executables_of_an_unknown_format_are_no_constants(name: str) -> None:
    data = fixture(name)
    known, hidden = read_artifact(data), read_artifact(disguised(data))
    assert (hidden.executable_bytes, hidden.rodata_bytes, hidden.executables) == (None, None, ())
    assert (hidden.vm_bytes, hidden.unattributed_bytes) == (known.vm_bytes, known.unattributed_bytes)
    assert hidden.unread == (
        "no reader knows the format of its executables, so they cannot be told apart from constants",
    )


def test_an_artifact_that_loads_no_executables_has_none() -> None:
    data = fixture("dense.cuda.vmfb")
    known, idle = read_artifact(data), read_artifact(disguised(data).replace(b"hal.executable.", b"hal.somethings."))
    assert (idle.executable_bytes, idle.unread) == (0, ())
    assert known.executable_bytes and known.rodata_bytes
    assert idle.rodata_bytes == known.executable_bytes + known.rodata_bytes


@pytest.mark.parametrize("name", ARTIFACTS)
def test_all_but_tables_and_padding_is_attributed(name: str) -> None:
    reading = read_artifact(fixture(name))
    flatbuffer = int.from_bytes(fixture(name)[:4], "little")
    assert 0 < reading.unattributed_bytes < flatbuffer + 200 - reading.vm_bytes


def test_the_embedded_library_is_the_one_the_compiler_dumped() -> None:
    data, library = fixture("dense.llvm-cpu-x86_64.vmfb"), fixture("dense.llvm-cpu-x86_64.so")
    reading = read_artifact(data)
    assert library in data
    assert reading.executable_bytes == len(library)


@pytest.mark.parametrize(
    ("target", "magic", "reason"),
    [
        ("llvm-cpu-x86_64", b"\x7fELF\x02", "elf"),
        ("cuda", b"CDA1", "unknown container b'XXX1'"),
        ("vulkan-spirv", b"\x03\x02\x23\x07", "spirv"),
    ],
)
def test_an_executable_that_cannot_be_read_keeps_its_bytes_and_says_why(target: str, magic: bytes, reason: str) -> None:
    data = fixture(f"dense.{target}.vmfb")
    damage = b"\x7fELF\x09" if magic.startswith(b"\x7f") else b"XXX1" if magic.isalnum() else bytes(4)
    whole, damaged = read_artifact(data), read_artifact(data.replace(magic, damage))
    assert damaged.executable_bytes == whole.executable_bytes
    assert damaged.executables == ()
    assert len(damaged.unread) == len(whole.executables)
    assert reason in damaged.unread[0]
    assert damaged.unread[0].startswith("executable of ")


def test_data_in_front_that_is_a_zip_header_is_unattributed() -> None:
    plain = read_artifact(fixture(SMALLEST))
    header = (
        b"PK\x03\x04" + bytes(22) + (9).to_bytes(2, "little") + (25).to_bytes(2, "little") + b"module.fb" + bytes(25)
    )
    polyglot = read_artifact(header + fixture(SMALLEST))
    assert polyglot.unattributed_bytes == plain.unattributed_bytes + len(header)
    assert polyglot.executables == plain.executables


@pytest.mark.parametrize("data", [b"", b"IREE", b"\x7fELF", bytes(1000), b"PK\x03\x04"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedBinary):
        read_artifact(data)


def test_truncated_at_every_offset() -> None:
    data = fixture(SMALLEST)
    refused = check_truncations(read_artifact, data)
    last = max(segment.end for segment in parse_module(data).segments)
    assert refused == last


@pytest.mark.parametrize("name", [SMALLEST, "dense.llvm-cpu-aarch64.vmfb", "pointwise.cuda.vmfb"])
def test_flipped_bytes(name: str) -> None:
    assert check_flips(read_artifact, fixture(name), rounds=500) > 5


@pytest.mark.parametrize("name", ARTIFACTS)
def test_reading_takes_few_steps_a_byte(name: str) -> None:
    data = fixture(name)
    assert steps(lambda: read_artifact(data)) < 20 * len(data)


def disguised(data: bytes) -> bytes:
    """The artifact with its executables in a format that nobody knows."""
    for magic in (b"CDA1", b"VKE1", b"\x7fELF"):
        data = data.replace(magic, b"\0\1\2\3")
    return data


def compare_with_dump(name: str, dump: str) -> None:
    reading = read_artifact(fixture(name))
    segments = [
        int(size) for size in re.findall(r"^ +\.rodata\[ *\d+\] (?:embedded|external) +(\d+) bytes", dump, re.M)
    ]
    bytecode = re.search(r"^ +Bytecode: (\d+) bytes", dump, re.M)
    assert bytecode is not None
    assert reading.vm_bytes == int(bytecode[1])
    assert len(segments) > 5
    assert (reading.executable_bytes or 0) + (reading.rodata_bytes or 0) == sum(segments)
    sizes = [executable.size_bytes for executable in reading.executables]
    # In these artifacts no constant is so large that it stands outside of the flatbuffer.
    assert sizes == external_sizes(dump)
    assert reading.executable_bytes == sum(sizes)


def external_sizes(dump: str) -> list[int]:
    """Of the segments behind the flatbuffer, in bytes."""
    return [int(size) for size in re.findall(r"^ +\.rodata\[ *\d+\] external +(\d+) bytes", dump, re.M)]
