"""Artifacts against iree-dump-module, and the containers, VM modules and flatbuffers in them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import flatbuffers
import needs
import pytest
from growth import steps
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import BINARIES, check_flips, check_truncations, fixture, outcome

from bot.errors import MalformedBinary
from bot.readers import artifact
from bot.readers.artifact import (
    CONTAINER,
    MAX_TABLES,
    UINT32,
    UINT64,
    VM_MODULE,
    parse_module,
    read_artifact,
    read_executable,
    root_table,
)

ARTIFACTS = sorted(path.name for path in BINARIES.glob("*.vmfb"))
SMALLEST, MODULE = "dense.vmvx.vmfb", "dense.vmvx.module"
ZIP = b"PK\x03\x04" + bytes(22) + (9).to_bytes(2, "little") + (25).to_bytes(2, "little") + b"module.fb" + bytes(25)


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
    external = re.findall(r"^ +\.rodata\[ *\d+\] external +(\d+) bytes", dump, re.M)
    assert sizes == [int(size) for size in external]
    assert reading.executable_bytes == sum(sizes)


@pytest.mark.parametrize("name", ARTIFACTS)
def test_sizes_are_those_of_iree_dump_module(name: str) -> None:
    """And of its recorded dump; all but tables and padding is attributed."""
    compare_with_dump(name, fixture(f"{name}.dump.txt").decode())
    command = [needs.program("iree-dump-module"), "--output=metadata", str(BINARIES / name)]
    compare_with_dump(name, subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    reading, data = read_artifact(fixture(name)), fixture(name)
    assert 0 < reading.unattributed_bytes < int.from_bytes(data[:4], "little") + 200 - reading.vm_bytes
    assert steps(lambda: read_artifact(data)) < 20 * len(data)


@pytest.mark.parametrize(("target", "expected"), FORMATS.items())
def test_executables_of_every_target_are_read(target: str, expected: str) -> None:
    reading = read_artifact(fixture(f"dense.{target}.vmfb"))
    assert {executable.format for executable in reading.executables} == {expected}
    assert reading.unread == ()
    assert sum(executable.size_bytes for executable in reading.executables) == reading.executable_bytes
    library = fixture("dense.llvm-cpu-x86_64.so")
    assert expected != "elf" or "x86" not in target or reading.executable_bytes == len(library)


def disguised(data: bytes) -> bytes:
    """The artifact with its executables in a format that nobody knows."""
    for magic in (b"CDA1", b"VKE1", b"\x7fELF"):
        data = data.replace(magic, b"\0\1\2\3")
    return data


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


def test_a_zip_header_in_front_is_skipped_and_unattributed() -> None:
    plain, polyglot = (read_artifact(data) for data in (fixture(SMALLEST), ZIP + fixture(SMALLEST)))
    assert len(ZIP) == 64 and polyglot.executables == plain.executables
    assert polyglot.unattributed_bytes == plain.unattributed_bytes + len(ZIP)
    with pytest.raises(MalformedBinary, match="cut short"):
        parse_module(ZIP[:29])


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


# VM modules, against the dump of the runtime's own tool.


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        (MODULE, ["main_dispatch_0_matmul_48x96x40_f32", "main_dispatch_1_reduction_48x96_f32"]),
        ("dense.vmvx.vmfb", ["main"]),
    ],
)
def test_entry_points_are_the_exports_of_the_dump_but_the_loaders(name: str, functions: list[str]) -> None:
    rows = re.findall(r"^ +\d+ \| \w+ \| +(\d+) \|.*\| (\S+)$", fixture(f"{name}.dump.txt").decode(), re.M)
    lengths = {exported: int(length) for length, exported in rows if exported != "__init"}
    assert list(lengths) == functions
    assert {entry.name: entry.code_bytes for entry in VM_MODULE.read(fixture(name)).entry_points} == lengths


def test_the_code_is_the_bytecode_of_the_function() -> None:
    data = fixture(MODULE)
    matmul, reduction = (entry.code for entry in VM_MODULE.read(data).entry_points)
    assert matmul != reduction
    renamed = data.replace(b"main_dispatch_1_reduction", b"main_dispatch_2_something")
    assert renamed != data
    assert [entry.code for entry in VM_MODULE.read(renamed).entry_points] == [matmul, reduction]
    bytecode = parse_module(data).bytecode
    differ = [
        [entry.code for entry in VM_MODULE.read(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]).entry_points]
        for at in range(bytecode.start, bytecode.end)
    ]
    assert sum(codes[0] != matmul for codes in differ) == VM_MODULE.read(data).entry_points[0].code_bytes
    assert sum(codes[1] != reduction for codes in differ) == VM_MODULE.read(data).entry_points[1].code_bytes


def test_spans_lie_inside_the_flatbuffer_or_behind_it() -> None:
    data = fixture("dense.vulkan-spirv.vmfb")
    module, end = parse_module(data), 4 + int.from_bytes(data[:4], "little")
    assert 4 <= module.bytecode.start < module.bytecode.end <= end
    external = [segment for segment in module.segments if segment.start >= end]
    assert [segment.of(data)[:4] for segment in external] == [b"VKE1", b"VKE1"]
    other = fixture(MODULE).replace(b"IREE", b"TREE", 1)
    assert not VM_MODULE.accepts(other)
    with pytest.raises(MalformedBinary, match="no flatbuffer with the identifier b'IREE'"):
        VM_MODULE.read(other)


# Containers of the GPU targets, against the modules that the compiler dumped.


READ = CONTAINER.read
NAMES = ["main_dispatch_0_matmul_48x96x40_f32", "main_dispatch_1_reduction_48x96_f32"]
PAYLOADS = {
    "cuda": ["dense.cuda.ptx"],
    "rocm": ["dense.rocm.hsaco"],
    "vulkan-spirv": ["dense.vulkan-spirv.0.spv", "dense.vulkan-spirv.1.spv"],
    "metal-spirv": ["dense.metal-spirv.0.metal", "dense.metal-spirv.1.metal"],
}
"""Target → the modules as the compiler dumped them."""
PTX = b".version 7.6\n.visible .entry kernel() { ret; }\n"


def containers(target: str, prefix: str = "dense") -> Iterator[bytes]:
    data = fixture(f"{prefix}.{target}.vmfb")
    segments = (segment.of(data) for segment in sorted(parse_module(data).segments))
    return (segment for segment in segments if CONTAINER.accepts(segment))


@pytest.mark.parametrize("target", PAYLOADS)
def test_the_container_holds_the_modules_that_the_compiler_dumped(target: str) -> None:
    found = list(containers(target))
    assert len(found) == len(PAYLOADS[target])
    for container, name in zip(found, PAYLOADS[target], strict=True):
        payload = fixture(name)
        assert payload in container
        inside, alone = READ(container), read_executable(payload)
        assert inside.format == alone.format
        assert {label: inside.parts[label] for label in alone.parts if label != "header"} == {
            label: size for label, size in alone.parts.items() if label != "header"
        }
        assert [entry.code_bytes for entry in inside.entry_points] == [entry.code_bytes for entry in alone.entry_points]


@pytest.mark.parametrize("prefix", ["dense", "dense-3.11.0", "dense-3.8.0", "dense-3.5.0"])
@pytest.mark.parametrize("target", PAYLOADS)
def test_entry_points_of_every_release_have_the_programs_names(target: str, prefix: str) -> None:
    found = [READ(container) for container in containers(target, prefix)]
    # 3.5.0 calls the row maxima by their other operation.
    names = [entry.name.replace("elementwise", "reduction") for reading in found for entry in reading.entry_points]
    assert names == NAMES
    assert all(entry.code_bytes for reading in found for entry in reading.entry_points)


@pytest.mark.parametrize("target", PAYLOADS)
def test_the_header_of_newer_releases_is_all_that_differs(target: str) -> None:
    for container in containers(target):
        with_header, bare = READ(container), READ(container[64:])
        assert with_header.parts == {**bare.parts, "header": 64 + bare.parts.get("header", 0)}
        assert with_header.entry_points == bare.entry_points
        assert with_header.unattributed_bytes == bare.unattributed_bytes
        assert with_header.unattributed_bytes < 700


def test_the_program_name_and_the_launch_of_an_export() -> None:
    (reading,) = [READ(container) for container in containers("cuda")]
    assert [entry.workgroup_bytes for entry in reading.entry_points] == [0, 20]
    reading = READ(cuda([(0, b"kernel", 48, b"main$async_kernel")], [PTX], source=b"x" * 100))
    assert [(entry.name, entry.workgroup_bytes) for entry in reading.entry_points] == [("main$async_kernel", 48)]
    assert (reading.parts["sources"], reading.parts["header"]) == (100, 64)
    two = PTX + PTX.replace(b".version 7.6\n", b"").replace(b"kernel", b"other")
    reading = READ(cuda([(0, b"other", 1, b""), (1, b"kernel", 2, b""), (0, b"kernel", 3, b"")], [two, PTX]))
    found = [(entry.name, entry.workgroup_bytes) for entry in reading.entry_points]
    assert found == [("other", 1), ("kernel", 2), ("kernel", 3)]


@pytest.mark.parametrize(
    ("exports", "message"),
    [
        ([(1, b"kernel", 0, b"")], "export 'kernel' names module 1"),
        ([(0, b"absent", 0, b"")], "export 'absent' is not in its module"),
    ],
)
def test_exports_without_a_kernel_are_refused(exports: list[tuple[int, bytes, int, bytes]], message: str) -> None:
    with pytest.raises(MalformedBinary, match=message):
        READ(cuda(exports=exports, modules=[PTX]))


def test_an_unknown_identifier_or_version_is_recognised_and_refused() -> None:
    container, bare = next(containers("cuda")), next(containers("cuda", "dense-3.8.0"))
    unknown = container.replace(b"CDA1", b"NEW1")
    assert CONTAINER.accepts(unknown) and not CONTAINER.accepts(bare.replace(b"CDA1", b"NEW1"))
    with pytest.raises(MalformedBinary, match="unknown container b'NEW1', version 0"):
        READ(unknown)
    with pytest.raises(MalformedBinary, match="version 1"):
        READ(container[:4] + b"\1" + container[5:])


@pytest.mark.parametrize("magic", [b"CDA1", b"HIP1", b"VKE1", b"MTL1"])
def test_a_constant_with_an_identifier_in_it_is_no_executable(magic: bytes) -> None:
    for start in (b"\x0c\0\0\0", bytes(4), b"\xff" * 4):
        assert not CONTAINER.accepts(start + magic + bytes(200))
        assert not CONTAINER.accepts(start + magic)


def test_modules_that_overlap_are_refused() -> None:
    data = cuda(exports=[], modules=[PTX, PTX])
    second = data.rindex(len(PTX).to_bytes(4, "little") + PTX)
    first = data.index(len(PTX).to_bytes(4, "little") + PTX)
    # The first module's string now claims to reach into the second.
    longer = data[:first] + (second + 8 - first).to_bytes(4, "little") + data[first + 4 :]
    with pytest.raises(MalformedBinary, match="share the byte"):
        READ(longer)


@given(st.sampled_from([b"CDA1", b"HIP1", b"VKE1", b"MTL1", b"ABCD"]), st.binary(max_size=300))
def test_any_content(magic: bytes, content: bytes) -> None:
    outcome(
        READ,
        magic + bytes(4) + len(content).to_bytes(8, "little") + bytes(48) + b"\x08\0\0\0" + magic + content,
    )


def cuda(exports: list[tuple[int, bytes, int, bytes]], modules: list[bytes], source: bytes = b"") -> bytes:
    """A container: exports as module ordinal, kernel, workgroup bytes and debug name."""
    builder = flatbuffers.Builder(1024)
    module_tables = [table(builder, {0: builder.CreateString(module)}) for module in modules]
    export_tables = []
    for ordinal, kernel, launch_bytes, debug_name in exports:
        name, debug = builder.CreateString(kernel), table(builder, {0: builder.CreateString(debug_name)})
        export_tables.append(table(builder, {1: name, 6: debug}, {0: ordinal, 3: launch_bytes}))
    sources = [table(builder, {1: builder.CreateByteVector(source)})] if source else []
    vectors = {slot: vector(builder, tables) for slot, tables in enumerate((export_tables, module_tables, sources))}
    builder.Finish(table(builder, vectors), file_identifier=b"CDA1")
    content = bytes(builder.Output())
    return b"CDA1" + bytes(4) + len(content).to_bytes(8, "little") + bytes(48) + content


def table(builder: flatbuffers.Builder, offsets: dict[int, int], numbers: dict[int, int] | None = None) -> int:
    builder.StartObject(16)
    for slot, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for slot, number in (numbers or {}).items():
        builder.PrependUint32Slot(slot, number, 0)
    return int(builder.EndObject())


def vector(builder: flatbuffers.Builder, tables: list[int]) -> int:
    builder.StartVector(4, len(tables), 4)
    for offset in reversed(tables):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


# Flatbuffers, against what the library itself writes.


ROOT, CHILD = "number text children absent payload", "value"


def example() -> bytes:
    """A table with a number, a string, two child tables, an empty slot and a byte vector."""
    builder = flatbuffers.Builder(64)
    text, payload = builder.CreateString("name"), builder.CreateByteVector(b"payload")
    children = vector(builder, [table(builder, {}, {0: value}) for value in (7, 8)])
    builder.StartObject(5)
    builder.PrependUint64Slot(0, 2**40, 0)
    for slot, offset in ((1, text), (2, children), (4, payload)):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TEST")
    return bytes(builder.Output())


def everything(data: bytes) -> tuple[object, ...]:
    root = root_table(data, 0, b"TEST", "test", ROOT)
    children = [child.scalar("value", UINT32) for child in root.tables("children", CHILD)]
    span = root.span("payload")
    return (
        root.scalar("number", UINT64),
        root.text("text"),
        children,
        root.table("absent", CHILD),
        span and span.of(data),
        root.scalar("of another schema", UINT32),
    )


def test_reads_what_the_library_wrote() -> None:
    """A field that the writer did not know of is one that is not there; a buffer may be inside a file."""
    assert everything(example()) == (2**40, "name", [7, 8], None, b"payload", 0)
    root = root_table(b"\xff" * 12 + example(), 12, b"TEST", "test", f"{ROOT} newer newest")
    assert (root.text("text"), root.span("newer"), root.text("newest"), root.scalar("newer", UINT32)) == (
        "name",
        None,
        "",
        0,
    )
    with pytest.raises(MalformedBinary, match="no flatbuffer with the identifier b'ELSE'"):
        root_table(example(), 0, b"ELSE", "test", ROOT)


def test_every_field_that_is_read_is_in_a_schema() -> None:
    """A name in no schema would be read as a field that is never there."""
    text = Path(str(artifact.__file__)).read_text("utf-8")
    known = {word for value in vars(artifact).values() if isinstance(value, str) for word in value.split()}
    known |= {word for layout in artifact.LAYOUTS.values() for word in layout.module.split()}
    known |= {word for fields in re.findall(r"tables?\(\"\w+\", \"([\w ]+)\"\)", text) for word in fields.split()}
    read = re.findall(r"\.(?:span|scalar|text|tables?)\(\"(\w+)\"", text)
    assert read and set(read) <= known


def test_a_vtable_before_the_file_is_refused_and_does_not_wrap_around() -> None:
    data = bytearray(example())
    position = int.from_bytes(data[:4], "little")
    data[position : position + 4] = (position + 2).to_bytes(4, "little")
    with pytest.raises(MalformedBinary, match="at offset -2"):
        everything(bytes(data))


def test_endless_vectors_and_names_are_refused_before_the_first_item() -> None:
    builder = flatbuffers.Builder(64)
    name, many = builder.CreateString("x" * 1025), vector(builder, [0] * (MAX_TABLES + 1))
    builder.Finish(table(builder, {1: name, 2: many}), file_identifier=b"TEST")
    root = root_table(bytes(builder.Output()), 0, b"TEST", "test", ROOT)
    with pytest.raises(MalformedBinary, match="a vector of 65537 tables"):
        next(root.tables("children", CHILD))
    with pytest.raises(MalformedBinary, match="a name of 1025 bytes"):
        root.text("text")
